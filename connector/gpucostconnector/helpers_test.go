// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

var (
	diskID  = component.MustNewIDWithName("file_storage", "state")
	otherID = component.MustNewIDWithName("file_storage", "other")
)

// world is what outlives a connector: a disk, and what the next components have. steps is
// what was done with them, in order.
type world struct {
	t      *testing.T
	mu     sync.Mutex
	values map[string][]byte
	disk   error // of every write
	hangs  chan struct{}
	stuck  chan struct{} // what takes rows does not return until it is closed
	next   [2]error      // of metrics and logs
	steps  []string
	// kill is the number of the step before which the connector is killed; below 0: it is
	// not.
	kill int

	series map[string]point // the newest point of each
	hours  map[string]usage.Row
	status []componentstatus.Status
}

// point is a value since a start.
type point struct {
	value float64
	start pcommon.Timestamp
}

func newWorld(t *testing.T) *world {
	return &world{t: t, values: map[string][]byte{}, series: map[string]point{}, hours: map[string]usage.Row{}, kill: -1}
}

// bench is a started connector.
type bench struct {
	*world
	killed bool
	ports  []*port
	tel    *componenttest.Telemetry
	logs   *observer.ObservedLogs
}

// boot starts a connector with both outputs.
func (w *world) boot(change ...func(*Config)) *bench {
	w.t.Helper()
	b, err := w.tryBoot(change...)
	require.NoError(w.t, err)
	return b
}

func (w *world) tryBoot(change ...func(*Config)) (*bench, error) {
	cfg := createDefaultConfig().(*Config)
	cfg.Storage = &diskID
	for _, c := range change {
		c(cfg)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	b := &bench{world: w, tel: componenttest.NewTelemetry()}
	set := connector.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: b.tel.NewTelemetrySettings()}
	var core zap.Option
	core, b.logs = observed()
	set.Logger = zap.NewNop().WithOptions(core)
	f := NewFactory()
	m, err := f.CreateMetricsToMetrics(w.t.Context(), set, cfg, metricsSink{b})
	require.NoError(w.t, err)
	l, err := f.CreateMetricsToLogs(w.t.Context(), set, cfg, logsSink{b})
	require.NoError(w.t, err)
	b.ports = []*port{m.(*port), l.(*port)}
	for _, p := range b.ports {
		if err := p.Start(w.t.Context(), host{b}); err != nil {
			return b, errors.Join(err, b.stop())
		}
	}
	return b, nil
}

func (b *bench) stop() error {
	var errs []error
	for _, p := range b.ports {
		errs = append(errs, p.Shutdown(context.Background()))
	}
	return errors.Join(append(errs, b.tel.Shutdown(context.Background()))...)
}

// step notes something that is done with the world, and reports whether it is: not by a
// process that was killed.
func (b *bench) step(format string, args ...any) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.killed && b.kill == len(b.steps) {
		b.killed, b.kill = true, -1
	}
	if b.killed {
		return false
	}
	b.steps = append(b.steps, fmt.Sprintf(format, args...))
	return true
}

// read gives the connector metrics, through all of its inputs.
func (b *bench) read(md pmetric.Metrics) {
	for _, p := range b.ports {
		require.NoError(b.t, p.ConsumeMetrics(b.t.Context(), md))
	}
}

// run lets time pass, with a snapshot of the fleet every 15 seconds.
func (b *bench) run(d time.Duration, fleet ...device) {
	for range int(d / (15 * time.Second)) {
		b.read(snapshot(time.Now(), fleet...))
		time.Sleep(15 * time.Second)
		synctest.Wait()
	}
}

// sum adds up the series of a metric that have all of some attributes.
func (w *world) sum(metric string, attrs ...string) (sum float64) {
	for name, p := range w.series {
		if strings.HasPrefix(name, metric+"{") && !slices.ContainsFunc(attrs, func(a string) bool { return !strings.Contains(name, a) }) {
			sum += p.value
		}
	}
	return sum
}

// rows adds up the time of all rows of hours.
func (w *world) rows() (sum time.Duration) {
	for _, row := range w.hours {
		sum += time.Duration(row.Time) * time.Millisecond
	}
	return sum
}

// statuses are what was reported of the component.
func (w *world) statuses() []componentstatus.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.status)
}

// counter adds up the points of a metric about the connector.
func (b *bench) counter(name string) (sum int64) {
	b.t.Helper()
	m, err := b.tel.GetMetric(name)
	require.NoError(b.t, err)
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		sum += p.Value
	}
	return sum
}

// lag is otelcol_gpu_cost_lag_seconds.
func (b *bench) lag() time.Duration {
	b.t.Helper()
	m, err := b.tel.GetMetric("otelcol_gpu_cost_lag")
	require.NoError(b.t, err)
	return time.Duration(m.Data.(metricdata.Gauge[float64]).DataPoints[0].Value * float64(time.Second))
}

// device is a board of a node with a model, and what owns it.
type device struct{ id, service string }

