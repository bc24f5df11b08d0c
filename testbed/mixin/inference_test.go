// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/judge"
)

// Labels of the engines of a service: two pods with histograms of other bounds.
const (
	pod0 = svc + `,k8s_pod_name="chat-0",inference_engine="vllm"`
	pod1 = svc + `,k8s_pod_name="chat-1",inference_engine="vllm"`
)

// Series of an engine.
const (
	up        = "inference_server_up"
	requests  = "inference_server_requests"
	finished  = "inference_server_requests_finished_total"
	tokens    = "inference_server_tokens_total"
	cache     = "inference_server_kv_cache_utilization_ratio"
	first     = "gen_ai_server_time_to_first_token_seconds"
	perOutput = "gen_ai_server_time_per_output_token_seconds"
	duration  = "gen_ai_server_request_duration_seconds"
)

// bucket is a bucket of a histogram: the bounds of chat-0 are a, those of chat-1 b.
func bucket(histogram, pod, le string) string {
	layout := map[string]string{pod0: "a", pod1: "b"}[pod]
	return histogram + `_bucket{inference_bounds="` + layout + `",le="` + le + `",` + pod + `}`
}

// counted are the buckets of a histogram and its count, which rise by these at every
// sample.
func counted(series map[string]string, histogram, pod string, buckets ...any) {
	rise := 0
	for i := 0; i < len(buckets); i += 2 {
		rise = buckets[i+1].(int)
		series[bucket(histogram, pod, buckets[i].(string))] = "0+" + strconv.Itoa(rise) + "x480"
	}
	series[bucket(histogram, pod, "+Inf")] = "0+300x480"
	layout := map[string]string{pod0: "a", pod1: "b"}[pod]
	series[histogram+`_count{inference_bounds="`+layout+`",`+pod+`}`] = "0+300x480"
}

// healthyInference is a service with which nothing is wrong.
var healthyInference = func() map[string]string {
	all := map[string]string{}
	for _, pod := range []string{pod0, pod1} {
		all[up+`{`+pod+`}`] = "1x480"
		all[requests+`{inference_request_state="running",`+pod+`}`] = "12x480"
		all[requests+`{inference_request_state="waiting",`+pod+`}`] = "1x480"
		all[cache+`{inference_cache_tier="device",`+pod+`}`] = "0.6x480"
		all[tokens+`{inference_token_type="output",`+pod+`}`] = "0+3000x480"
		all[finished+`{inference_request_outcome="success",inference_finish_reason="stop",`+pod+`}`] = "0+300x480"
		all[finished+`{inference_request_outcome="cancelled",inference_finish_reason="abort",`+pod+`}`] = "0+1x480"
		all[finished+`{inference_request_outcome="error",inference_finish_reason="error",`+pod+`}`] = "0x480"
		counted(all, perOutput, pod, "0.05", 290, "0.1", 299, "0.5", 300)
		counted(all, duration, pod, "10", 300, "60", 300)
	}
	counted(all, first, pod0, "0.5", 280, "1", 297, "2.5", 300)
	counted(all, first, pod1, "0.4", 280, "2.0", 297, "8.0", 300)
	return all
}()

// slow has both pods' histograms of a time with so many in all buckets that end at or
// below a bound, and all in the next.
func slow(histogram string, within int, bounds ...string) map[string]string {
	series := map[string]string{}
	for i, pod := range []string{pod0, pod1} {
		for j, le := range bounds[2*i : 2*i+2] {
			series[bucket(histogram, pod, le)] = "0+" + strconv.Itoa(within-10*(1-j)) + "x480"
		}
	}
	return series
}

// both has a series at both pods.
func both(series, values string) map[string]string {
	open := slices.Index([]byte(series), '}')
	return map[string]string{series[:open] + "," + pod0 + "}": values, series[:open] + "," + pod1 + "}": values}
}

