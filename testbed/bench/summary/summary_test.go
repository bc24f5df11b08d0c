// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package summary compares what it costs to average GPU telemetry over the pods of
// a service: gpu_summary, and the closest equivalent made of contrib's processors,
// groupbyattrs between two transform processors.
package summary

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/groupbyattrsprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor"
)

const (
	// A batch is what the batch processor makes by default, 8192 points. That the
	// stock pipeline needs one is not counted against it.
	nodes          = 128
	podsOfNode     = 8 // with one device each
	pods           = nodes * podsOfNode
	podsOfService  = 16
	services       = pods / podsOfService
	namespace      = "inference"
	interval       = 15 * time.Second
	cyclesToSettle = 12
)

// inputs are eight that gpu_summary reads.
var inputs = []struct {
	metric      *names.Metric
	attr, value string
}{
	{&names.GPUUtilization, names.HwGPUTask, "general"},
	{&names.GPUSMActive, "", ""},
	{&names.GPUDRAMActive, "", ""},
	{&names.GPUPipeActive, names.GPUPipe, "tensor"},
	{&names.GPUPipeActive, names.GPUPipe, "fp16"},
	{&names.GPUPipeActive, names.GPUPipe, "fp32"},
	{&names.GPUMemoryUsage, "", ""},
	{&names.GPUMemoryLimit, "", ""},
}

func serviceName(pod int) string { return fmt.Sprint("service-", pod%services) }

// utilizationOf spreads 0 to 1 over the pods of each service.
func utilizationOf(pod int) float64 { return float64(pod/services) / (podsOfService - 1) }

func batch() pmetric.Metrics {
	md := pmetric.NewMetrics()
	for pod := range pods {
		id := fmt.Sprintf("GPU-6f3c1a52-0000-4000-8000-%012d", pod)
		rm := md.ResourceMetrics().AppendEmpty()
		attrs := rm.Resource().Attributes()
		attrs.PutStr(names.K8sNamespaceName, namespace)
		attrs.PutStr(names.K8sPodName, fmt.Sprintf("%s-7d9c6b5f4-%05d", serviceName(pod), pod))
		attrs.PutStr(names.K8sNodeName, fmt.Sprint("node-", pod/podsOfNode))
		attrs.PutStr(names.ServiceName, serviceName(pod))
		attrs.PutStr(names.HwID, id)
		ms := rm.ScopeMetrics().AppendEmpty().Metrics()
		for _, in := range inputs {
			dp := in.metric.Init(ms.AppendEmpty()).AppendEmpty()
			dp.Attributes().PutStr(names.HwID, id)
			if in.attr != "" {
				dp.Attributes().PutStr(in.attr, in.value)
			}
			dp.SetDoubleValue(utilizationOf(pod))
		}
	}
	return md
}

// points calls with every point of md.
func points(md pmetric.Metrics, with func(rm pmetric.ResourceMetrics, m pmetric.Metric, dp pmetric.NumberDataPoint)) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				var dps pmetric.NumberDataPointSlice
				if m.Type() == pmetric.MetricTypeSum {
					dps = m.Sum().DataPoints()
				} else {
					dps = m.Gauge().DataPoints()
				}
				for _, dp := range dps.All() {
					with(rm, m, dp)
				}
			}
		}
	}
}

// at is a copy of md with points of this moment.
func at(md pmetric.Metrics, now time.Time) pmetric.Metrics {
	out := pmetric.NewMetrics()
	md.CopyTo(out)
	points(out, func(_ pmetric.ResourceMetrics, _ pmetric.Metric, dp pmetric.NumberDataPoint) {
		dp.SetTimestamp(pcommon.NewTimestampFromTime(now))
	})
	return out
}

