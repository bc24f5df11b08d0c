// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package appguardprocessor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/reserved"
	"github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor/internal/metadata"
)

type bench struct {
	t    *testing.T
	tel  *componenttest.Telemetry
	logs *observer.ObservedLogs
	set  processor.Settings
	cfg  *Config
}

func newBench(t *testing.T, change func(*Config)) *bench {
	b := &bench{t: t, tel: componenttest.NewTelemetry(), set: processortest.NewNopSettings(metadata.Type), cfg: createDefaultConfig().(*Config)}
	t.Cleanup(func() { require.NoError(t, b.tel.Shutdown(context.Background())) })
	b.set.TelemetrySettings = b.tel.NewTelemetrySettings()
	core, logs := observer.New(zap.WarnLevel)
	b.set.Logger, b.logs = zap.New(core), logs
	if change != nil {
		change(b.cfg)
	}
	require.NoError(t, b.cfg.Validate())
	return b
}

// dropped are the counts of one counter by reason.
func (b *bench) dropped(counter string) map[string]int64 {
	m, err := b.tel.GetMetric("otelcol_" + counter)
	if err != nil {
		return nil
	}
	counts := map[string]int64{}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		reason, _ := p.Attributes.Value(attribute.Key("reason"))
		counts[reason.AsString()] = p.Value
	}
	return counts
}

// metrics returns a processor with a clock that stands still, and what passes it.
func (b *bench) metrics() (*metricsProcessor, *consumertest.MetricsSink) {
	sink := &consumertest.MetricsSink{}
	p, err := createMetrics(b.t.Context(), b.set, b.cfg, sink)
	require.NoError(b.t, err)
	require.NoError(b.t, p.Start(b.t.Context(), componenttest.NewNopHost()))
	b.t.Cleanup(func() { require.NoError(b.t, p.Shutdown(context.Background())) })
	m := p.(*metricsProcessor)
	m.now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	return m, sink
}

// gauges are metrics of a pod with a point for each name.
func gauges(pod string, names ...string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	if pod != "" {
		rm.Resource().Attributes().PutStr("k8s.namespace.name", "shop")
		rm.Resource().Attributes().PutStr("k8s.pod.name", pod)
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	for _, name := range names {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		m.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
	}
	return md
}

func passed(sink *consumertest.MetricsSink) (names []string) {
	for _, md := range sink.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					names = append(names, m.Name())
				}
			}
		}
	}
	return names
}

func TestReservedNamesAreDropped(t *testing.T) {
	b := newBench(t, func(c *Config) { c.Allow = []string{"up", "scrape_samples_post_metric_relabeling"} })
	p, sink := b.metrics()
	require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("web-1", "http.requests", "_hw.gpu.temperature", "gpu.exporter.up", "device:gpu_xid_errors:max",
		"up", "scrape_samples_post_metric_relabeling", "scrape_duration_seconds", "ALERTS", "gpu_cache_usage_perc", "vllm:kv", "___")))
	require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("web-1", "-gpu.service.partial")), "nothing is left of it")
	assert.Equal(t, []string{"http.requests", "up", "scrape_samples_post_metric_relabeling", "gpu_cache_usage_perc", "vllm:kv"}, passed(sink))
	assert.Len(t, sink.AllMetrics(), 1)
	assert.Equal(t, map[string]int64{"reserved": 6, "no_name": 1}, b.dropped("app_guard_dropped_points"))
	require.Equal(t, 2, b.logs.Len(), "once for each sender and reason")
	assert.Equal(t, "shop/web-1", b.logs.FilterFieldKey("sender").All()[0].ContextMap()["sender"])
}

