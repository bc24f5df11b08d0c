// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store/storetest"
)

// shippedTransform is the processor transform/prometheus of config/gateway.yaml.
func shippedTransform(t *testing.T, next consumer.Metrics) consumer.Metrics {
	t.Helper()
	text, err := os.ReadFile("../../config/gateway.yaml")
	require.NoError(t, err)
	var file struct {
		Processors map[string]map[string]any `yaml:"processors"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.NotEmpty(t, file.Processors["transform/prometheus"])
	factory := transformprocessor.NewFactory()
	c := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(file.Processors["transform/prometheus"]).Unmarshal(c))
	p, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), c, next)
	require.NoError(t, err)
	run(t, p, nil)
	return p
}

func run(t *testing.T, c component.Component, h component.Host) {
	t.Helper()
	require.NoError(t, c.Start(t.Context(), h))
	t.Cleanup(func() { require.NoError(t, c.Shutdown(context.Background())) })
}

func create(t *testing.T, factory exporter.Factory, values map[string]any, h component.Host) consumer.Metrics {
	t.Helper()
	c := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(values).Unmarshal(c))
	e, err := factory.CreateMetrics(t.Context(), exportertest.NewNopSettings(factory.Type()), c)
	require.NoError(t, err)
	run(t, e, h)
	return e
}

// world is telemetry of all kinds that the components here make, and of some that
// others may: from begin on, a point every 15 s.
type world struct {
	begin time.Time
	md    pmetric.Metrics
}

// resource appends a resource; each attribute's value is text.
func (w *world) resource(attributes map[string]string) pmetric.ScopeMetrics {
	rm := w.md.ResourceMetrics().AppendEmpty()
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		rm.Resource().Attributes().PutStr(key, attributes[key])
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver")
	sm.Scope().SetVersion("0.1.0")
	sm.Scope().Attributes().PutStr("scope.attribute", "x")
	return sm
}

func metric(sm pmetric.ScopeMetrics, name, unit string) pmetric.Metric {
	m := sm.Metrics().AppendEmpty()
	m.SetName(name)
	m.SetUnit(unit)
	m.SetDescription("What " + name + " is.")
	return m
}

func (w *world) at(step int) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(w.begin.Add(time.Duration(step) * 15 * time.Second))
}

func (w *world) gauge(sm pmetric.ScopeMetrics, name, unit string, step int, v float64, attributes map[string]string) {
	p := metric(sm, name, unit).SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(w.at(step))
	p.SetDoubleValue(v)
	for key, value := range attributes {
		p.Attributes().PutStr(key, value)
	}
}

// batch is what is sent at a step.
func batch(begin time.Time, step int, random *rand.Rand) pmetric.Metrics {
	w := &world{begin, pmetric.NewMetrics()}
	for gpu := range 4 {
		id := fmt.Sprintf("GPU-0000000%d", gpu)
		resource := map[string]string{
			names.K8sClusterName: "prod", names.K8sNodeName: "node-a", names.HostName: "dcgm-exporter-x7k", names.HwID: id, names.HwModel: "NVIDIA H200",
			names.K8sNamespaceName: "ml", names.K8sPodName: fmt.Sprint("llama-", gpu/2), names.K8sPodUID: "uid", names.K8sContainerName: "server",
			names.ServiceName: "llama", "service.namespace": "ml", "service.instance.id": "i", "service.version": "7", "k8s.deployment.name": "llama", "server.address": "10.0.0.1", "server.port": "9400",
		}
		if gpu == 3 { // no Kubernetes
			resource = map[string]string{names.HostName: "workstation", names.HwID: id, names.ServiceName: "notebook"}
		}
		sm := w.resource(resource)
		w.gauge(sm, "hw.gpu.utilization", "1", step, random.Float64(), map[string]string{names.HwID: id})
		w.gauge(sm, "hw.gpu.memory.usage", "By", step, float64(random.IntN(80<<30)), map[string]string{names.HwID: id})
		w.gauge(sm, "hw.temperature", "Cel", step, 60, map[string]string{names.HwID: id, "hw.type": "gpu"})
		w.gauge(sm, "hw.power", "W", step, 0, map[string]string{names.HwID: id, "empty": ""})
		w.gauge(sm, "gpu.clock", "Hz", step, 1.98e9, map[string]string{names.HwID: id, "a.b": "1", "a_b": "2", "1st": "x", "__reserved": "y", "Größe": "z"})
		energy := metric(sm, "hw.energy", "J").SetEmptySum()
		energy.SetIsMonotonic(true)
		energy.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := energy.DataPoints().AppendEmpty()
		p.SetTimestamp(w.at(step))
		p.SetStartTimestamp(w.at(0))
		p.SetIntValue(int64(step) * 4500)
		p.Attributes().PutStr(names.HwID, id)
		held := metric(sm, "gpu.held", "{device}").SetEmptySum()
		held.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p = held.DataPoints().AppendEmpty()
		p.SetTimestamp(w.at(step))
		p.SetIntValue(1)
	}
	// An owner that comes and goes: markers in a metric of their own.
	sm := w.resource(map[string]string{names.HwID: "GPU-9", names.K8sPodName: "job-1"})
	if step%10 < 5 {
		w.gauge(sm, "gpu.allocation", "1", step, 1, map[string]string{names.HwID: "GPU-9"})
	} else if step%10 == 5 {
		p := metric(sm, "gpu.allocation", "1").SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(w.at(step))
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		p.Attributes().PutStr(names.HwID, "GPU-9")
	}
	// Names that were chosen to do harm.
	for name, text := range storetest.Hostile {
		sm := w.resource(map[string]string{names.K8sPodName: text, names.ServiceName: text})
		w.gauge(sm, "hostile", "", step, 1, map[string]string{"kind": name})
	}
	w.others(step)
	return w.md
}

// others are types that the components here do not make.
func (w *world) others(step int) {
	sm := w.resource(map[string]string{names.ServiceName: "engine"})
	h := metric(sm, "request.duration", "s").SetEmptyHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	hp := h.DataPoints().AppendEmpty()
	hp.SetTimestamp(w.at(step))
	hp.ExplicitBounds().FromRaw([]float64{0.1, 1})
	hp.BucketCounts().FromRaw([]uint64{uint64(step), 2, 1})
	hp.SetCount(uint64(step) + 3)
	hp.SetSum(float64(step) * 1.5)
	x := metric(sm, "queue.time", "ms").SetEmptyExponentialHistogram()
	x.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	xp := x.DataPoints().AppendEmpty()
	xp.SetTimestamp(w.at(step))
	xp.SetScale(2)
	xp.SetCount(uint64(step) + 4)
	xp.SetSum(9)
	xp.SetZeroCount(1)
	xp.Positive().SetOffset(-3)
	xp.Positive().BucketCounts().FromRaw([]uint64{uint64(step), 0, 2})
	xp.Negative().BucketCounts().FromRaw([]uint64{1})
	q := metric(sm, "batch.size", "{request}").SetEmptySummary().DataPoints().AppendEmpty()
	q.SetTimestamp(w.at(step))
	q.SetCount(uint64(step))
	q.SetSum(4)
	quantile := q.QuantileValues().AppendEmpty()
	quantile.SetQuantile(0.99)
	quantile.SetValue(8)
}

// The same telemetry into gpu_store, with and without the shipped transform
// before it, and through that transform and prometheus_remote_write into a
// Prometheus server: the same series, labels, values, ends and gaps.
func TestBothWaysOfWritingGiveTheSame(t *testing.T) {
	p := startPrometheus(t)
	direct, prepared := startStore(t, limited), startStore(t, limited)
	into := func(s store.Store) consumer.Metrics {
		return create(t, gpustoreexporter.NewFactory(), map[string]any{}, host{store.DefaultID: s.(component.Component)})
	}
	outputs := []consumer.Metrics{
		into(direct),
		shippedTransform(t, into(prepared)),
		shippedTransform(t, create(t, prometheusremotewriteexporter.NewFactory(), map[string]any{
			"endpoint":                         p.url + "/api/v1/write",
			"translation_strategy":             "UnderscoreEscapingWithSuffixes",
			"disable_scope_info":               true,
			"resource_to_telemetry_conversion": map[string]any{"enabled": true},
			"target_info":                      map[string]any{"enabled": false},
			"remote_write_queue":               map[string]any{"num_consumers": 1},
		}, host{})),
	}
	const steps = 40
	begin := time.Now().Truncate(15 * time.Second).Add(-steps * 15 * time.Second)
	for step := range steps {
		for _, out := range outputs {
			md := batch(begin, step, rand.New(rand.NewPCG(1, uint64(step))))
			require.NoError(t, out.ConsumeMetrics(t.Context(), md))
		}
	}
	end := begin.Add(steps * 15 * time.Second)
	theirs := asking(t, p.url)
	samples := func(s store.Store) map[string]model.SampleStream {
		r, err := s.Instant(t.Context(), `{__name__=~".+"}[30m]`, end)
		require.NoError(t, err)
		out := map[string]model.SampleStream{}
		for _, stream := range r.Value.(model.Matrix) {
			if len(stream.Values) == 0 {
				stream.Values = nil // of a native histogram
			}
			out[stream.Metric.String()] = *stream
		}
		return out
	}
	// Exporters have queues: the last step arrives a little later.
	var want map[string]model.SampleStream
	last := fmt.Sprintf(`batch_size_count{service_name="engine"} == %d`, steps-1)
	for _, s := range []store.Store{direct, prepared, theirs} {
		require.Eventually(t, func() bool {
			r, err := s.Instant(t.Context(), last, end)
			return err == nil && len(r.Value.(model.Vector)) == 1
		}, 2*time.Minute, 50*time.Millisecond)
	}
	// Of the last step too, what is in another request.
	count := func(all map[string]model.SampleStream) (n int) {
		for _, stream := range all {
			n += len(stream.Values) + len(stream.Histograms)
		}
		return n
	}
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if want = samples(theirs); count(want) == count(samples(direct)) && count(want) == count(samples(prepared)) {
			break
		}
	}
	require.Greater(t, len(want), 40)
	assert.Contains(t, slices.Collect(maps.Keys(want)), `hw_gpu_utilization_ratio{host_name="workstation", hw_id="GPU-00000003", service_name="notebook"}`)
	for name := range want {
		assert.NotContains(t, name, "target_info")
		assert.NotContains(t, name, "job=")
	}
	for what, s := range map[string]store.Store{"direct": direct, "behind the transform": prepared} {
		got := samples(s)
		assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)), what)
		for name, stream := range want {
			if !assert.Equal(t, stream, got[name], "%s: %s", what, name) {
				return
			}
		}
		// A marker is no sample: what it ended shows in charts.
		for _, query := range []string{`gpu_allocation_ratio`, `sum(hw_gpu_memory_usage_bytes)`, `rate(hw_energy_joules_total[1m])`} {
			r := store.Range{Start: begin, End: end, Step: 15 * time.Second}
			ours, err := s.Range(t.Context(), query, r)
			require.NoError(t, err)
			expected, err := theirs.Range(t.Context(), query, r)
			require.NoError(t, err)
			require.NotEmpty(t, expected.Value, query)
			assert.Equal(t, expected.Value, ours.Value, "%s: %s", what, query)
		}
	}
}
