// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package besteffortconnector

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/connector/besteffortconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/connector/besteffortconnector/internal/metadatatest"
)

func oneMetric(name string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(name)
	m.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
	return md
}

func oneLog() plog.Logs {
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	return ld
}

func oneSpan() ptrace.Traces {
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	return td
}

// fixture is a connector's settings, with what it logs and counts.
type fixture struct {
	connector.Settings
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
}

func newFixture(t *testing.T) fixture {
	f := fixture{Settings: connectortest.NewNopSettings(metadata.Type), telemetry: componenttest.NewTelemetry()}
	f.TelemetrySettings = f.telemetry.NewTelemetrySettings()
	core, logs := observer.New(zap.InfoLevel)
	f.Logger, f.logs = zap.New(core), logs
	t.Cleanup(func() { assert.NoError(t, f.telemetry.Shutdown(context.Background())) })
	return f
}

func (f fixture) metrics(t *testing.T, behind map[pipeline.ID]consumer.Metrics) connector.Metrics {
	c, err := NewFactory().CreateMetricsToMetrics(t.Context(), f.Settings, createDefaultConfig(), connector.NewMetricsRouter(behind))
	require.NoError(t, err)
	run(t, c)
	return c
}

func run(t *testing.T, c component.Component) {
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, c.Shutdown(context.Background())) })
}

// dropped is the data point of what a pipeline did not take.
func dropped(pipeline, reason string, n int64) metricdata.DataPoint[int64] {
	return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("pipeline", pipeline), attribute.String("reason", reason))}
}

var errGone = errors.New("connection refused")

// For each signal: what is there is forwarded, and an error of the pipeline is
// counted, logged once, and not returned.
func TestSignals(t *testing.T) {
	id := pipeline.NewIDWithName(pipeline.SignalMetrics, "backend")
	for name, send := range map[string]func(t *testing.T, f fixture, fails bool) (taken func() int, err error){
		"metrics": func(t *testing.T, f fixture, fails bool) (func() int, error) {
			sink := new(consumertest.MetricsSink)
			behind := map[pipeline.ID]consumer.Metrics{id: sink}
			if fails {
				behind[id] = consumertest.NewErr(errGone)
			}
			return sink.DataPointCount, f.metrics(t, behind).ConsumeMetrics(t.Context(), oneMetric("m"))
		},
		"logs": func(t *testing.T, f fixture, fails bool) (func() int, error) {
			sink := new(consumertest.LogsSink)
			behind := map[pipeline.ID]consumer.Logs{id: sink}
			if fails {
				behind[id] = consumertest.NewErr(errGone)
			}
			c, err := NewFactory().CreateLogsToLogs(t.Context(), f.Settings, createDefaultConfig(), connector.NewLogsRouter(behind))
			require.NoError(t, err)
			run(t, c)
			return sink.LogRecordCount, c.ConsumeLogs(t.Context(), oneLog())
		},
		"traces": func(t *testing.T, f fixture, fails bool) (func() int, error) {
			sink := new(consumertest.TracesSink)
			behind := map[pipeline.ID]consumer.Traces{id: sink}
			if fails {
				behind[id] = consumertest.NewErr(errGone)
			}
			c, err := NewFactory().CreateTracesToTraces(t.Context(), f.Settings, createDefaultConfig(), connector.NewTracesRouter(behind))
			require.NoError(t, err)
			run(t, c)
			return sink.SpanCount, c.ConsumeTraces(t.Context(), oneSpan())
		},
	} {
		t.Run(name, func(t *testing.T) {
			well := newFixture(t)
			taken, err := send(t, well, false)
			assert.NoError(t, err)
			assert.Equal(t, 1, taken())
			assert.Zero(t, well.logs.Len())
			failing := newFixture(t)
			_, err = send(t, failing, true)
			assert.NoError(t, err)
			assert.Equal(t, 1, failing.logs.FilterField(zap.String("error", errGone.Error())).Len())
			metadatatest.AssertEqualConnectorBestEffortDropped(t, failing.telemetry,
				[]metricdata.DataPoint[int64]{dropped("metrics/backend", "refused", 1)}, metricdatatest.IgnoreTimestamp())
		})
	}
}