// What the inference processor writes comes through where it stands before, and from
// nowhere else: autoscalers read it. By inference_engine its gen_ai.server.* differs
// from what SDKs measure.
func TestInferenceIsTheProcessors(t *testing.T) {
	const shared, own = "gen_ai.server.request.duration", "inference.server.requests"
	for _, allowed := range []bool{true, false} {
		b := newBench(t, func(c *Config) { c.AllowInference = allowed })
		p, sink := b.metrics()
		md := gauges("llm-1", shared, own, "inference_server_requests_limit", "_inference/gateway.requests", "hw.power")
		rm := md.ResourceMetrics().At(0)
		rm.Resource().Attributes().PutStr("inference.engine.hint", "vllm")
		rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes().PutStr("inference.engine", "vllm")
		require.NoError(t, p.ConsumeMetrics(t.Context(), md))
		rm = sink.AllMetrics()[0].ResourceMetrics().At(0)
		attributes := rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes().AsRaw()
		if allowed {
			assert.Equal(t, []string{shared, own, "inference_server_requests_limit", "_inference/gateway.requests"}, passed(sink))
			assert.Equal(t, map[string]any{"inference.engine": "vllm"}, attributes)
			assert.Contains(t, rm.Resource().Attributes().AsRaw(), "inference.engine.hint")
		} else {
			assert.Equal(t, []string{shared}, passed(sink))
			assert.Equal(t, map[string]any{"app.inference.engine": "vllm"}, attributes)
			assert.Contains(t, rm.Resource().Attributes().AsRaw(), "app.inference.engine.hint")
		}
	}
}

// Two metrics that Prometheus gives one name are duplicates there: the first has it.
// In one registry a metric has one type, whatever its sender; elsewhere no sender takes
// another's.
func TestOneSeriesIsWrittenInOneWay(t *testing.T) {
	histograms := func(pod string, names ...string) pmetric.Metrics {
		md := gauges(pod, names...)
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			m.SetEmptyHistogram().DataPoints().AppendEmpty()
		}
		return md
	}
	for _, one := range []bool{true, false} {
		b := newBench(t, func(c *Config) { c.OneRegistry = one })
		p, sink := b.metrics()
		send := func(md pmetric.Metrics) []string {
			sink.Reset()
			require.NoError(t, p.ConsumeMetrics(t.Context(), md))
			return passed(sink)
		}
		assert.Equal(t, []string{"foo.bar", "foo.baz"}, send(gauges("web-1", "foo.bar", "foo_bar", "foo-bar", "foo.baz")))
		assert.Equal(t, []string{"foo_bar"}, send(gauges("web-2", "foo_bar")))
		assert.Equal(t, []string{"foo.qux"}, send(histograms("web-1", "foo.baz", "foo.qux")))
		assert.Equal(t, []string{"foo.qux.counts"}, send(gauges("web-1", "foo.qux.count", "foo_qux_bucket", "foo.qux.counts")), "a histogram's own series")
		assert.Equal(t, []string{"lat.count"}, send(gauges("web-1", "lat.count")))
		assert.Empty(t, send(histograms("web-1", "lat")), "its count is another's")
		others := []string{"foo.baz", "foo.qux"}
		if one {
			others = []string{"foo.qux"}
		}
		assert.Equal(t, others, send(histograms("web-3", "foo.baz", "foo.qux")))
	}
}

func TestIdentityOfOthersIsRenamed(t *testing.T) {
	b := newBench(t, nil)
	p, sink := b.metrics()
	md := gauges("web-1", "requests")
	rm := md.ResourceMetrics().At(0)
	rm.Resource().Attributes().PutStr("hw.id", "GPU-1")
	point := rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes()
	for _, key := range []string{"hw_id", "k8s.pod.name", "service.name", "__name__", "route"} {
		point.PutStr(key, "x")
	}
	require.NoError(t, p.ConsumeMetrics(t.Context(), md))
	rm = sink.AllMetrics()[0].ResourceMetrics().At(0)
	assert.Equal(t, map[string]any{"k8s.namespace.name": "shop", "k8s.pod.name": "web-1", "app.hw.id": "GPU-1"}, rm.Resource().Attributes().AsRaw())
	assert.Equal(t, map[string]any{"app.hw_id": "x", "app.k8s.pod.name": "x", "app.service.name": "x", "app.name__": "x", "route": "x"},
		rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes().AsRaw())
	assert.Equal(t, map[string]int64{"": 5}, b.dropped("app_guard_attributes_renamed"))
}

