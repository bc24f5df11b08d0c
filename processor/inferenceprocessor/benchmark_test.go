// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inferenceprocessor

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"
)

var benchTime = time.Unix(2_000_000_000, 0)

// benchPage is a page as the receiver hands it over. A family with bounds is a
// histogram, one that ends in _total a counter.
type benchPage struct{ metrics pmetric.Metrics }

func newBenchPage() benchPage {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	for _, kv := range []string{"service.name=chat", "service.instance.id=10.0.0.1:8000", "server.address=10.0.0.1", "k8s.pod.name=chat-0"} {
		key, value, _ := strings.Cut(kv, "=")
		rm.Resource().Attributes().PutStr(key, value)
	}
	rm.ScopeMetrics().AppendEmpty()
	return benchPage{md}
}

func (p benchPage) begin(name string) pmetric.Metric {
	m := p.metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	m.SetName(name)
	return m
}

// numbers adds a family with a series for each set of labels.
func (p benchPage) numbers(name string, value float64, sets ...string) {
	m := p.begin(name)
	var points pmetric.NumberDataPointSlice
	if strings.HasSuffix(name, "_total") {
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		points = m.Sum().DataPoints()
	} else {
		points = m.SetEmptyGauge().DataPoints()
	}
	for _, set := range sets {
		point := points.AppendEmpty()
		point.SetTimestamp(pcommon.NewTimestampFromTime(benchTime))
		point.SetDoubleValue(value)
		benchLabels(point.Attributes(), set)
	}
}

// histograms adds a family with bounds from first to first * bounds.
func (p benchPage) histograms(name string, bounds int, first float64, sets ...string) {
	m := p.begin(name)
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for _, set := range sets {
		point := m.Histogram().DataPoints().AppendEmpty()
		point.SetTimestamp(pcommon.NewTimestampFromTime(benchTime))
		benchLabels(point.Attributes(), set)
		for i := range bounds {
			point.ExplicitBounds().Append(first * float64(i+1))
			point.BucketCounts().Append(uint64(i % 3))
			point.SetCount(point.Count() + uint64(i%3))
		}
		point.BucketCounts().Append(0)
		point.SetSum(first * float64(point.Count()))
	}
}

func benchLabels(to pcommon.Map, set string) {
	for kv := range strings.SplitSeq(set, ",") {
		if key, value, ok := strings.Cut(kv, "="); ok {
			to.PutStr(key, value)
		}
	}
}

// run translates copies of the page. The times are medians: what the machine does beside
// it does not matter, nor does making the copies.
func (p benchPage) run(b *testing.B, points, made int) {
	b.Helper()
	tr := benchTranslator(series.NewBudget(100_000))
	target := translate.Target(p.metrics.ResourceMetrics().At(0).Resource().Attributes())
	translated := func(md pmetric.Metrics) (took time.Duration) {
		begin := time.Now()
		r := tr.Page(md.ResourceMetrics().At(0), target, benchTime)
		took = time.Since(begin)
		n := 0
		for _, e := range r.Engines {
			n += e.Normalised
		}
		if n != made {
			b.Fatalf("%d points instead of %d", n, made)
		}
		return took
	}
	copied := func() pmetric.Metrics {
		md := pmetric.NewMetrics()
		p.metrics.CopyTo(md)
		return md
	}
	translated(copied()) // the series begin
	var took []time.Duration
	for b.Loop() {
		took = append(took, translated(copied()))
	}
	slices.Sort(took)
	median := float64(took[len(took)/2])
	var copies []pmetric.Metrics
	for range 11 {
		copies = append(copies, copied())
	}
	allocations := testing.AllocsPerRun(10, func() {
		translated(copies[0])
		copies = copies[1:]
	})
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median/1e3, "us/page")
	b.ReportMetric(median/float64(points), "ns/point")
	b.ReportMetric(allocations/float64(points), "allocs/point")
}

// series is how many series a Prometheus server has of the points of the vocabulary that
// the page becomes.
func (p benchPage) series() (n int) {
	md := pmetric.NewMetrics()
	p.metrics.CopyTo(md)
	rm := md.ResourceMetrics().At(0)
	benchTranslator(series.NewBudget(1000)).Page(rm, 1, benchTime)
	scopes := rm.ScopeMetrics() // the last has what was made
	for _, m := range scopes.At(scopes.Len() - 1).Metrics().All() {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			n += m.Gauge().DataPoints().Len()
		case pmetric.MetricTypeSum:
			n += m.Sum().DataPoints().Len()
		case pmetric.MetricTypeHistogram:
			for _, point := range m.Histogram().DataPoints().All() {
				n += point.BucketCounts().Len() + 2 // sum, count
			}
		}
	}
	return n
}

func benchTranslator(budget *series.Budget) *translate.Translator {
	return translate.New(families.NewIndex(families.Engines()), translate.Options{Normalised: true, MaxBounds: 64, Series: budget, MaxModels: 1000})
}

// models are labels of so many models.
func models(n int) (sets []string) {
	for i := range n {
		sets = append(sets, fmt.Sprintf("engine=0,model_name=acme/llama-%d", i))
	}
	return sets
}

