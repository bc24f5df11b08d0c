// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inferenceprocessor

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/metadatatest"
)

// pageOf is what a scrape of a target gives: a gauge for each value.
func pageOf(target string, values map[string]float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr(names.ServerAddress, target)
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	for name, v := range values {
		m := metrics.AppendEmpty()
		m.SetName(name)
		m.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(v)
	}
	return md
}

// What became of points is counted by engine and reason; an unknown family is logged
// once.
func TestTelemetry(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	set := metadatatest.NewSettings(tel)
	core, logs := observer.New(zap.InfoLevel)
	set.Logger = zap.New(core)
	var sink consumertest.MetricsSink
	p, err := NewFactory().CreateMetrics(t.Context(), set, createDefaultConfig(), &sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	for range 2 {
		require.NoError(t, p.ConsumeMetrics(t.Context(), pageOf("a", map[string]float64{
			"vllm:num_requests_running": 1, "vllm:kv_cache_usage_perc": 7, "vllm:prompt_tokens": 3, "vllm:new_in_some_version": 1,
		})))
	}
	engine := attribute.String("engine", "vllm")
	ignore := metricdatatest.IgnoreTimestamp()
	metadatatest.AssertEqualInferencePointsNormalised(t, tel, []metricdata.DataPoint[int64]{{Attributes: attribute.NewSet(engine), Value: 4}}, ignore)
	metadatatest.AssertEqualInferencePointsRefused(t, tel, []metricdata.DataPoint[int64]{
		{Attributes: attribute.NewSet(engine, attribute.String("reason", "sentinel")), Value: 2},
	}, ignore)
	metadatatest.AssertEqualInferenceFamiliesUnknown(t, tel, []metricdata.DataPoint[int64]{{Attributes: attribute.NewSet(engine), Value: 2}}, ignore)
	metadatatest.AssertEqualInferenceSeries(t, tel, []metricdata.DataPoint[int64]{{Value: 1}}, ignore)
	metadatatest.AssertEqualInferenceTargets(t, tel, []metricdata.DataPoint[int64]{{Value: 1}}, ignore)
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, []any{"vllm:new_in_some_version"}, logs.All()[0].ContextMap()["first"])
}

// Pages arrive from many scrapes at once; each target keeps a memory of its own.
func TestManyTargetsAtOnce(t *testing.T) {
	var sink consumertest.MetricsSink
	p, err := NewFactory().CreateMetrics(t.Context(), metadatatest.NewSettings(componenttest.NewTelemetry()), createDefaultConfig(), &sink)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for n := range 20 {
				assert.NoError(t, p.ConsumeMetrics(t.Context(), pageOf(fmt.Sprint(i), map[string]float64{"vllm:prompt_tokens": float64(n)})))
			}
		})
	}
	all.Wait()
	assert.Len(t, sink.AllMetrics(), 32*20)
	assert.Equal(t, 32*20, sink.DataPointCount())
}

// Families that are in no table are named once an hour.
func TestUnknownFamiliesAreLoggedHourly(t *testing.T) {
	set := metadatatest.NewSettings(componenttest.NewTelemetry())
	core, logs := observer.New(zap.InfoLevel)
	set.Logger = zap.New(core)
	p, err := newProcessor(set, createDefaultConfig().(*Config), consumertest.NewNop())
	require.NoError(t, err)
	start := time.Unix(1000, 0)
	for minute := range 121 {
		p.now = func() time.Time { return start.Add(time.Duration(minute) * time.Minute) }
		require.NoError(t, p.ConsumeMetrics(t.Context(), pageOf("a", map[string]float64{"vllm:num_requests_running": 1, "vllm:new": 1})))
	}
	assert.Equal(t, 3, logs.Len())
}

// A page that answers without a family of its engine is logged once, with its server.
func TestEmptyPagesAreLoggedOnce(t *testing.T) {
	set := metadatatest.NewSettings(componenttest.NewTelemetry())
	core, logs := observer.New(zap.InfoLevel)
	set.Logger = zap.New(core)
	p, err := newProcessor(set, createDefaultConfig().(*Config), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, p.ConsumeMetrics(t.Context(), pageOf("a", map[string]float64{"up": 1, "vllm:num_requests_running": 1})))
	require.Zero(t, logs.Len())
	for range 3 {
		require.NoError(t, p.ConsumeMetrics(t.Context(), pageOf("a", map[string]float64{"up": 1, "python_info": 1})))
	}
	require.Equal(t, 1, logs.Len())
	assert.Subset(t, logs.All()[0].ContextMap(), map[string]any{"engine": "vllm", "server": "a"})
}

// A family that may have what the page lacks is reported with that, as is a page on which an
// engine is known by the beginnings of names alone. One that may have what the page has is not.
func TestRenamedFamilies(t *testing.T) {
	for name, tt := range map[string]struct {
		page map[string]float64
		want []any // of the log
	}{
		"renamed": {
			map[string]float64{"vllm:num_requests_running": 1, "vllm:requests_waiting": 2, "vllm:kv_cache_utilization_ratio": 1, "vllm:new": 1},
			[]any{"vllm:requests_waiting (inference.server.requests? It is like num_requests_waiting)"},
		},
		"both names": {map[string]float64{"vllm:num_requests_running": 1, "vllm:num_requests_waiting": 2, "vllm:requests_waiting": 2}, nil},
		"all":        {map[string]float64{"vllm:requests_running": 1}, []any{"vllm:requests_running (inference.server.requests? It is like num_requests_running)"}},
		"no engine":  {map[string]float64{"requests_running": 1, "app:num_requests_running": 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tel := componenttest.NewTelemetry()
			t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
			set := metadatatest.NewSettings(tel)
			core, logs := observer.New(zap.WarnLevel)
			set.Logger = zap.New(core)
			p, err := newProcessor(set, createDefaultConfig().(*Config), consumertest.NewNop())
			require.NoError(t, err)
			for range 2 {
				require.NoError(t, p.ConsumeMetrics(t.Context(), pageOf("a", tt.page)))
			}
			if tt.want == nil {
				assert.Zero(t, logs.Len())
				return
			}
			require.Equal(t, 1, logs.Len())
			assert.Equal(t, tt.want, logs.All()[0].ContextMap()["first"])
			metadatatest.AssertEqualInferenceFamiliesRenamed(t, tel, []metricdata.DataPoint[int64]{
				{Attributes: attribute.NewSet(attribute.String("engine", "vllm")), Value: 2 * int64(len(tt.want))},
			}, metricdatatest.IgnoreTimestamp())
		})
	}
}

// One budget is for all targets, and those without a page give theirs back wherever the
// next page is.
func TestSeriesOfIdleTargetsAreForgotten(t *testing.T) {
	config := createDefaultConfig().(*Config)
	config.MaxSeries = 32
	p, err := newProcessor(metadatatest.NewSettings(componenttest.NewTelemetry()), config, consumertest.NewNop())
	require.NoError(t, err)
	now := time.Unix(1000, 0)
	p.now = func() time.Time { return now }
	page := func(target int) {
		require.NoError(t, p.ConsumeMetrics(t.Context(), pageOf(fmt.Sprint(target), map[string]float64{"vllm:prompt_tokens": 1})))
	}
	for i := range 40 {
		page(i)
	}
	assert.Equal(t, 32, p.series.Used())
	now = now.Add(11 * time.Minute)
	page(40)
	assert.Equal(t, 1, p.series.Used())
}