func TestLimits(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxSeries, c.MaxSeriesPerSender, c.MaxPointsPerMinutePerSender = 12, 8, 20 })
	p, sink := b.metrics()
	var many []string
	for i := range 15 {
		many = append(many, fmt.Sprintf("m%d", i))
	}
	require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("web-1", many...)))
	assert.Equal(t, many[:8], passed(sink))
	sink.Reset()
	require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("web-1", many...)))
	assert.Equal(t, many[:5], passed(sink), "the same series again, until 20 points of this minute are reached")
	sink.Reset()
	from := client.NewContext(t.Context(), client.Info{Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 4711}})
	require.NoError(t, p.ConsumeMetrics(from, gauges("", many...)))
	assert.Equal(t, many[:4], passed(sink), "another sender has what is left for all")
	assert.Equal(t, map[string]int64{"max_series_per_sender": 7, "rate": 10, "max_series": 11}, b.dropped("app_guard_dropped_points"))
	assert.Equal(t, "10.0.0.7", b.logs.All()[2].ContextMap()["sender"])
	series, err := b.tel.GetMetric("otelcol_app_guard_series")
	require.NoError(t, err)
	assert.EqualValues(t, 12, series.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
}

func TestSeriesOfOnePoint(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxSeriesPerSender = 20 })
	p, sink := b.metrics()
	histogram := func(attributes ...string) pmetric.Metrics {
		md := gauges("web-1", "latency")
		point := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetEmptyHistogram().DataPoints().AppendEmpty()
		point.ExplicitBounds().FromRaw(make([]float64, 14))
		for _, a := range attributes {
			point.Attributes().PutStr(a, a)
		}
		return md
	}
	require.NoError(t, p.ConsumeMetrics(t.Context(), histogram("a", "b")))
	require.NoError(t, p.ConsumeMetrics(t.Context(), histogram("b", "a")))
	assert.Len(t, sink.AllMetrics(), 2, "the order of attributes makes no series")
	require.NoError(t, p.ConsumeMetrics(t.Context(), histogram("c")))
	assert.Len(t, sink.AllMetrics(), 2, "17 and 17 are more than 20")
	require.NoError(t, p.ConsumeMetrics(t.Context(), histogram(strings.Repeat("x", 3000))))
	require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("web-1", strings.Repeat("x", 300))))
	require.NoError(t, p.ConsumeMetrics(t.Context(), gauges(strings.Repeat("x", 5000), "m")))
	assert.Equal(t, map[string]int64{"max_series_per_sender": 1, "too_large": 3}, b.dropped("app_guard_dropped_points"))
}

func TestLogsAndTraces(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxPointsPerMinutePerSender = 2 })
	logs, traces := &consumertest.LogsSink{}, &consumertest.TracesSink{}
	l, err := createLogs(t.Context(), b.set, b.cfg, logs)
	require.NoError(t, err)
	ld := plog.NewLogs()
	records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, name := range []string{"gpu.xid", "a", "b", "c"} {
		records.AppendEmpty().SetEventName(name)
	}
	require.NoError(t, l.ConsumeLogs(t.Context(), ld))
	assert.Equal(t, 2, logs.LogRecordCount())
	assert.Equal(t, map[string]int64{"reserved": 1, "rate": 1}, b.dropped("app_guard_dropped_log_records"))
	require.NoError(t, l.Shutdown(t.Context()))

	tr, err := createTraces(t.Context(), b.set, b.cfg, traces)
	require.NoError(t, err)
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for range 3 {
		spans.AppendEmpty().SetName("GET /")
	}
	require.NoError(t, tr.ConsumeTraces(t.Context(), td))
	assert.Equal(t, 2, traces.SpanCount())
	assert.Equal(t, map[string]int64{"rate": 1}, b.dropped("app_guard_dropped_spans"))
	require.NoError(t, tr.Shutdown(t.Context()))
}

