// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
)

// events is an OTLP/gRPC server that keeps the events that arrive.
type events struct {
	*otlp.Server

	mu     sync.Mutex
	states map[string][]string // states of gpu.service.partial by service, in order
	xids   []string            // who reported which XID, and the owner of the GPU
}

func recordEvents(t *testing.T) *events {
	t.Helper()
	e := &events{states: map[string][]string{}}
	var err error
	e.Server, err = otlp.Serve("127.0.0.1:0", otlp.Handler{Logs: e.take})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

// take keeps what the gateway sends.
func (e *events) take(_ context.Context, ld plog.Logs) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, rl := range ld.ResourceLogs().All() {
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
				e.states[service.AsString()] = append(e.states[service.AsString()], state.AsString())
			}
		}
	}
	return nil
}

func xid(resource, attributes pcommon.Map) string {
	text := func(m pcommon.Map, key string) string {
		v, _ := m.Get(key)
		return v.AsString()
	}
	return text(resource, names.K8sNodeName) + ": XID " + text(attributes, names.GPUXIDCode) + ", held by " + text(attributes, names.ServiceName)
}

// ofXIDs are the XIDs that were reported.
func (e *events) ofXIDs() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{}, e.xids...)
}

// of are the states that were reported of a service, in order.
func (e *events) of(service string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{}, e.states[service]...)
}

// all is how many were reported of all services.
func (e *events) all() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, states := range e.states {
		n += len(states)
	}
	return n
}