func startProcessor(tb testing.TB, factory processor.Factory, config map[string]any, next consumer.Metrics) processor.Metrics {
	tb.Helper()
	cfg := factory.CreateDefaultConfig()
	require.NoError(tb, confmap.NewFromStringMap(config).Unmarshal(cfg))
	p, err := factory.CreateMetrics(tb.Context(), processortest.NewNopSettings(component.MustNewType(factory.Type().String())), cfg, next)
	require.NoError(tb, err)
	require.NoError(tb, p.Start(tb.Context(), componenttest.NewNopHost()))
	tb.Cleanup(func() { require.NoError(tb, p.Shutdown(context.Background())) })
	return p
}

func gpuSummary(tb testing.TB, next consumer.Metrics) consumer.Metrics {
	return startProcessor(tb, gpusummaryprocessor.NewFactory(), map[string]any{"interval": interval.String()}, next)
}

// stock leaves nothing on a resource but the service, gives all points of an
// interval one time, joins what has become equal, and averages that.
func stock(tb testing.TB, next consumer.Metrics) consumer.Metrics {
	average := startProcessor(tb, transformprocessor.NewFactory(), map[string]any{
		"error_mode": "propagate",
		"metric_statements": []any{map[string]any{"context": "metric", "statements": []any{
			fmt.Sprintf("aggregate_on_attributes(\"mean\", [%q, %q])", names.HwGPUTask, names.GPUPipe),
		}}},
	}, next)
	join := startProcessor(tb, groupbyattrsprocessor.NewFactory(), nil, average)
	return startProcessor(tb, transformprocessor.NewFactory(), map[string]any{
		"error_mode": "propagate",
		"metric_statements": []any{
			map[string]any{"context": "resource", "statements": []any{
				fmt.Sprintf("keep_keys(resource.attributes, [%q, %q])", names.K8sNamespaceName, names.ServiceName),
			}},
			map[string]any{"context": "datapoint", "statements": []any{
				fmt.Sprintf("set(datapoint.time, TruncateTime(datapoint.time, Duration(%q)))", interval),
			}},
		},
	}, join)
}

// TestBothAverage: what is compared is averages that are right. The stock
// pipeline's are because all pods of a service are in one batch here.
func TestBothAverage(t *testing.T) {
	means := func(md pmetric.Metrics, metric string) map[string][]float64 {
		out := map[string][]float64{}
		points(md, func(rm pmetric.ResourceMetrics, m pmetric.Metric, dp pmetric.NumberDataPoint) {
			if m.Name() == metric && !dp.Flags().NoRecordedValue() {
				name, _ := rm.Resource().Attributes().Get(names.ServiceName)
				out[name.Str()] = append(out[name.Str()], dp.DoubleValue())
			}
		})
		return out
	}
	check := func(t *testing.T, got map[string][]float64) {
		t.Helper()
		require.Len(t, got, services)
		for service, values := range got {
			require.Len(t, values, 1, service)
			require.InDelta(t, 0.5, values[0], 1e-12, service)
		}
	}
	in := batch()
	t.Run("gpu_summary", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink := new(consumertest.MetricsSink)
			p := gpuSummary(t, sink)
			for range cyclesToSettle {
				require.NoError(t, p.ConsumeMetrics(t.Context(), at(in, time.Now())))
				time.Sleep(interval)
				synctest.Wait()
			}
			all := sink.AllMetrics()
			check(t, means(all[len(all)-1], names.ServiceUtilization.Name))
		})
	})
	t.Run("stock", func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		require.NoError(t, stock(t, sink).ConsumeMetrics(t.Context(), at(in, time.Now())))
		check(t, means(sink.AllMetrics()[0], names.GPUUtilization.Name))
	})
}

func BenchmarkGPUSummary(b *testing.B) { measure(b, gpuSummary(b, consumertest.NewNop())) }

func BenchmarkStock(b *testing.B) { measure(b, stock(b, consumertest.NewNop())) }

// measure times batches; making them is not timed. See ns/point.
func measure(b *testing.B, p consumer.Metrics) {
	in := batch()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		md := at(in, time.Now())
		b.StartTimer()
		if err := p.ConsumeMetrics(context.Background(), md); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*in.DataPointCount()), "ns/point")
}