// BenchmarkPage is a page of vLLM: 395 samples, of which 354 are its own and 258 of these
// are buckets, with the counters' _created. It also reports how many series a store has
// of what the page becomes.
func BenchmarkPage(b *testing.B) {
	p := newBenchPage()
	p.numbers("process_start_time_seconds", 1.9e9, "")
	for _, name := range []string{"python_gc_objects_collected_total", "python_gc_objects_uncollectable_total", "python_gc_collections_total"} {
		p.numbers(name, 3, "generation=0", "generation=1", "generation=2")
	}
	for _, name := range []string{"python_info", "process_virtual_memory_bytes", "process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds", "process_max_fds"} {
		p.numbers(name, 3, "")
	}
	one := models(1)[0]
	for _, name := range []string{"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"} {
		p.numbers("vllm:"+name, .5, one)
	}
	p.numbers("vllm:engine_sleep_state", 1, one+",sleep_state=awake", one+",sleep_state=weights_offloaded", one+",sleep_state=discard_all")
	p.numbers("vllm:cache_config_info", 1, "block_size=16,num_gpu_blocks=1000,engine=0")
	counter := func(name string, sets ...string) {
		p.numbers("vllm:"+name+"_total", 7, sets...)
		p.numbers("vllm:"+name+"_created", 1.95e9, sets...)
	}
	for _, name := range []string{
		"estimated_flops_per_gpu", "estimated_read_bytes_per_gpu", "estimated_write_bytes_per_gpu", "prefix_cache_queries", "prefix_cache_hits",
		"external_prefix_cache_queries", "external_prefix_cache_hits", "mm_cache_queries", "mm_cache_hits", "num_preemptions", "prompt_tokens",
		"prompt_tokens_cached", "prompt_tokens_recomputed", "generation_tokens",
	} {
		counter(name, one)
	}
	counter("prompt_tokens_by_source", one+",source=a", one+",source=b", one+",source=c")
	counter("request_success", one+",finished_reason=stop", one+",finished_reason=length", one+",finished_reason=abort", one+",finished_reason=error",
		one+",finished_reason=repetition")
	for name, bounds := range map[string]int{
		"request_prompt_tokens": 12, "request_generation_tokens": 12, "iteration_tokens_total": 13, "request_max_num_generation_tokens": 12,
		"request_params_n": 5, "request_params_max_tokens": 12, "time_to_first_token_seconds": 22, "inter_token_latency_seconds": 19,
		"request_time_per_output_token_seconds": 19, "e2e_request_latency_seconds": 21, "request_queue_time_seconds": 21,
		"request_inference_time_seconds": 21, "request_prefill_time_seconds": 21, "request_decode_time_seconds": 21, "request_prefill_kv_computed_tokens": 12,
	} {
		p.histograms("vllm:"+name, bounds, .05, one)
		p.numbers("vllm:"+name+"_created", 1.95e9, one)
	}
	p.histograms("http_request_duration_highr_seconds", 21, .05, "")
	p.run(b, 395, 30)
	b.ReportMetric(float64(p.series()), "series/engine")
}

// BenchmarkPageTGI is a page of TGI with 1,024 buckets of the batch, two token counts of
// 100 and four durations of 35.
func BenchmarkPageTGI(b *testing.B) {
	p := newBenchPage()
	for _, name := range []string{"queue_size", "batch_current_size", "batch_current_max_tokens", "request_success", "request_count"} {
		p.numbers("tgi_"+name, 3, "")
	}
	p.numbers("tgi_request_failure", 3, "err=overloaded", "err=generation")
	for _, name := range []string{"request_duration", "request_queue_duration", "request_inference_duration", "request_mean_time_per_token_duration"} {
		p.histograms("tgi_"+name, 34, .05, "")
	}
	p.histograms("tgi_request_input_length", 99, 10.24, "")
	p.histograms("tgi_request_generated_tokens", 99, 10.24, "")
	p.histograms("tgi_batch_next_size", 1023, 1, "")
	p.run(b, 1024+2*100+4*35, 13)
}

// BenchmarkUnknown are 400 families of no row, on a page with one that is.
func BenchmarkUnknown(b *testing.B) {
	p := newBenchPage()
	p.numbers("tgi_queue_size", 3, "")
	for i := range 400 {
		p.numbers(fmt.Sprintf("app_requests_of_kind_%d", i), 3, "code=200")
	}
	p.run(b, 400, 1)
}

// BenchmarkNumber are 400 points of gauges and counters of 100 models.
func BenchmarkNumber(b *testing.B) {
	p := newBenchPage()
	for _, name := range []string{"num_requests_running", "num_requests_waiting", "generation_tokens_total", "prompt_tokens_total"} {
		p.numbers("vllm:"+name, 3, models(100)...)
	}
	p.run(b, 400, 400)
}

// BenchmarkHistogram are 200 points with 20 bounds of 100 models.
func BenchmarkHistogram(b *testing.B) {
	p := newBenchPage()
	for _, name := range []string{"time_to_first_token_seconds", "e2e_request_latency_seconds"} {
		p.histograms("vllm:"+name, 20, .05, models(100)...)
	}
	p.run(b, 200, 200)
}

// BenchmarkMemory is what stays of a series from page to page: of 1,000 targets with 10
// counters and 10 histograms each.
func BenchmarkMemory(b *testing.B) {
	const targets, each = 1000, 20
	p := newBenchPage()
	p.numbers("vllm:generation_tokens_total", 3, models(each/2)...)
	p.histograms("vllm:e2e_request_latency_seconds", 20, .05, models(each/2)...)
	for b.Loop() {
		before := heap()
		budget := series.NewBudget(targets * each)
		tr := benchTranslator(budget)
		for i := range targets {
			md := pmetric.NewMetrics()
			p.metrics.CopyTo(md)
			tr.Page(md.ResourceMetrics().At(0), uint64(i), benchTime)
		}
		require.Equal(b, targets*each, budget.Used())
		b.ReportMetric(float64(heap()-before)/(targets*each), "B/series")
		runtime.KeepAlive(tr)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