// stuck is an exporter's push that does not return until the test ends.
func stuck(t *testing.T) func(context.Context, pmetric.Metrics) error {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	return func(context.Context, pmetric.Metrics) error {
		<-release
		return nil
	}
}

// A backend that hangs fills the queue of its exporter. Neither the sender nor the
// other pipeline learns of it, and the log has one line.
func TestFullQueueBehind(t *testing.T) {
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.Sizer, queue.QueueSize, queue.NumConsumers = exporterhelper.RequestSizerTypeRequests, 2, 1
	queue.Batch = configoptional.None[exporterhelper.BatchConfig]()
	var backend exporter.Metrics
	t.Cleanup(func() { assert.NoError(t, backend.Shutdown(context.Background())) })
	var err error
	backend, err = exporterhelper.NewMetrics(t.Context(), exportertest.NewNopSettings(component.MustNewType("backend")), struct{}{},
		stuck(t), exporterhelper.WithQueue(configoptional.Some(queue)))
	require.NoError(t, err)
	require.NoError(t, backend.Start(t.Context(), componenttest.NewNopHost()))

	f, sink := newFixture(t), new(consumertest.MetricsSink)
	c := f.metrics(t, map[pipeline.ID]consumer.Metrics{
		pipeline.NewIDWithName(pipeline.SignalMetrics, "backend"):    backend,
		pipeline.NewIDWithName(pipeline.SignalMetrics, "prometheus"): sink,
	})
	for range 20 {
		assert.NoError(t, c.ConsumeMetrics(t.Context(), oneMetric("gpu.service.pods")))
	}
	assert.Equal(t, 20, sink.DataPointCount())
	assert.Equal(t, 1, f.logs.Len(), "%v", f.logs.All())
	got, err := f.telemetry.GetMetric("otelcol_connector_best_effort_dropped")
	require.NoError(t, err)
	points := got.Data.(metricdata.Sum[int64]).DataPoints
	require.Len(t, points, 1)
	assert.GreaterOrEqual(t, points[0].Value, int64(17), "three wait: two in the queue, and one with the backend")
}

// The end of a series in a batch that was refused comes with the next one, also
// where another has that batch too, who may not see it change.
func TestEndsAreKept(t *testing.T) {
	var got []int
	fails := true
	behind, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		if fails {
			return errGone
		}
		got = append(got, md.DataPointCount())
		return nil
	})
	require.NoError(t, err)
	c := newFixture(t).metrics(t, map[pipeline.ID]consumer.Metrics{pipeline.NewID(pipeline.SignalMetrics): behind})
	end := oneMetric("gpu.allocation")
	end.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).
		SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	require.NoError(t, c.ConsumeMetrics(t.Context(), end))
	fails = false
	for range 2 {
		next := oneMetric("m")
		next.MarkReadOnly()
		require.NoError(t, c.ConsumeMetrics(t.Context(), next))
		assert.Equal(t, 1, next.DataPointCount())
	}
	assert.Equal(t, []int{2, 1}, got)
}

// Two pipelines get data of their own: one may change it in the background.
func TestPipelinesShareNothing(t *testing.T) {
	renamed, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName("renamed")
		return errGone
	}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)
	sink := new(consumertest.MetricsSink)
	f := newFixture(t)
	c := f.metrics(t, map[pipeline.ID]consumer.Metrics{
		pipeline.NewIDWithName(pipeline.SignalMetrics, "a"): renamed, pipeline.NewIDWithName(pipeline.SignalMetrics, "b"): sink,
	})
	require.NoError(t, c.ConsumeMetrics(t.Context(), oneMetric("m")))
	assert.Equal(t, "m", sink.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Name())
}