var inferenceScenarios = map[string]scenario{
	"four in five first tokens are late": {
		slow(first, 60, "0.5", "1", "0.4", "2.0"), []string{"InferenceTimeToFirstToken", "InferenceFirstTokenBudgetFast", "InferenceFirstTokenBudgetSlow"},
	},
	"two in five first tokens are late": {
		slow(first, 180, "0.5", "1", "0.4", "2.0"), []string{"InferenceTimeToFirstToken", "InferenceFirstTokenBudgetSlow"},
	},
	"four in five output tokens are late": {
		slow(perOutput, 60, "0.05", "0.1", "0.05", "0.1"), []string{"InferenceOutputTokenBudgetFast", "InferenceOutputTokenBudgetSlow"},
	},
	"a quarter is rejected": {
		both(finished+`{inference_request_outcome="rejected",inference_finish_reason="overloaded"}`, "0x360 0+100x119"), []string{"InferenceErrorBudgetFast", "InferenceErrorBudgetSlow"},
	},
	"one in eleven fails": {
		both(finished+`{inference_request_outcome="error",inference_finish_reason="error"}`, "0+30x480"), []string{"InferenceErrorBudgetSlow"},
	},
	"whole requests are slow": {slow(duration, 100, "5", "10", "5", "10"), []string{"InferenceLatency"}},
	"one cache is full":       {map[string]string{cache + `{inference_cache_tier="device",` + pod1 + `}`: from("0.6", "0.95")}, []string{"InferenceCachePressure"}},
	"the host's cache is full": {
		map[string]string{cache + `{inference_cache_tier="host",` + pod1 + `}`: from("0.6", "0.95")}, nil,
	},
	"more wait":              {both(requests+`{inference_request_state="waiting"}`, "1x360 1+1x119"), []string{"InferenceQueueGrowing"}},
	"fewer wait":             {both(requests+`{inference_request_state="waiting"}`, "1x360 200-1x119"), nil},
	"half the tokens":        {both(tokens+`{inference_token_type="output"}`, "0+3000x360 1080000+900x119"), []string{"InferenceThroughputDrop"}},
	"clients cancel":         {both(finished+`{inference_request_outcome="cancelled",inference_finish_reason="abort"}`, "0x360 0+50x119"), []string{"InferenceCancelled"}},
	"the old name disagrees": {map[string]string{`vllm:kv_cache_usage_perc{` + pod0 + `}`: from("0.6", "0.95")}, nil},
	// What SDKs report of the same requests has other bounds, and alerts of its own.
	"an SDK reports errors": {
		map[string]string{
			duration + `_count{` + svc + `}`:                      "0+100x480",
			duration + `_count{error_type="timeout",` + svc + `}`: "0x360 0+10x119",
		}, []string{"GPUAppErrorRate"},
	},
	"healthy": {nil, nil},
}

// previousScenarios are what vLLM's own names make fire, as the previous release passed
// them on.
var previousScenarios = map[string]scenario{
	"first tokens are slow":     {map[string]string{`vllm:time_to_first_token_seconds_bucket{le="1",` + svc + `}`: "0+100x480"}, []string{"InferenceTimeToFirstToken"}},
	"requests are slow":         {map[string]string{`vllm:e2e_request_latency_seconds_bucket{le="10",` + svc + `}`: "0+100x480"}, []string{"InferenceLatency"}},
	"the cache is full":         {map[string]string{`vllm:kv_cache_usage_perc{` + svc + `}`: from("0.6", "0.95")}, []string{"InferenceCachePressure"}},
	"the queue grows":           {map[string]string{`vllm:num_requests_waiting{` + svc + `}`: "1x360 1+1x119"}, []string{"InferenceQueueGrowing"}},
	"a long queue that shrinks": {map[string]string{`vllm:num_requests_waiting{` + svc + `}`: "1x360 200-1x119"}, nil},
	"throughput halves":         {map[string]string{`vllm:generation_tokens_total{` + svc + `}`: "0+3000x360 1080000+900x119"}, []string{"InferenceThroughputDrop"}},
	"clients give up":           {map[string]string{`vllm:request_success_total{finished_reason="abort",` + svc + `}`: "0x360 0+50x119"}, []string{"InferenceCancelled"}},
	"underscores for colons": {
		map[string]string{`vllm_kv_cache_usage_perc{` + svc + `}`: from("0.6", "0.95")}, []string{"InferenceCachePressure"},
	},
}

// recorded are the values that the rules give a service, by the names behind
// namespace_service:inference_.
func recorded(t *testing.T, series map[string]string) map[string]float64 {
	t.Helper()
	db, engine := promqltest.LoadedStorage(t, load(series)), judge.NewEngine()
	newJudge(t, db, engine, inference).At(t, sampled(40))
	query, err := engine.NewInstantQuery(t.Context(), db, nil, `{__name__=~"namespace_service:inference_.*",service_name="chat"}`, sampled(40))
	require.NoError(t, err)
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, s := range vector {
		name, ours := strings.CutPrefix(s.Metric.Get("__name__"), "namespace_service:inference_")
		require.True(t, ours)
		require.NotContains(t, values, name, "one of each service")
		require.False(t, math.IsNaN(s.F) || math.IsInf(s.F, 0), "%s: %v", name, s.F)
		values[name] = s.F
	}
	return values
}

