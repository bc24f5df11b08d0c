// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// events is an OTLP/gRPC server that keeps the events that arrive.
type events struct {
	plogotlp.UnimplementedGRPCServer
	addr string

	mu   sync.Mutex
	said map[string][]string // states of gpu.service.partial by service, in order
	xids []string            // who told of which XID, and whose GPU it was
}

func recordEvents(t *testing.T) *events {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e := &events{addr: l.Addr().String(), said: map[string][]string{}}
	server, done := grpc.NewServer(), make(chan struct{})
	plogotlp.RegisterGRPCServer(server, e)
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends with Stop
	}()
	t.Cleanup(func() { server.Stop(); <-done })
	return e
}

// Export takes what the gateway sends.
func (e *events) Export(_ context.Context, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, rl := range request.Logs().ResourceLogs().All() {
		service, _ := rl.Resource().Attributes().Get(names.ServiceName)
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				if r.EventName() == names.EventXID {
					e.xids = append(e.xids, xid(rl.Resource().Attributes(), r.Attributes()))
				}
				if r.EventName() != names.EventServicePartial {
					continue
				}
				state, _ := r.Attributes().Get(names.GPUEventState)
				e.said[service.AsString()] = append(e.said[service.AsString()], state.AsString())
			}
		}
	}
	return plogotlp.NewExportResponse(), nil
}

func xid(resource, attributes pcommon.Map) string {
	text := func(m pcommon.Map, key string) string {
		v, _ := m.Get(key)
		return v.AsString()
	}
	return text(resource, names.K8sNodeName) + ": XID " + text(attributes, names.GPUXIDCode) + ", held by " + text(attributes, names.ServiceName)
}

// ofXIDs are the XIDs that were told of.
func (e *events) ofXIDs() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{}, e.xids...)
}

// of are the states that were told of a service, in order.
func (e *events) of(service string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{}, e.said[service]...)
}

// all is how many were told of all services.
func (e *events) all() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, states := range e.said {
		n += len(states)
	}
	return n
}
