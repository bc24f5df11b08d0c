// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package requestlimitextension

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/otelcol-gpu/otelcol-gpu/extension/requestlimitextension/internal/limit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/listening"
)

// GetGRPCServerOptions implements extensionmiddleware.GRPCServer. Interceptors run
// when a message is decoded already; a tap runs when its header is there.
func (e *requestLimit) GetGRPCServerOptions(context.Context) ([]grpc.ServerOption, error) {
	return []grpc.ServerOption{grpc.InTapHandle(e.tap), grpc.StatsHandler(handlers{})}, nil
}

// ticketKey is where a stream's context has its ticket.
type ticketKey struct{}

// tap accepts or refuses a stream. It is called with the connection's lock held.
func (e *requestLimit) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	var from, authority string
	if p, found := peer.FromContext(ctx); found && p.Addr != nil {
		from = peerOf(p.Addr.String())
	}
	if values := info.Header.Get(":authority"); len(values) > 0 {
		authority = values[0]
	}
	if len(e.config.Hosts) > 0 && !listening.Local(authority, e.config.Hosts) {
		e.refused(ctx, host, from, authority)
		return ctx, status.Error(codes.PermissionDenied, "this server takes no requests for this host")
	}
	ticket, reason := e.limiter.Acquire(from)
	if reason != limit.None {
		e.refused(ctx, reason, from, authority)
		// Unavailable, because a stream that is refused this early carries no RetryInfo,
		// without which senders drop what is answered ResourceExhausted.
		return ctx, status.Error(codes.Unavailable, "too many requests at once")
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, ticketKey{}, ticket), e.config.Timeout)
	context.AfterFunc(ctx, func() {
		cancel()
		ticket.Ended()
	})
	return ctx, nil
}

// handlers notes when the handler of a stream begins and ends.
type handlers struct{}

func (handlers) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (handlers) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (handlers) HandleConn(context.Context, stats.ConnStats)                       {}

func (handlers) HandleRPC(ctx context.Context, s stats.RPCStats) {
	ticket, found := ctx.Value(ticketKey{}).(*limit.Ticket)
	if !found {
		return
	}
	switch s.(type) {
	case *stats.Begin:
		ticket.Begin()
	case *stats.End:
		ticket.Release()
	}
}