// busy is a service of which every figure is known.
func busy() map[string]string {
	all := maps.Clone(healthyInference)
	for i, pod := range []string{pod0, pod1} {
		all[powerOf(i)] = "500x480"
		all[allocationOf(i)] = "1x480"
		all[tokens+`{inference_token_type="input",`+pod+`}`] = "0+6000x480"
		all[`inference_server_requests_limit{`+pod+`}`] = "16x480"
		all[duration+`_sum{inference_bounds="x",`+pod+`}`] = "0+600x480"
		all[`inference_server_request_queue_time_seconds_bucket{inference_bounds="c",le="1",`+pod+`}`] = "0+300x480"
		all[`inference_server_request_queue_time_seconds_bucket{inference_bounds="c",le="+Inf",`+pod+`}`] = "0+300x480"
		all[`inference_server_request_queue_time_seconds_count{inference_bounds="c",`+pod+`}`] = "0+300x480"
		all[`inference_server_inter_token_latency_seconds_bucket{inference_bounds="c",le="0.1",`+pod+`}`] = "0+3000x480"
		all[`inference_server_inter_token_latency_seconds_bucket{inference_bounds="c",le="+Inf",`+pod+`}`] = "0+3000x480"
		all[`inference_server_inter_token_latency_seconds_count{inference_bounds="c",`+pod+`}`] = "0+3000x480"
		all[`inference_server_prefix_cache_queries_total{inference_cache_tier="device",`+pod+`}`] = "0+6000x480"
		all[`inference_server_prefix_cache_hits_total{inference_cache_tier="device",`+pod+`}`] = "0+1500x480"
		all[`inference_server_speculation_draft_tokens_total{`+pod+`}`] = "0+4000x480"
		all[`inference_server_speculation_accepted_tokens_total{`+pod+`}`] = "0+3000x480"
		all[`inference_server_batch_size_sum{inference_bounds="none",`+pod+`}`] = "0+1200x480"
		all[`inference_server_batch_size_count{inference_bounds="none",`+pod+`}`] = "0+300x480"
	}
	all[`gpu_service_partial{`+svc+`}`] = "0x480"
	all[`gpu_service_devices{gpu_device_state="reporting",`+svc+`}`] = "2x480"
	all[`gpu_service_devices{gpu_device_state="missing",`+svc+`}`] = "0x480"
	all[`namespace_service:gpu_devices_held:sum{`+svc+`}`] = "2x480"
	all[cache+`{inference_cache_tier="device",`+pod1+`}`] = "0.8x480"
	all[finished+`{inference_request_outcome="error",inference_finish_reason="error",`+pod0+`}`] = "0+200x480"
	return all
}

// What is recorded of a service of which every part is known.
func TestInferenceRules(t *testing.T) {
	got := recorded(t, busy())
	want := map[string]float64{
		"output_tokens:rate5m": 200, "input_tokens:rate5m": 400, "tokens_per_device:rate5m": 100, "tokens_per_joule:rate5m": 0.2,
		// Of chat-0 and chat-1, which have different bounds, the higher.
		"ttft_seconds:p50": 0.5 * 150 / 280, "ttft_seconds:p95": 0.4 + 1.6*(285-280)/17, "ttft_seconds:p99": 2,
		"tpot_seconds:p50": 0.05 * 150 / 290, "itl_seconds:p50": 0.05, "queue_seconds:p99": 0.99, "request_seconds:p95": 9.5, "request_seconds:mean5m": 2,
		"errors:ratio5m": 0.25, "kv_cache:max": 0.8, "kv_cache:avg": 0.7, "demand:requests": 26, "saturation:ratio": 0.75,
		"prefix_cache_hits:ratio5m": 0.25, "speculation_accepted:ratio5m": 0.75, "batch:mean5m": 4,
		// The largest bounds that are not above 2 s are 1 and 2.0.
		"ttft_bound:seconds": 1, "ttft_kept:rate5m": 19.8, "ttft_counted:rate5m": 20, "tpot_bound:seconds": 0.1, "tpot_kept:rate5m": 2 * 299 / 30.,
		"tpot_counted:rate5m": 20, "served:rate5m": 20, "counted:rate5m": 20 + 200/30.,
	}
	for name, v := range want {
		assert.InDelta(t, v, got[name], 1e-9+v*1e-6, name)
	}
	for _, h := range []string{"ttft", "tpot", "itl", "request", "queue"} {
		for _, q := range []string{"p50", "p95", "p99"} {
			delete(got, h+"_seconds:"+q)
		}
	}
	for name := range got {
		assert.Contains(t, want, name)
	}
}

