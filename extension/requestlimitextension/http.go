// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package requestlimitextension

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/extension/requestlimitextension/internal/limit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/listening"
)

// GetHTTPHandler implements extensionmiddleware.HTTPServer.
func (e *requestLimit) GetHTTPHandler(context.Context) (func(context.Context, http.Handler) (http.Handler, error), error) {
	return func(_ context.Context, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { e.serve(next, w, r) }), nil
	}, nil
}

func (e *requestLimit) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	peer := peerOf(r.RemoteAddr)
	if len(e.config.Hosts) > 0 && !listening.LocalRequest(r, e.config.Hosts) {
		e.refused(r.Context(), host, peer, r.Host)
		http.Error(w, "this server takes no requests for this host, or from a page of another", http.StatusForbidden)
		return
	}
	ticket, reason := e.limiter.Acquire(peer)
	if reason != limit.None {
		e.refused(r.Context(), reason, peer, r.Host)
		status := http.StatusServiceUnavailable
		if reason == limit.RequestsPerPeer {
			status = http.StatusTooManyRequests
		}
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
		http.Error(w, "too many requests at once", status)
		return
	}
	defer ticket.Release()
	// The server sets it again for the next request of this connection.
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(e.config.Timeout)); err != nil && e.causes.First("deadline", time.Now()) {
		e.logger.Warn("reading a request body has no time limit here; set read_timeout of the server", zap.Error(err))
	}
	next.ServeHTTP(w, r)
}
