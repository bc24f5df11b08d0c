// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gputrainingprocessor

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	zapobserver "go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gputrainingprocessor/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gputrainingprocessor/internal/metadatatest"
)

// batch is what a job without figures of its model sends: so many tokens since its start.
func batch(start time.Time, tokens int64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	for k, v := range map[string]string{"service.name": "llama", "training.run.id": "r1", "training.precision": "bf16"} {
		rm.Resource().Attributes().PutStr(k, v)
	}
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	p := names.TrainingTokens.Init(metrics.AppendEmpty()).AppendEmpty()
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	p.SetIntValue(tokens)
	p = names.TrainingModelLayers.Init(metrics.AppendEmpty()).AppendEmpty()
	p.SetDoubleValue(-1)
	return md
}

// One that is named in two pipelines does not start.
func TestOneInstance(t *testing.T) {
	cfg, set := createDefaultConfig(), processortest.NewNopSettings(metadata.Type)
	next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil })
	require.NoError(t, err)
	first, err := NewFactory().CreateMetrics(t.Context(), set, cfg, next)
	require.NoError(t, err)
	second, err := NewFactory().CreateMetrics(t.Context(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, first.Start(t.Context(), componenttest.NewNopHost()))
	require.ErrorContains(t, second.Start(t.Context(), componenttest.NewNopHost()), "is named in more than one pipeline")
	require.NoError(t, second.Shutdown(t.Context()))
	require.NoError(t, first.Shutdown(t.Context()))
}

// What arrives passes through as it is; figures are added on the timer, what is absent is counted
// and logged with the remedy, and a consumer that refuses costs nothing else.
func TestProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := componenttest.NewTelemetry()
		core, logs := zapobserver.New(zap.WarnLevel)
		set := processortest.NewNopSettings(metadata.Type)
		set.TelemetrySettings = tel.NewTelemetrySettings()
		set.Logger = zap.New(core)
		var passed, added []pmetric.Metrics
		var full atomic.Bool
		next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
			if md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().Name() == metadata.ScopeName {
				added = append(added, md)
				if full.Load() {
					return errors.New("full")
				}
				return nil
			}
			passed = append(passed, md)
			return nil
		})
		require.NoError(t, err)
		p, err := NewFactory().CreateMetrics(t.Context(), set, createDefaultConfig(), next)
		require.NoError(t, err)
		assert.False(t, p.Capabilities().MutatesData)
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		start := time.Now()
		for i := range 9 {
			md := batch(start, int64(i)*3000)
			as := pmetric.NewMetrics()
			md.CopyTo(as)
			require.NoError(t, p.ConsumeMetrics(t.Context(), md))
			assert.Equal(t, as, passed[i])
			if i == 8 {
				full.Store(true)
			}
			time.Sleep(30 * time.Second)
			synctest.Wait()
		}
		last := added[len(added)-1].ResourceMetrics().At(0)
		service, _ := last.Resource().Attributes().Get("service.name")
		assert.Equal(t, "llama", service.Str())
		values := map[string]float64{}
		for _, m := range last.ScopeMetrics().At(0).Metrics().All() {
			if m.Type() == pmetric.MetricTypeGauge {
				values[m.Name()] = m.Gauge().DataPoints().At(0).DoubleValue()
			}
		}
		assert.Equal(t, map[string]float64{"gpu.training.throughput": 100}, values)
		require.NoError(t, p.Shutdown(t.Context()))

		metadatatest.AssertEqualGpuTrainingMfuAbsent(t, tel, []metricdata.DataPoint[int64]{
			{Value: 1, Attributes: attribute.NewSet(attribute.String("reason", "too_early"))},
			{Value: 1, Attributes: attribute.NewSet(attribute.String("reason", "no_model_figures"))},
		}, metricdatatest.IgnoreTimestamp())
		metadatatest.AssertEqualGpuTrainingPointsRefused(t, tel, []metricdata.DataPoint[int64]{
			{Value: 9, Attributes: attribute.NewSet(attribute.String("reason", "out_of_range"))},
		}, metricdatatest.IgnoreTimestamp())
		metadatatest.AssertEqualGpuTrainingEvaluationsFailed(t, tel, []metricdata.DataPoint[int64]{{Value: 2}}, metricdatatest.IgnoreTimestamp())
		assert.Equal(t, 1, logs.FilterMessageSnippet("the job sends no figures of its model").Len())
		assert.Equal(t, 1, logs.FilterMessageSnippet("send finite values").Len())
		assert.Equal(t, 1, logs.FilterMessageSnippet("refused an evaluation").Len())
		require.NoError(t, tel.Shutdown(t.Context()))
	})
}
