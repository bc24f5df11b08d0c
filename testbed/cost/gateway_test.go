// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/disk"
)

// ledger is what outlives gateways: their disk, and what they have sent.
type ledger struct {
	mu   sync.Mutex
	disk *disk.Disk
	rows map[string]usage.Row // by ID
	// history are all rows as they came.
	history []usage.Row
	series  map[string]float64
	starts  map[string]pcommon.Timestamp
	wrong   []string
}

func newLedger() *ledger {
	return &ledger{disk: disk.New(), rows: map[string]usage.Row{}, series: map[string]float64{}, starts: map[string]pcommon.Timestamp{}}
}

// takeHours keeps the newest row of each key and hour, as the store does.
func (l *ledger) takeHours(_ context.Context, ld plog.Logs) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				r, err := usage.FromRecord(record)
				if err != nil {
					l.wrong = append(l.wrong, err.Error())
					continue
				}
				l.history = append(l.history, r)
				l.keep(r)
			}
		}
	}
	return nil
}

// keep keeps a row unless a newer one of its key and hour is known.
func (l *ledger) keep(r usage.Row) {
	known, found := l.rows[r.ID()]
	if !found || known.Open || !r.Open && r.Revision >= known.Revision {
		l.rows[r.ID()] = r
	}
}

// takeMetrics keeps the newest value of each series, of which none may fall.
func (l *ledger) takeMetrics(_ context.Context, md pmetric.Metrics) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Type() == pmetric.MetricTypeSum {
					l.counters(m)
				}
			}
		}
	}
	return nil
}

func (l *ledger) counters(m pmetric.Metric) {
	for _, p := range m.Sum().DataPoints().All() {
		if p.Flags().NoRecordedValue() {
			continue
		}
		value := p.DoubleValue()
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			value = float64(p.IntValue())
		}
		key := fmt.Sprint(m.Name(), p.Attributes().AsRaw())
		if before, found := l.series[key]; found && value < before && p.StartTimestamp() == l.starts[key] {
			l.wrong = append(l.wrong, fmt.Sprintf("%s fell from %v to %v", key, before, value))
		}
		l.series[key], l.starts[key] = value, p.StartTimestamp()
	}
}

// sum adds up the series of a metric.
func (l *ledger) sum(m names.Metric) (sum float64) {
	for key, value := range l.series {
		if len(key) > len(m.Name) && key[:len(m.Name)] == m.Name && key[len(m.Name)] == 'm' { // of map[…]
			sum += value
		}
	}
	return sum
}

// gateway is a gpu_cost in one life.
type gateway struct {
	alive   *atomic.Bool // a killed one sends and writes nothing
	metrics connector.Metrics
	hours   connector.Metrics
}

// start starts a gateway on what is on the disk.
func start(t *testing.T, into *ledger, config map[string]any) *gateway {
	t.Helper()
	g := &gateway{alive: new(atomic.Bool)}
	g.alive.Store(true)
	factory := gpucostconnector.NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(config).Unmarshal(cfg))
	set := connectortest.NewNopSettings(factory.Type())
	set.ID = component.NewID(factory.Type())
	metrics, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		if !g.alive.Load() {
			return nil
		}
		return into.takeMetrics(ctx, md)
	})
	require.NoError(t, err)
	logs, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
		if !g.alive.Load() {
			return nil
		}
		return into.takeHours(ctx, ld)
	})
	require.NoError(t, err)
	g.metrics, err = factory.CreateMetricsToMetrics(t.Context(), set, cfg, metrics)
	require.NoError(t, err)
	g.hours, err = factory.CreateMetricsToLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	host := into.disk.Host(g.alive)
	require.NoError(t, g.metrics.Start(t.Context(), host))
	require.NoError(t, g.hours.Start(t.Context(), host))
	return g
}

func (g *gateway) take(t *testing.T, md pmetric.Metrics) {
	require.NoError(t, g.metrics.ConsumeMetrics(t.Context(), md))
	require.NoError(t, g.hours.ConsumeMetrics(t.Context(), md))
}

// stop ends the gateway; killed: as SIGKILL does, after which nothing leaves it.
func (g *gateway) stop(t *testing.T, killed bool) {
	if killed {
		g.alive.Store(false)
	}
	ctx := context.WithoutCancel(t.Context())
	require.NoError(t, errors.Join(g.hours.Shutdown(ctx), g.metrics.Shutdown(ctx)))
}