// snapshot is gpu.allocation of a node with some devices, their utilization and energy: 300
// watts.
func snapshot(at time.Time, fleet ...device) pmetric.Metrics {
	md := pmetric.NewMetrics()
	add := func(d device, m names.Metric, value float64) pcommon.Map {
		rm := md.ResourceMetrics().AppendEmpty()
		attrs := rm.Resource().Attributes()
		attrs.PutStr(names.K8sClusterName, "c")
		attrs.PutStr(names.K8sNodeName, "n")
		if d.service != "" {
			attrs.PutStr(names.K8sNamespaceName, "ml")
			attrs.PutStr(names.K8sPodName, d.service+"-0")
			attrs.PutStr(names.K8sContainerName, "main")
			attrs.PutStr(names.K8sPodUID, "uid-"+d.service)
			attrs.PutStr(names.ServiceName, d.service)
		}
		if m.Name != names.GPUAllocation.Name {
			attrs.PutStr(names.HwID, d.id)
			attrs.PutStr(names.HwType, names.HwTypeGPU)
			attrs.PutStr(names.HwModel, "H100")
		}
		p := m.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetDoubleValue(value)
		p.Attributes().PutStr(names.HwID, d.id)
		return p.Attributes()
	}
	for _, d := range fleet {
		add(d, names.GPUUtilization, 0.5).PutStr(names.HwGPUTask, "general")
		add(d, names.HwEnergy, 300*time.Duration(at.UnixNano()).Seconds())
		held := 0.0
		if d.service != "" {
			held = 1
		}
		attrs := add(d, names.GPUAllocation, held)
		attrs.PutStr(names.K8sResourceName, "nvidia.com/gpu")
		attrs.PutStr(names.GPUAttributionSource, names.SourcePodResources)
		attrs.PutStr(names.GPUSharing, names.SharingNone)
	}
	return md
}

var (
	chat = device{"GPU-00000000-0000-0000-0000-000000000001", "chat"}
	idle = device{"GPU-00000000-0000-0000-0000-000000000002", ""}
)

func priced(cfg *Config) {
	cfg.Prices = []prices.RuleConfig{{Match: map[string]string{prices.MatchModel: "*"}, GPUHour: "2.95", Source: "test"}}
}

// host has the disk, and takes the status.
type host struct{ b *bench }

func (h host) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{diskID: disk{b: h.b}}
}

func (h host) Report(e *componentstatus.Event) {
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	h.b.status = append(h.b.status, e.Status())
}

// disk is a storage extension, and its client.
type disk struct {
	component.StartFunc
	component.ShutdownFunc
	b *bench
}

var _ storage.Extension = disk{}

func (d disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}

func (d disk) Get(_ context.Context, key string) ([]byte, error) {
	return slices.Clone(d.b.values[key]), nil
}

func (d disk) Set(_ context.Context, key string, value []byte) error {
	if d.b.hangs != nil {
		<-d.b.hangs // as file_storage, it heeds no context
	}
	if d.b.disk != nil {
		return d.b.disk
	}
	if d.b.step("write") {
		d.b.values[key] = slices.Clone(value)
	}
	return nil
}

func (disk) Delete(context.Context, string) error               { return errors.New("not used") }
func (disk) Batch(context.Context, ...*storage.Operation) error { return errors.New("not used") }
func (disk) Close(context.Context) error                        { return nil }

// metricsSink keeps the newest point of each series. A counter that falls, or that does not
// change its start when it does, fails the test.
type metricsSink struct{ *bench }

func (metricsSink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s metricsSink) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	if err := s.next[0]; err != nil {
		return err
	}
	if !s.step("metrics") {
		return nil
	}
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			var points pmetric.NumberDataPointSlice
			if m.Type() == pmetric.MetricTypeGauge {
				points = m.Gauge().DataPoints()
			} else {
				points = m.Sum().DataPoints()
			}
			for _, p := range points.All() {
				var attrs []string
				for k, v := range p.Attributes().All() {
					attrs = append(attrs, k+"="+v.Str())
				}
				slices.Sort(attrs)
				name := m.Name() + "{" + strings.Join(attrs, ",") + "}"
				before, known := s.series[name]
				if p.Flags().NoRecordedValue() {
					delete(s.series, name)
					continue
				}
				if known && m.Type() == pmetric.MetricTypeSum && p.DoubleValue() < before.value {
					require.Greater(s.t, p.StartTimestamp(), before.start, "%s fell from %v to %v, with the same start", name, before.value, p.DoubleValue())
				}
				s.series[name] = point{p.DoubleValue(), p.StartTimestamp()}
			}
		}
	}
	return nil
}

// logsSink keeps rows as a store does: a closed one replaces an open one, the highest
// revision counts.
type logsSink struct{ *bench }

func (logsSink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s logsSink) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	if s.stuck != nil {
		<-s.stuck
	}
	if err := s.next[1]; err != nil {
		return err
	}
	if !s.step("rows") {
		return nil
	}
	for _, record := range logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
		row, err := usage.FromRecord(record)
		require.NoError(s.t, err)
		id := row.ID()
		before, known := s.hours[id]
		if known && !before.Open && (row.Open || row.Revision < before.Revision) {
			continue
		}
		if known && !before.Open && row.Revision == before.Revision {
			require.Equal(s.t, before, row, "two contents of one revision")
		}
		s.hours[id] = row
	}
	return nil
}

func observed() (zap.Option, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	return zap.WrapCore(func(zapcore.Core) zapcore.Core { return core }), logs
}
