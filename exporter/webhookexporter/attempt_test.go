// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestDelivery(t *testing.T) {
	server := newHook(t, nil)
	h := startHarness(t, only(to(server.URL+"/hook?x=1")))
	logs := partial("0195-event", names.EventRaised)
	logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).SetTraceID([16]byte{1, 2})
	h.send(logs)
	rec := h.record()

	requests := server.received()
	require.Len(t, requests, 1)
	got := requests[0]
	assert.Equal(t, http.MethodPost, got.method)
	assert.Equal(t, "/hook?x=1", got.path)
	assert.Equal(t, "application/json", got.header.Get("Content-Type"))
	assert.Equal(t, "0195-event", got.header.Get(headerID))
	assert.NotEmpty(t, got.header.Get(headerTimestamp))
	assert.Empty(t, got.header.Get(headerSignature), "no key, no signature")
	assert.Empty(t, got.header.Get(headerConvoxSignature))

	sum := sha256.Sum256(got.body)
	assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7`, rec.id, "a UUIDv7")
	assert.Equal(t, "gpu.service.partial", rec.eventName)
	assert.Equal(t, "0195-event", rec.eventID)
	assert.Equal(t, "prod/vllm/partial", rec.eventKey)
	assert.Equal(t, eventTime, rec.eventTime)
	assert.Equal(t, "01020000000000000000000000000000", rec.traceID)
	assert.Equal(t, "ops", rec.receiver)
	assert.Equal(t, "http", rec.urlScheme)
	assert.Equal(t, "127.0.0.1", rec.urlHost)
	assert.Equal(t, server.port(), rec.urlPort)
	assert.Equal(t, server.Listener.Addr().String(), rec.peerAddress)
	assert.Equal(t, formatStandard, rec.format)
	assert.Equal(t, 1, rec.attempt)
	assert.Equal(t, 1, rec.maxAttempts)
	assert.Equal(t, hex.EncodeToString(sum[:]), rec.bodySHA256)
	assert.Equal(t, len(got.body), rec.bodySize)
	assert.Equal(t, outcomeSucceeded, rec.outcome)
	assert.Equal(t, 200, rec.status)
	assert.Equal(t, errorNone, rec.errorType)
	assert.Positive(t, rec.durations.connect)
	assert.Positive(t, rec.durations.firstByte)
	assert.GreaterOrEqual(t, rec.durations.total, rec.durations.firstByte)
}

func TestStatusDecides(t *testing.T) {
	tests := map[int]errorType{
		200: errorNone, 201: errorNone, 202: errorNone, 204: errorNone, 299: errorNone,
		300: errorRedirect, 304: errorRedirect, 399: errorRedirect,
		400: errorHTTP4xx, 401: errorHTTP4xx, 403: errorHTTP4xx, 404: errorHTTP4xx, 499: errorHTTP4xx,
		410: errorGone, 429: errorRateLimited,
		500: errorHTTP5xx, 502: errorHTTP5xx, 503: errorHTTP5xx, 599: errorHTTP5xx, 700: errorHTTP5xx,
		101: errorConnect,
	}
	for status, want := range tests {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			server := newHook(t, answerWith(status))
			rec := startHarness(t, only(to(server.URL))).one()
			assert.Equal(t, want, rec.errorType)
			assert.Equal(t, status, rec.status)
			wantOutcome := outcomeFailed
			if want == errorNone {
				wantOutcome = outcomeSucceeded
			}
			assert.Equal(t, wantOutcome, rec.outcome)
			assert.Len(t, server.received(), 1, "one attempt")
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	target := newHook(t, nil)
	for _, status := range []int{300, 301, 302, 303, 305, 307, 308} {
		for _, location := range []string{target.URL, "/elsewhere", "http://[bad", ""} {
			t.Run(fmt.Sprintf("%d to %q", status, location), func(t *testing.T) {
				server := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
					if location != "" {
						w.Header()["Location"] = []string{location}
					}
					w.WriteHeader(status)
				})
				rec := startHarness(t, only(to(server.URL))).one()
				assert.Equal(t, errorRedirect, rec.errorType)
				assert.Equal(t, outcomeFailed, rec.outcome)
				assert.Equal(t, status, rec.status)
				assert.Len(t, server.received(), 1)
			})
		}
	}
	assert.Zero(t, target.connections(), "nobody may come to where a redirect points")
}

func TestTransportFailures(t *testing.T) {
	refused := httptest.NewServer(nil)
	refused.Close()

	babbling, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		for {
			c, err := babbling.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte("220 mail.example SMTP\r\n"))
			c.Close()
		}
	}()
	defer babbling.Close()

	untrusted := newUnstartedHook(t, nil)
	untrusted.StartTLS()
	old := newUnstartedHook(t, nil)
	old.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11} //nolint:gosec // what must be refused
	old.StartTLS()
	mutual := newUnstartedHook(t, nil)
	mutual.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	mutual.StartTLS()
	verbose := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 2*maxResponseHeader))
	})
	plain := newHook(t, nil)
	noNames := func(_ *Config, env *environment) { env.resolver = nameServer(t, nil) }

	tests := []struct {
		name   string
		url    string
		change func(*Config, *environment)
		want   errorType
	}{
		{"connection refused", refused.URL, nil, errorConnect},
		{"not HTTP", "http://" + babbling.Addr().String(), nil, errorConnect},
		{"no such name", "http://missing.example.test:8080", noNames, errorDNS},
		{"certificate of an unknown authority", untrusted.URL, nil, errorTLS},
		{"TLS 1.1", old.URL, trusting(old), errorTLS},
		{"client certificate wanted", mutual.URL, trusting(mutual), errorTLS},
		{"headers beyond any measure", verbose.URL, nil, errorConnect},
		{"https to a port that speaks http", strings.Replace(plain.URL, "http:", "https:", 1), nil, errorTLS},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.change == nil {
				tt.change = func(*Config, *environment) {}
			}
			rec := startHarness(t, only(to(tt.url)), tt.change).one()
			assert.Equal(t, tt.want, rec.errorType)
			assert.Equal(t, outcomeFailed, rec.outcome)
			assert.Zero(t, rec.status)
			assert.Equal(t, 1, rec.attempt)
		})
	}
	for _, s := range []*hook{untrusted, old, mutual, plain} {
		assert.Empty(t, s.received())
	}
}

func TestTLS(t *testing.T) {
	proto := make(chan string, 1)
	server := newUnstartedHook(t, func(_ http.ResponseWriter, r *http.Request) { proto <- r.Proto })
	server.EnableHTTP2 = true
	server.StartTLS()
	rec := startHarness(t, only(to(server.URL)), trusting(server)).one()
	assert.Equal(t, outcomeSucceeded, rec.outcome)
	assert.Equal(t, "https", rec.urlScheme)
	assert.Positive(t, rec.durations.tls)
	assert.Equal(t, "HTTP/1.1", <-proto, "HTTP/2 would repeat refused requests")
}

func TestTimeout(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"no answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"headers never end": func(w http.ResponseWriter, r *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nX-Slow: "))
			buf := make([]byte, 1)
			_, _ = conn.Read(buf) // until the exporter hangs up
			conn.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newHook(t, answer)
			cfg := to(server.URL)
			cfg.Timeout = 50 * time.Millisecond
			rec := startHarness(t, only(cfg)).one()
			assert.Equal(t, errorTimeout, rec.errorType)
			assert.Equal(t, outcomeFailed, rec.outcome)
			assert.GreaterOrEqual(t, rec.durations.total, cfg.Timeout)
		})
	}
}

func TestEndlessAnswerIsCutOff(t *testing.T) {
	ended := make(chan struct{})
	server := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		chunk := make([]byte, 64<<10)
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	rec := startHarness(t, only(to(server.URL))).one()
	assert.Equal(t, outcomeSucceeded, rec.outcome, "the status decides")
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the exporter goes on reading")
	}
}

// What a receiver says after its answer, on a connection that waits for the next
// delivery, would end up in the process's own log.
func TestReceiverCannotWriteToTheLog(t *testing.T) {
	var out bytes.Buffer
	log.SetOutput(&out)
	defer log.SetOutput(os.Stderr)
	closed := make(chan struct{})
	server := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		const answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
		_, _ = conn.Write([]byte(answer + "audit_type=webhook_dispatch_succeeded url_host=pager.example.com status=200"))
		_, _ = conn.Read(make([]byte, 1)) // until the exporter hangs up
		conn.Close()
		closed <- struct{}{}
	})
	h := startHarness(t, only(to(server.URL)))
	for range 3 {
		assert.Equal(t, outcomeSucceeded, h.one().outcome)
		<-closed
	}
	assert.Equal(t, 3, server.connections())
	assert.Empty(t, out.String())
}

// After 101 the connection belongs to another protocol, and the end of the
// timeout no longer closes it.
func TestSwitchedProtocolIsNotWaitedFor(t *testing.T) {
	closed := make(chan struct{})
	server := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"))
		_, _ = conn.Read(make([]byte, 1)) // until the exporter hangs up
		conn.Close()
		close(closed)
	})
	rec := startHarness(t, only(to(server.URL))).one()
	assert.Equal(t, outcomeFailed, rec.outcome)
	assert.Equal(t, errorConnect, rec.errorType)
	assert.Equal(t, http.StatusSwitchingProtocols, rec.status)
	<-closed
}
