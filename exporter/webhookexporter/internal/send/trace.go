// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package send // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/send"

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// trace times the parts of one attempt. The transport calls its hooks from
// goroutines of its own, some of them after the attempt is over.
type trace struct {
	start time.Time

	mu                               sync.Mutex
	dnsStart, connectStart, tlsStart time.Time
	durations                        audit.Durations
	peer                             string
	tlsError                         bool
}

func newTrace(start time.Time) *trace { return &trace{start: start} }

// attach returns a context that makes an HTTP transport report to the trace.
func (t *trace) attach(ctx context.Context) context.Context {
	locked := func(f func()) {
		t.mu.Lock()
		defer t.mu.Unlock()
		f()
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { locked(func() { t.dnsStart = time.Now() }) },
		DNSDone: func(httptrace.DNSDoneInfo) {
			locked(func() { t.durations.DNS = time.Since(t.dnsStart) })
		},
		ConnectStart: func(_, address string) {
			locked(func() {
				t.peer = address
				if t.connectStart.IsZero() { // of several addresses the first
					t.connectStart = time.Now()
				}
			})
		},
		ConnectDone: func(string, string, error) {
			locked(func() { t.durations.Connect = time.Since(t.connectStart) })
		},
		TLSHandshakeStart: func() { locked(func() { t.tlsStart = time.Now() }) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			locked(func() {
				t.durations.TLS = time.Since(t.tlsStart)
				t.tlsError = err != nil
			})
		},
		GotConn: func(info httptrace.GotConnInfo) {
			locked(func() { t.peer = info.Conn.RemoteAddr().String() })
		},
		GotFirstResponseByte: func() {
			locked(func() { t.durations.FirstByte = time.Since(t.start) })
		},
	})
}

// tlsFailed reports whether a TLS handshake took place and failed.
func (t *trace) tlsFailed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tlsError
}

// result ends the attempt.
func (t *trace) result(status int, kind audit.ErrorType) Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.durations.Total = time.Since(t.start)
	return Result{status: status, errorType: kind, peer: t.peer, durations: t.durations}
}