// A layout of a hundredth of the requests, a pod that just came, does not decide.
func TestInferenceRulesLeaveOutFewRequests(t *testing.T) {
	all := busy()
	few := svc + `,k8s_pod_name="chat-2",inference_engine="vllm"`
	for le, v := range map[string]string{"1": "0x480", "60": "0+5x480", "+Inf": "0+5x480"} {
		all[first+`_bucket{inference_bounds="c",le="`+le+`",`+few+`}`] = v
	}
	all[first+`_count{inference_bounds="c",`+few+`}`] = "0+5x480"
	all[up+`{`+few+`}`] = "1x480"
	assert.Less(t, recorded(t, all)["ttft_seconds:p95"], 2.)
	for _, le := range []string{"60", "+Inf"} {
		all[first+`_bucket{inference_bounds="c",le="`+le+`",`+few+`}`] = "0+10x480"
	}
	all[first+`_count{inference_bounds="c",`+few+`}`] = "0+10x480"
	assert.Greater(t, recorded(t, all)["ttft_seconds:p95"], 50.)
}

// The quantile of a service is not below the true one of any pod minus the bucket that it
// is in, nor of all requests together, nor above the highest plus its bucket.
func TestInferenceQuantilesAgainstTruth(t *testing.T) {
	bounds := map[string][]float64{
		pod0: {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160},
		pod1: {0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200},
	}
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 1))
		series, together, times := busy(), []float64(nil), map[string][]float64{}
		for name := range series {
			if strings.HasPrefix(name, first) {
				delete(series, name)
			}
		}
		for _, pod := range []string{pod0, pod1} {
			scale := math.Exp(random.Float64()*4 - 3)
			for range 2000 + random.IntN(4000) {
				times[pod] = append(times[pod], scale*math.Exp(random.NormFloat64()))
			}
			slices.Sort(times[pod])
			together = append(together, times[pod]...)
			n := "0+" + strconv.Itoa(len(times[pod])) + "x480"
			for _, b := range bounds[pod] {
				at, _ := slices.BinarySearch(times[pod], math.Nextafter(b, 1e9))
				series[bucket(first, pod, strconv.FormatFloat(b, 'g', -1, 64))] = "0+" + strconv.Itoa(at) + "x480"
			}
			series[bucket(first, pod, "+Inf")] = n
			series[first+`_count{inference_bounds="`+map[string]string{pod0: "a", pod1: "b"}[pod]+`",`+pod+`}`] = n
		}
		slices.Sort(together)
		got := recorded(t, series)
		for name, q := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99} {
			value := got["ttft_seconds:"+name]
			truth := func(of []float64) float64 { return of[int(q*float64(len(of)))] }
			highest := 0.
			for pod, of := range times {
				end, _ := slices.BinarySearch(bounds[pod], truth(of))
				begin := 0.
				if end > 0 {
					begin = bounds[pod][end-1]
				}
				assert.GreaterOrEqual(t, value, begin, "%d: %s of a pod", seed, name)
				highest = max(highest, bounds[pod][end])
				if end, _ := slices.BinarySearch(bounds[pod], truth(together)); end > 0 && truth(together) <= truth(of) {
					assert.GreaterOrEqual(t, value, bounds[pod][end-1], "%d: %s of all", seed, name)
				}
			}
			assert.LessOrEqual(t, value, highest, "%d: %s", seed, name)
		}
	}
}

// The alert of an objective names the bound at which requests are counted: of chat-0
// the largest that is not above 2 s is 1, of chat-1 2.0.
func TestObjectiveAlertsNameTheBound(t *testing.T) {
	all := maps.Clone(healthyInference)
	maps.Copy(all, slow(first, 60, "0.5", "1", "0.4", "2.0"))
	j := newJudge(t, promqltest.LoadedStorage(t, load(all)), judge.NewEngine(), inference)
	for i := 40; i < 60; i++ {
		j.At(t, sampled(i))
	}
	var descriptions []string
	for _, g := range j.Groups {
		for _, r := range g.AlertingRules() {
			for _, a := range r.ActiveAlerts() {
				if r.Name() == "InferenceFirstTokenBudgetFast" {
					descriptions = append(descriptions, a.Annotations.Get("description"))
				}
			}
		}
	}
	require.Len(t, descriptions, 1)
	assert.Contains(t, descriptions[0], "Counted at 1 s, the largest bound of the engine's histogram that is not above 2 s.")
}
