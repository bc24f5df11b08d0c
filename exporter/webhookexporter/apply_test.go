// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// targets parses receivers.
func targets(t *testing.T, receivers map[string]endpoint.Config) []*endpoint.Endpoint {
	var out []*endpoint.Endpoint
	for name, cfg := range receivers {
		out = append(out, mustTarget(t, name, cfg))
	}
	return out
}

func (h *harness) applies(receivers map[string]endpoint.Config) {
	h.t.Helper()
	h.apply(h.t.Context(), targets(h.t, receivers))
}

func TestReceiversComeAndGo(t *testing.T) {
	first, second := newHook(t, nil), newHook(t, nil)
	h := startHarness(t, map[string]endpoint.Config{"first": to(first.URL)})
	assert.Equal(t, "first", h.one().Receiver)

	h.applies(map[string]endpoint.Config{"first": to(first.URL), "second": to(second.URL)})
	assert.ElementsMatch(t, []string{"first", "second"}, []string{h.one().Receiver, h.record().Receiver})

	h.applies(map[string]endpoint.Config{"second": to(second.URL)})
	assert.Equal(t, "second", h.one().Receiver)
	assert.Len(t, first.received(), 2)

	h.applies(nil)
	h.send(partial("nobody", names.EventRaised))
	h.applies(map[string]endpoint.Config{"first": to(first.URL)})
	assert.Equal(t, "first", h.one().Receiver)
	assert.Len(t, second.received(), 2)
}

// A secret that goes unencrypted to another machine is warned of once, and not
// shown.
func TestASecretInPlainTextIsWarnedOf(t *testing.T) {
	for url, want := range map[string]string{
		"http://ops:SECRET@hooks.example.com/":                "user info",
		"http://hooks.example.com/?token=SECRET":              "query",
		"http://hooks.example.com/services/SECRETh3Bq0oTzR1x": "path",
		"http://hooks.example.com/v1/webhooks-of-operations":  "",
		"http://hooks.example.com/":                           "",
		"http://localhost:9480/?token=SECRET":                 "",
		"https://ops:SECRET@hooks.example.com/?token=SECRET":  "",
	} {
		h := newHarness(t, only(to(url)))
		h.applies(only(to(url)))
		warned := h.logs.FilterLevelExact(zapcore.WarnLevel).All()
		if want == "" {
			assert.Empty(t, warned, url)
			continue
		}
		require.Len(t, warned, 1, url)
		assert.Equal(t, map[string]any{"receiver": "ops", "secret": want}, warned[0].ContextMap())
	}
	paging := endpoint.Config{URL: "http://events.example.com/v2/enqueue", Config: format.Config{Format: "pagerduty", PagerDutyConfig: format.PagerDutyConfig{RoutingKey: configopaque.String(strings.Repeat("0", 32))}}}
	h := newHarness(t, only(paging))
	h.applies(only(paging))
	assert.Equal(t, map[string]any{"receiver": "ops", "secret": "routing_key"}, h.logs.FilterLevelExact(zapcore.WarnLevel).All()[0].ContextMap())
}

// What did not change is not touched: a 410 stays, and so does what is queued.
func TestUnchangedReceiversStay(t *testing.T) {
	gone := newHook(t, answerWith(http.StatusGone))
	h := startHarness(t, map[string]endpoint.Config{"gone": to(gone.URL)})
	h.one()
	before := h.set.Find("gone")
	h.applies(map[string]endpoint.Config{"gone": to(gone.URL)})
	assert.Same(t, before, h.set.Find("gone"))
	assert.Equal(t, audit.Dropped, h.one().Outcome)

	// A changed one gets another chance.
	changed := to(gone.URL)
	changed.Timeout = time.Minute
	h.applies(map[string]endpoint.Config{"gone": changed})
	assert.Equal(t, audit.TriggerEnable, h.record().Trigger)
	assert.Equal(t, audit.Failed, h.one().Outcome)
	assert.Len(t, gone.received(), 2)
}

// A rotated URL: what is queued, and what waits for its next attempt, goes to the
// new one, in order.
func TestAChangedReceiverKeepsItsQueue(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	old := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-release
		w.WriteHeader(http.StatusInternalServerError)
	})
	fresh := newHook(t, nil)
	cfg := to(old.URL)
	cfg.Workers = 1
	h := startHarness(t, only(cfg), retrying)
	for _, id := range []string{"1", "2", "3"} { // of one key
		h.send(partial(id, names.EventRaised))
	}
	<-entered
	release <- struct{}{}
	require.NotZero(t, h.record().NextAttempt)
	next := to(fresh.URL)
	next.Workers = 8
	h.applies(only(next))
	for range 3 {
		assert.Equal(t, audit.Succeeded, h.record().Outcome)
	}
	var ids []string
	for _, r := range fresh.received() {
		ids = append(ids, r.header.Get(signing.HeaderID))
	}
	assert.Equal(t, []string{"1", "2", "3"}, ids)
	assert.Len(t, old.received(), 1)

	next.Workers = 1 // and fewer again
	h.applies(only(next))
	assert.Equal(t, audit.Succeeded, h.one().Outcome)
}

