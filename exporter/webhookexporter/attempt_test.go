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

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
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
	assert.Equal(t, "0195-event", got.header.Get(signing.HeaderID))
	assert.NotEmpty(t, got.header.Get(signing.HeaderTimestamp))
	assert.Empty(t, got.header.Get(signing.HeaderSignature), "no key, no signature")
	assert.Empty(t, got.header.Get(signing.HeaderConvoxSignature))

	sum := sha256.Sum256(got.body)
	assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7`, rec.ID, "a UUIDv7")
	assert.Equal(t, "gpu.service.partial", rec.Events[0].Name)
	assert.Equal(t, "0195-event", rec.Events[0].ID)
	assert.Equal(t, got.header.Get(signing.HeaderID), rec.WebhookID)
	assert.Equal(t, "prod/vllm/partial", rec.Events[0].Key)
	assert.Equal(t, eventTime, rec.Events[0].Time)
	assert.Equal(t, "01020000000000000000000000000000", rec.TraceID)
	assert.Equal(t, "ops", rec.Receiver)
	assert.Equal(t, "http", rec.URLScheme)
	assert.Equal(t, "127.0.0.1", rec.URLHost)
	assert.Equal(t, server.port(), rec.URLPort)
	assert.Equal(t, server.Listener.Addr().String(), rec.PeerAddress)
	assert.Equal(t, "standard", rec.Format)
	assert.Equal(t, 1, rec.Attempt)
	assert.Equal(t, 1, rec.MaxAttempts)
	assert.Equal(t, hex.EncodeToString(sum[:]), rec.BodySHA256)
	assert.Equal(t, len(got.body), rec.BodySize)
	assert.Equal(t, audit.Succeeded, rec.Outcome)
	assert.Equal(t, 200, rec.Status)
	assert.Equal(t, audit.ErrorNone, rec.ErrorType)
	assert.Positive(t, rec.Durations.Connect)
	assert.Positive(t, rec.Durations.FirstByte)
	assert.GreaterOrEqual(t, rec.Durations.Total, rec.Durations.FirstByte)
}

func TestStatusDecides(t *testing.T) {
	tests := map[int]audit.ErrorType{
		200: audit.ErrorNone, 201: audit.ErrorNone, 202: audit.ErrorNone, 204: audit.ErrorNone, 299: audit.ErrorNone,
		300: audit.ErrorRedirect, 304: audit.ErrorRedirect, 399: audit.ErrorRedirect,
		400: audit.ErrorHTTP4xx, 401: audit.ErrorHTTP4xx, 403: audit.ErrorHTTP4xx, 404: audit.ErrorHTTP4xx, 499: audit.ErrorHTTP4xx,
		410: audit.ErrorGone, 429: audit.ErrorRateLimited,
		500: audit.ErrorHTTP5xx, 502: audit.ErrorHTTP5xx, 503: audit.ErrorHTTP5xx, 599: audit.ErrorHTTP5xx, 700: audit.ErrorHTTP5xx,
		101: audit.ErrorConnect,
	}
	for status, want := range tests {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			server := newHook(t, answerWith(status))
			rec := startHarness(t, only(to(server.URL))).one()
			assert.Equal(t, want, rec.ErrorType)
			assert.Equal(t, status, rec.Status)
			wantOutcome := audit.Failed
			if want == audit.ErrorNone {
				wantOutcome = audit.Succeeded
			}
			assert.Equal(t, wantOutcome, rec.Outcome)
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
				assert.Equal(t, audit.ErrorRedirect, rec.ErrorType)
				assert.Equal(t, audit.Failed, rec.Outcome)
				assert.Equal(t, status, rec.Status)
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
		w.Header().Set("X-Long", strings.Repeat("x", 32<<10))
	})
	plain := newHook(t, nil)
	noNames := func(_ *Config, env *environment) { env.Resolver = nameServer(t, nil) }

	tests := []struct {
		name   string
		url    string
		change func(*Config, *environment)
		want   audit.ErrorType
	}{
		{"connection refused", refused.URL, nil, audit.ErrorConnect},
		{"not HTTP", "http://" + babbling.Addr().String(), nil, audit.ErrorConnect},
		{"no such name", "http://missing.example.test:8080", noNames, audit.ErrorDNS},
		{"certificate of an unknown authority", untrusted.URL, nil, audit.ErrorTLS},
		{"TLS 1.1", old.URL, trusting(old), audit.ErrorTLS},
		{"client certificate wanted", mutual.URL, trusting(mutual), audit.ErrorTLS},
		{"headers beyond any measure", verbose.URL, nil, audit.ErrorConnect},
		{"https to a port that speaks http", strings.Replace(plain.URL, "http:", "https:", 1), nil, audit.ErrorTLS},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.change == nil {
				tt.change = func(*Config, *environment) {}
			}
			rec := startHarness(t, only(to(tt.url)), tt.change).one()
			assert.Equal(t, tt.want, rec.ErrorType)
			assert.Equal(t, audit.Failed, rec.Outcome)
			assert.Zero(t, rec.Status)
			assert.Equal(t, 1, rec.Attempt)
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
	assert.Equal(t, audit.Succeeded, rec.Outcome)
	assert.Equal(t, "https", rec.URLScheme)
	assert.Positive(t, rec.Durations.TLS)
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
			assert.Equal(t, audit.ErrorTimeout, rec.ErrorType)
			assert.Equal(t, audit.Failed, rec.Outcome)
			assert.GreaterOrEqual(t, rec.Durations.Total, cfg.Timeout)
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
	assert.Equal(t, audit.Succeeded, rec.Outcome, "the status decides")
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the exporter goes on reading")
	}
}

// What an endpoint sends after its answer, on a connection that waits for the next
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
		assert.Equal(t, audit.Succeeded, h.one().Outcome)
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
	assert.Equal(t, audit.Failed, rec.Outcome)
	assert.Equal(t, audit.ErrorConnect, rec.ErrorType)
	assert.Equal(t, http.StatusSwitchingProtocols, rec.Status)
	<-closed
}
