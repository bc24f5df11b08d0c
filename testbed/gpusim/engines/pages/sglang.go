// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"slices"
	"strconv"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// otherEngines are those with families of their own.
var otherEngines = []Engine{
	{
		Name: "sglang-0.5", Path: "/metrics", Port: 30000, prefix: "sglang:", style: style{number: python, order: "sbc"},
		ranked: true, repeated: schedulers, labels: modelName, rows: sglang05,
	},
	{
		Name: "tgi-3", Path: "/metrics", Port: 8080, prefix: "tgi_", style: style{number: plain, order: "bsc", leLast: true},
		labels: unlabelled, rows: tgi3,
	},
	{
		Name: "trtllm-1.1", Path: "/prometheus/metrics", Port: 8000, prefix: "trtllm_", style: style{number: python, created: true},
		labels: trtllmLabels, rows: trtllm11,
	},
	{
		Name: "llamacpp", Path: "/metrics", Port: 8080, prefix: "llamacpp:", style: style{number: sixDigits},
		labels: unlabelled, rows: llamacpp,
	},
}

func unlabelled(*view) labels { return nil }

// schedulers: with metrics of all of them on, every tensor-parallel rank reports the
// same queue. dp_rank is there with data parallelism alone.
func schedulers(v *view) (out []labels) {
	for tp := range max(v.in.Ranks, 1) {
		l := labels{"engine_type", "unified", "model_name", v.Model, "moe_ep_rank", "0", "pp_rank", "0", "tp_rank", strconv.Itoa(tp)}
		if len(v.in.States) > 1 {
			l = append(l, "dp_rank", strconv.Itoa(v.rank))
		}
		out = append(out, l)
	}
	return out
}

var pid = labels{"pid", "697544"}