// 410 to a request by the former configuration has no effect on the new one.
func TestGoneOfAFormerConfiguration(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	old := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-release
		w.WriteHeader(http.StatusGone)
	})
	fresh := newHook(t, nil)
	h := startHarness(t, only(to(old.URL)))
	h.send(keyed("old"))
	<-entered
	h.applies(only(to(fresh.URL)))
	close(release)
	assert.Equal(t, audit.ErrorGone, h.record().ErrorType)
	assert.Equal(t, audit.Succeeded, h.one().Outcome)
}

// A removed receiver gets what it was promised; the others do not wait for that.
func TestARemovedReceiverIsDrained(t *testing.T) {
	release := make(chan struct{})
	slow, fast := newHook(t, func(http.ResponseWriter, *http.Request) { <-release }), newHook(t, nil)
	cfg := to(slow.URL)
	cfg.Workers = 1
	h := startHarness(t, map[string]endpoint.Config{"slow": cfg, "fast": to(fast.URL)})
	for range 3 {
		h.send(keyed(eventrecord.NewID()))
		assert.Equal(t, "fast", h.record().Receiver)
	}
	h.applies(map[string]endpoint.Config{"fast": to(fast.URL)})
	assert.Equal(t, "fast", h.one().Receiver)
	close(release)
	for range 3 {
		rec := h.record()
		assert.Equal(t, "slow", rec.Receiver)
		assert.Equal(t, audit.Succeeded, rec.Outcome)
	}
}

// The end does not wait for a removed receiver longer than for the others, and
// what it never got is audited.
func TestShutdownEndsRemovedReceivers(t *testing.T) {
	entered := make(chan struct{}, 1)
	slow := newHook(t, func(_ http.ResponseWriter, r *http.Request) { entered <- struct{}{}; <-r.Context().Done() })
	cfg := to(slow.URL)
	cfg.Workers = 1
	h := startHarness(t, only(cfg))
	h.send(keyed("1"))
	<-entered
	h.send(keyed("2"))
	h.applies(nil)
	shutdownNow(t, h)
	assert.Equal(t, audit.ErrorShutdown, h.record().ErrorType)
	rec := h.record()
	assert.Equal(t, audit.Dropped, rec.Outcome)
	assert.Equal(t, audit.ErrorConfig, rec.ErrorType)
	h.applies(only(cfg)) // too late: nothing starts any more
}

// Whatever a receiver does, the others do not notice: their records come within
// patience, which is shorter than the bad ones' timeout.
func TestBadReceiversDelayNoOther(t *testing.T) {
	raw := func(talk func(net.Conn, *http.Request)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			talk(conn, r)
			conn.Close()
		}
	}
	hangUp := func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) } // until the exporter does
	bad := map[string]http.HandlerFunc{
		"hangs": raw(func(c net.Conn, _ *http.Request) { hangUp(c) }),
		"drips": raw(func(c net.Conn, _ *http.Request) {
			for _, b := range []byte("HTTP/1.1 200 OK\r\n") {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			hangUp(c)
		}),
		"resets": raw(func(c net.Conn, _ *http.Request) {
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"))
			_ = c.(*net.TCPConn).SetLinger(0)
		}),
		"endless-headers": raw(func(c net.Conn, _ *http.Request) {
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\n"))
			for i := 0; ; i++ {
				if _, err := fmt.Fprintf(c, "X-%d: y\r\n", i); err != nil {
					return
				}
			}
		}),
		"limits": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"fails": answerWith(http.StatusInternalServerError),
	}
	good := newHook(t, nil)
	receivers := map[string]endpoint.Config{"good": to(good.URL)}
	for name, answer := range bad {
		cfg := to(newHook(t, answer).URL)
		cfg.Timeout = time.Minute
		receivers[name] = cfg
	}
	h := startHarness(t, receivers, retrying)
	const events = 200
	for i := range events {
		h.send(keyed(fmt.Sprint(i)))
	}
	for seen := 0; seen < events; {
		if h.record().Receiver == "good" {
			seen++
		}
	}
	shutdownNow(t, h)
}
