// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreexporter

import (
	"context"
	"sync"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// fakeStore keeps what it is given.
type fakeStore struct {
	component.StartFunc
	component.ShutdownFunc
	store.Store
	readOnly bool
	fail     error

	mu       sync.Mutex
	series   []store.Series
	families map[string]store.Metadata
	events   []*store.Event
	rows     []usage.Row
}

func (f *fakeStore) Info() store.Info {
	return store.Info{Engine: "prometheus", ReadOnly: f.readOnly, MaxSeries: 100}
}

func (f *fakeStore) Append(_ context.Context, series []store.Series) (store.Appended, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.series = append(f.series, series...)
	return store.Appended{}, f.fail
}

func (f *fakeStore) AppendWithin(ctx context.Context, series []store.Series, maxSeries int) (store.Appended, error) {
	within := series[:min(len(series), maxSeries)]
	a, err := f.Append(ctx, within)
	a.Refuse(store.ShareLimit, len(series)-len(within))
	return a, err
}

func (f *fakeStore) AppendUsage(_ context.Context, rows []usage.Row) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows = append(f.rows, rows...)
	return f.fail
}

func (f *fakeStore) Describe(families map[string]store.Metadata) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.families = families
}

func (f *fakeStore) AppendEvents(_ context.Context, events []*store.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, events...)
	return f.fail
}

// byLabels are the samples by their series.
func (f *fakeStore) byLabels() map[string][]store.Sample {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string][]store.Sample{}
	for _, s := range f.series {
		out[s.Labels.String()] = append(out[s.Labels.String()], s.Samples...)
	}
	return out
}

func series(pairs ...string) string { return labels.FromStrings(pairs...).String() }

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

func settings(t *testing.T) (exporter.Settings, *componenttest.Telemetry) {
	t.Helper()
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	set := exportertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	return set, tel
}

// startMetrics starts an exporter before a store. What it was given is in the
// store after the function that it returns.
func startMetrics(t *testing.T, s *fakeStore) (e exporter.Metrics, tel *componenttest.Telemetry, finish func()) {
	t.Helper()
	set, tel := settings(t)
	e, err := createMetrics(t.Context(), set, createDefaultConfig())
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), host{store.DefaultID: s}))
	finish = sync.OnceFunc(func() { require.NoError(t, e.Shutdown(context.Background())) })
	t.Cleanup(finish)
	return e, tel, finish
}

func startLogs(t *testing.T, s *fakeStore) (e exporter.Logs, tel *componenttest.Telemetry, finish func()) {
	t.Helper()
	set, tel := settings(t)
	e, err := createLogs(t.Context(), set, createDefaultConfig())
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), host{store.DefaultID: s}))
	finish = sync.OnceFunc(func() { require.NoError(t, e.Shutdown(context.Background())) })
	t.Cleanup(finish)
	return e, tel, finish
}

func counted(t *testing.T, tel *componenttest.Telemetry, name string) int64 {
	t.Helper()
	m, err := tel.GetMetric(name)
	require.NoError(t, err)
	total := int64(0)
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		total += p.Value
	}
	return total
}