// A batch that the next component refuses and that comes again uses up nothing of what its
// sender may send in a minute, and what is dropped of it is counted once. One that is refused
// for good counts.
func TestRefusedBatches(t *testing.T) {
	var refuse error
	passed := 0
	take := func(n int) error { passed = n; return refuse }
	signals := map[string]func(*bench) func() error{
		"points": func(b *bench) func() error {
			p, _ := b.metrics()
			p.next, _ = consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error { return take(md.DataPointCount()) })
			return func() error { return p.ConsumeMetrics(t.Context(), gauges("web-1", "a", "b", "c", "d", "gpu.x")) }
		},
		"log_records": func(b *bench) func() error {
			next, _ := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error { return take(ld.LogRecordCount()) })
			l, err := createLogs(t.Context(), b.set, b.cfg, next)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, l.Shutdown(context.Background())) })
			return func() error {
				ld := plog.NewLogs()
				records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
				for _, name := range []string{"a", "b", "c", "d", "gpu.xid"} {
					records.AppendEmpty().SetEventName(name)
				}
				return l.ConsumeLogs(t.Context(), ld)
			}
		},
		"spans": func(b *bench) func() error {
			next, _ := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error { return take(td.SpanCount()) })
			tr, err := createTraces(t.Context(), b.set, b.cfg, next)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, tr.Shutdown(context.Background())) })
			return func() error {
				td := ptrace.NewTraces()
				spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
				for range 4 {
					spans.AppendEmpty().SetName("GET /")
				}
				return tr.ConsumeTraces(t.Context(), td)
			}
		},
	}
	full := errors.New("sending queue is full")
	for signal, start := range signals {
		for _, c := range []struct {
			name           string
			err            error
			passed         int
			reserved, rate int64
		}{
			{"comes again", full, 4, 1, 0},
			{"is refused for good", consumererror.NewPermanent(full), 0, 4, 6},
		} {
			t.Run(signal+" "+c.name, func(t *testing.T) {
				b := newBench(t, func(c *Config) { c.MaxPointsPerMinutePerSender = 10 })
				send := start(b)
				refuse = c.err
				for range 3 {
					require.ErrorIs(t, send(), full)
				}
				refuse, passed = nil, 0
				require.NoError(t, send())
				assert.Equal(t, c.passed, passed)
				dropped := b.dropped("app_guard_dropped_" + signal)
				assert.Equal(t, c.rate, dropped["rate"])
				if signal != "spans" { // a span has no name of GPU telemetry
					assert.Equal(t, c.reserved, dropped["reserved"])
				}
			})
		}
	}
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	c := &Config{Allow: []string{"hw_power_watts", "a b", "x:y", "up"}}
	err := c.Validate()
	for _, want := range []string{"max_series: 0: set it", "max_series_per_sender: 0", "max_points_per_minute_per_sender: 0", `allow::0: "hw_power_watts" is a name of GPU`, `allow::1: "a b"`, `allow::2: "x:y"`} {
		assert.ErrorContains(t, err, want)
	}
	assert.NotContains(t, err.Error(), "allow::3")
}

// FuzzConsumeMetrics feeds metrics of any shape. None that passes has a reserved
// name, and no label of a device.
func FuzzConsumeMetrics(f *testing.F) {
	marshaler := pmetric.ProtoMarshaler{}
	for _, md := range []pmetric.Metrics{gauges("web-1", "http.requests", "_hw.power", "x"), gauges("", "up")} {
		seed, err := marshaler.MarshalMetrics(md)
		require.NoError(f, err)
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(in)
		if err != nil {
			return
		}
		sink := &consumertest.MetricsSink{}
		p, err := createMetrics(t.Context(), processortest.NewNopSettings(metadata.Type), createDefaultConfig(), sink)
		require.NoError(t, err)
		require.NoError(t, p.ConsumeMetrics(t.Context(), md))
		require.NoError(t, p.Shutdown(t.Context()))
		for _, md := range sink.AllMetrics() {
			for _, rm := range md.ResourceMetrics().All() {
				for key := range rm.Resource().Attributes().All() {
					assert.False(t, reserved.ResourceAttribute(key), key)
				}
				for _, sm := range rm.ScopeMetrics().All() {
					for _, m := range sm.Metrics().All() {
						name, owner, err := reserved.Metric(m)
						assert.NoError(t, err)
						assert.Equal(t, reserved.Free, owner, name)
					}
				}
			}
		}
	})
}
