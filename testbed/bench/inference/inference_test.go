// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package inference compares what it costs to give the families of an inference engine
// other names and units: the inference processor, and contrib's transform processor with
// a statement for each.
package inference

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

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
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor"
)

// families are thirty of vLLM's that only need another name and unit, and what they
// become.
var families = []struct {
	name string
	*names.Metric
}{
	{"e2e_request_latency_seconds", &names.GenAIRequestDuration},
	{"time_to_first_token_seconds", &names.GenAITimeToFirstToken},
	{"request_time_per_output_token_seconds", &names.GenAITimePerOutputToken},
	{"inter_token_latency_seconds", &names.InferenceInterTokenLatency},
	{"request_queue_time_seconds", &names.InferenceQueueTime},
	{"request_prefill_time_seconds", &names.InferencePrefillTime},
	{"request_decode_time_seconds", &names.InferenceDecodeTime},
	{"request_inference_time_seconds", &names.InferenceInferenceTime},
	{"request_prompt_tokens", &names.InferenceRequestTokens},
	{"request_generation_tokens", &names.InferenceRequestTokens},
	{"iteration_tokens_total", &names.InferenceIterationTokens},
	{"num_requests_running", &names.InferenceRequests},
	{"num_requests_waiting", &names.InferenceRequests},
	{"num_requests_swapped", &names.InferenceRequests},
	{"kv_cache_usage_perc", &names.InferenceKVCacheUtilization},
	{"cpu_cache_usage_perc", &names.InferenceKVCacheUtilization},
	{"cpu_prefix_cache_hit_rate", &names.InferencePrefixCacheHitRatio},
	{"engine_sleep_state", &names.InferenceServerState},
	{"prompt_tokens_total", &names.InferenceTokens},
	{"generation_tokens_total", &names.InferenceTokens},
	{"prefix_cache_queries_total", &names.InferencePrefixCacheQueries},
	{"prefix_cache_hits_total", &names.InferencePrefixCacheHits},
	{"external_prefix_cache_queries_total", &names.InferencePrefixCacheQueries},
	{"external_prefix_cache_hits_total", &names.InferencePrefixCacheHits},
	{"num_preemptions_total", &names.InferencePreemptions},
	{"spec_decode_num_drafts_total", &names.InferenceSpeculationDrafts},
	{"spec_decode_num_draft_tokens_total", &names.InferenceSpeculationDraftTokens},
	{"spec_decode_num_accepted_tokens_total", &names.InferenceSpeculationAcceptedTokens},
	{"request_success_total", &names.InferenceRequestsFinished},
	{"admission_rejections_total", &names.InferenceRequestsFinished},
}

// page has a point of each family.
func page() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "10.0.0.1:8000")
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	at := pcommon.NewTimestampFromTime(time.Unix(2_000_000_000, 0))
	for _, f := range families {
		m := metrics.AppendEmpty()
		m.SetName("vllm:" + f.name)
		if f.Kind == names.Histogram {
			m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := m.Histogram().DataPoints().AppendEmpty()
			p.SetTimestamp(at)
			label(p.Attributes())
			for i := range 20 {
				p.ExplicitBounds().Append(float64(i + 1))
				p.BucketCounts().Append(1)
			}
			p.BucketCounts().Append(1)
			p.SetCount(21)
			p.SetSum(210)
			continue
		}
		points := m.SetEmptyGauge().DataPoints
		if f.Kind == names.Counter {
			m.SetEmptySum().SetIsMonotonic(true)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			points = m.Sum().DataPoints
		}
		p := points().AppendEmpty()
		p.SetTimestamp(at)
		p.SetDoubleValue(.5)
		label(p.Attributes())
	}
	return md
}

func label(to pcommon.Map) {
	to.PutStr("engine", "0")
	to.PutStr("model_name", "acme/llama")
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

func inference(tb testing.TB, next consumer.Metrics) processor.Metrics {
	return startProcessor(tb, inferenceprocessor.NewFactory(), map[string]any{"names": "normalised"}, next)
}

// stock has two statements a family, each with a condition.
func stock(tb testing.TB, next consumer.Metrics) processor.Metrics {
	var statements []any
	for _, f := range families {
		statements = append(statements,
			fmt.Sprintf("set(metric.unit, %q) where metric.name == %q", f.Unit, "vllm:"+f.name),
			fmt.Sprintf("set(metric.name, %q) where metric.name == %q", f.Name, "vllm:"+f.name))
	}
	return transform(tb, next, map[string]any{"context": "metric", "statements": statements})
}

// stockGrouped has a group of statements a family, and one condition for both.
func stockGrouped(tb testing.TB, next consumer.Metrics) processor.Metrics {
	var groups []any
	for _, f := range families {
		groups = append(groups, map[string]any{
			"context": "metric", "conditions": []any{fmt.Sprintf("metric.name == %q", "vllm:"+f.name)},
			"statements": []any{fmt.Sprintf("set(metric.unit, %q)", f.Unit), fmt.Sprintf("set(metric.name, %q)", f.Name)},
		})
	}
	return transform(tb, next, groups...)
}

func transform(tb testing.TB, next consumer.Metrics, groups ...any) processor.Metrics {
	return startProcessor(tb, transformprocessor.NewFactory(), map[string]any{"error_mode": "propagate", "metric_statements": groups}, next)
}

// TestAllRename: what is compared gives as many points the same names and units.
func TestAllRename(t *testing.T) {
	want := map[string]int{}
	for _, f := range families {
		want[f.Name+" "+f.Unit]++
	}
	for name, start := range map[string]func(testing.TB, consumer.Metrics) processor.Metrics{"inference": inference, "stock": stock, "grouped": stockGrouped} {
		t.Run(name, func(t *testing.T) {
			sink := new(consumertest.MetricsSink)
			require.NoError(t, start(t, sink).ConsumeMetrics(t.Context(), page()))
			got := map[string]int{}
			for _, sm := range sink.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					n := 0
					switch m.Type() {
					case pmetric.MetricTypeHistogram:
						n = m.Histogram().DataPoints().Len()
					case pmetric.MetricTypeSum:
						n = m.Sum().DataPoints().Len()
					default:
						n = m.Gauge().DataPoints().Len()
					}
					got[m.Name()+" "+m.Unit()] += n
				}
			}
			require.Equal(t, want, got)
		})
	}
}

func BenchmarkInference(b *testing.B) { measure(b, inference(b, consumertest.NewNop())) }

func BenchmarkTransform(b *testing.B) { measure(b, stock(b, consumertest.NewNop())) }

func BenchmarkTransformGrouped(b *testing.B) { measure(b, stockGrouped(b, consumertest.NewNop())) }

// measure times pages. The time is the median of them: what the machine does beside it does
// not matter, nor does making the pages.
func measure(b *testing.B, p processor.Metrics) {
	in := page()
	b.ReportAllocs()
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		md := pmetric.NewMetrics()
		in.CopyTo(md)
		b.StartTimer()
		begin := time.Now()
		if err := p.ConsumeMetrics(context.Background(), md); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	median := float64(took[len(took)/2])
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median/1e3, "us/page")
	b.ReportMetric(median/float64(len(families)), "ns/point")
}