var sglang05 = slices.Concat([]row{
	{
		name: "per_stage_req_latency_seconds", typ: "histogram", help: "Latency of each stage of a request.", labels: labels{"stage", "prefill_waiting"},
		figure: requests.QueueTimeAtStart, bounds: growing(.001, 1.62, 1900),
	},
	{
		name: "queue_time_seconds", typ: "histogram", help: "Time in the queue in seconds.", figure: requests.QueueTimeAtStart,
		bounds: in(0, .1, .2, .5, 1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1200, 1400,
			1600, 1800, 2000, 2500, 3000),
	},
	{
		name: "realtime_tokens_total", typ: "counter", help: "Tokens processed, at each log interval.",
		each: func(v *view) []sample {
			return []sample{
				{labels{"mode", "prefill_compute"}, inputTokens(v) - cachedInput(v)}, {labels{"mode", "prefill_cache"}, cachedInput(v)}, {labels{"mode", "decode"}, outputTokens(v)},
			}
		},
	},
	{name: "cuda_graph_passes_total", typ: "counter", help: "Forward passes by how they ran.", labels: labels{"mode", "decode_cuda_graph"}, value: steps},
	{name: "num_retracted_reqs", typ: "gauge", help: "Requests retracted in the last step.", labels: pid, value: fixed(0)},
	{name: "num_retracted_requests_total", typ: "counter", help: "Requests retracted since the start.", value: preemptions},
	{name: "num_paused_reqs", typ: "gauge", help: "Requests paused for an update of weights.", labels: pid, value: paused},
	{name: "num_running_reqs", typ: "gauge", help: "Requests that run.", value: func(v *view) float64 { return running(v) - paused(v) }},
	{name: "num_used_tokens", typ: "gauge", help: "Tokens in use.", value: func(v *view) float64 { return float64(v.Used * v.Block) }},
	{name: "token_usage", typ: "gauge", help: "Use of the token pool.", value: kvUsage},
}, zero("pending_prealloc_token_usage", "swa_token_usage", "mamba_usage"), []row{
	{name: "decode_sum_seq_lens", typ: "gauge", help: "Length of all sequences in decode.", value: func(v *view) float64 { return float64(v.InBlocks) }},
	{name: "gen_throughput", typ: "gauge", help: "Tokens made in a second.", value: rate(outputTokens)},
	{name: "num_queue_reqs", typ: "gauge", help: "Requests in the queue.", value: waiting},
}, zero("num_grammar_queue_reqs", "num_running_reqs_offline_batch"), []row{
	{name: "cache_hit_rate", typ: "gauge", help: "Hit rate of the prefix cache.", value: hitRatio},
	{name: "max_total_num_tokens", typ: "gauge", help: "Tokens that the pool can hold.", value: kvTokens},
	{name: "spec_accept_length", typ: "gauge", help: "Mean length that speculation adds.", value: func(v *view) float64 { return quotient(acceptedTokens(v), drafts(v)) }},
	{name: "spec_accept_rate", typ: "gauge", help: "Part of the proposed tokens that was accepted.", value: acceptance},
}, zero("num_prefill_prealloc_queue_reqs", "num_prefill_inflight_queue_reqs", "num_decode_prealloc_queue_reqs", "num_decode_transfer_queue_reqs",
	"kv_transfer_speed_gb_s", "kv_transfer_latency_ms", "kv_transfer_bootstrap_ms", "kv_transfer_alloc_ms", "kv_transfer_total_mb", "utilization",
	"engine_startup_time", "engine_load_weights_time"), []row{
	{name: "new_token_ratio", typ: "gauge", help: "Ratio of new tokens that is reserved.", value: fixed(.7)},
	{name: "is_cuda_graph", typ: "gauge", help: "Whether the batch runs as a graph.", value: fixed(0)},
	{name: "lora_pool_slots_used", typ: "gauge", help: "Adapters that are loaded.", when: hasLoRA, value: func(v *view) float64 { return float64(names(mixed(v).Running)) }},
	{name: "lora_pool_slots_total", typ: "gauge", help: "Adapters that can be loaded.", when: hasLoRA, value: func(v *view) float64 { return float64(len(v.Adapters)) }},
	// What the process before the schedulers reports knows no ranks.
	{
		name: "time_to_first_token_seconds", typ: "histogram", help: "Time to the first token in seconds.", merged: true, figure: requests.FirstToken,
		bounds: in(.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400),
	},
	{
		name: "inter_token_latency_seconds", typ: "histogram", help: "Time between two tokens in seconds.", merged: true, figure: requests.InterToken,
		bounds: in(.002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .06, .08, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8),
	},
	{
		name: "e2e_request_latency_seconds", typ: "histogram", help: "End to end latency of requests in seconds", merged: true, figure: requests.Duration,
		bounds: in(.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 1200, 1800, 2400),
	},
	{
		name: "num_retractions", typ: "histogram", help: "Retractions of a request.", merged: true, figure: requests.Preempted,
		bounds: in(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 75, 100),
	},
	// Counted when a request ends.
	{name: "prompt_tokens_total", typ: "counter", help: "Prefill tokens processed.", merged: true, value: finishedInput},
	{name: "generation_tokens_total", typ: "counter", help: "Generation tokens processed.", merged: true, value: finishedOutput},
	{name: "cached_tokens_total", typ: "counter", help: "Prompt tokens that the cache had.", merged: true, value: finishedCached},
	{name: "num_requests_total", typ: "counter", help: "Requests processed.", merged: true, value: succeeded},
	{name: "num_aborted_requests_total", typ: "counter", help: "Requests aborted.", merged: true, value: finished(requests.Abort)},
})

// zero are gauges that stay 0 in the simulation.
func zero(names ...string) (out []row) {
	for _, name := range names {
		out = append(out, row{name: name, typ: "gauge", help: "Not simulated: 0.", value: fixed(0)})
	}
	return out
}

// mixed is the mix of adapters that was there last.
func mixed(v *view) requests.Mix {
	if n := len(v.Mixes); n > 0 {
		return v.Mixes[n-1]
	}
	return requests.Mix{}
}
