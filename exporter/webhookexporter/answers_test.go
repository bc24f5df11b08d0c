// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// answers is a webhook without a network, for tests on a clock of their own. It
// gives its answers one after the other, then 200.
type answers struct {
	mu      sync.Mutex
	next    []answer
	calls   []call
	started time.Time
	dead    *atomic.Bool // the process is killed: nothing more is sent
}

type answer struct {
	status     int
	retryAfter string
	err        error
	takes      time.Duration
}

type call struct {
	at     time.Duration // since the first
	header http.Header
	body   string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.dead != nil && a.dead.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	if a.started.IsZero() {
		a.started = time.Now()
	}
	a.calls = append(a.calls, call{time.Since(a.started), r.Header.Clone(), string(body)})
	now := answer{status: http.StatusOK}
	if len(a.next) > 0 {
		now, a.next = a.next[0], a.next[1:]
	}
	a.mu.Unlock()
	if now.takes > 0 {
		select {
		case <-time.After(now.takes):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if now.err != nil {
		return nil, now.err
	}
	header := http.Header{}
	if now.retryAfter != "" {
		header.Set("Retry-After", now.retryAfter)
	}
	return &http.Response{StatusCode: now.status, Header: header, Body: io.NopCloser(bytes.NewReader(nil))}, nil
}

func (*answers) CloseIdleConnections() {}

func (a *answers) received() []call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]call(nil), a.calls...)
}

// ids of what was received, in order.
func (a *answers) ids() []string {
	var ids []string
	for _, c := range a.received() {
		ids = append(ids, c.header.Get(signing.HeaderID))
	}
	return ids
}

func repeat(a answer, times int) []answer {
	out := make([]answer, times)
	for i := range out {
		out[i] = a
	}
	return out
}

// startWith starts an exporter with a as its only endpoint.
func startWith(t *testing.T, a *answers, change ...func(*Config, *environment)) *harness {
	return startHarness(t, only(to("https://hooks.example.com")), append(change, via(a))...)
}

// oneOf sends one event and returns its record, on a clock of its own.
func oneOf(h *harness) *audit.Record {
	h.send(partial(eventrecord.NewID(), names.EventRaised))
	return <-h.records
}
