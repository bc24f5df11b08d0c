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
	xids   []delivery          // of gpu.xid, in order
}

// delivery is an event that arrived: its gpu.event.id, and what it reports.
type delivery struct{ id, text string }

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
					id, _ := r.Attributes().Get(names.GPUEventID)
					e.xids = append(e.xids, delivery{id.AsString(), xid(rl.Resource().Attributes(), r.Attributes())})
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

// xid is who reported which XID, and the owner of the GPU.
func xid(resource, attributes pcommon.Map) string {
	text := func(m pcommon.Map, key string) string {
		v, _ := m.Get(key)
		return v.AsString()
	}
	return text(resource, names.K8sNodeName) + ": XID " + text(attributes, names.GPUXIDCode) + ", owned by " + text(attributes, names.ServiceName)
}

// ofXIDs are the XIDs that were reported, and how often they were delivered: an event
// that comes again as it was, under its id, counts as one.
func (e *events) ofXIDs() (reported []string, deliveries int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := map[delivery]bool{}
	for _, d := range e.xids {
		if !seen[d] {
			reported = append(reported, d.text)
		}
		seen[d] = true
	}
	return reported, len(e.xids)
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
