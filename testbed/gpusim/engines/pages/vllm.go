// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"slices"
	"strconv"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// vllmEngines are the versions with different pages: v0; the first of v1, which counts
// blocks; the one with old and new names side by side; and the one without the old.
var vllmEngines = []Engine{
	{Name: "vllm-0.5", Path: "/metrics", Port: 8000, prefix: "vllm:", style: pythonStyle, labels: modelName, rows: vllm05},
	{Name: "vllm-0.8", Path: "/metrics", Port: 8000, prefix: "vllm:", style: createdStyle, labels: modelName, rows: vllm08},
	{Name: "vllm-0.11", Path: "/metrics", Port: 8000, prefix: "vllm:", style: createdStyle, ranked: true, labels: modelAndEngine, rows: vllm11},
	{Name: "vllm-0.21", Path: "/metrics", Port: 8000, prefix: "vllm:", style: createdStyle, ranked: true, labels: modelAndEngine, rows: vllm21},
}

var (
	pythonStyle  = style{number: python, process: true}
	createdStyle = style{number: python, process: true, created: true}
)

// modelAndEngine: engine is the data-parallel rank.
func modelAndEngine(v *view) labels {
	return labels{"model_name", v.Model, "engine", strconv.Itoa(v.rank)}
}

var vllm05 = []row{
	cacheConfig("Configuration of the cache.", noLabels, labels{"cache_dtype", "auto", "enable_prefix_caching", "False", "cpu_offload_gb", "0", "num_cpu_blocks", "2048", "swap_space_bytes", "4294967296"}),
	{name: "num_requests_running", typ: "gauge", help: "Requests that the GPU works on.", value: running},
	{name: "num_requests_waiting", typ: "gauge", help: "Requests that wait to be processed.", value: waiting},
	{name: "num_requests_swapped", typ: "gauge", help: "Requests swapped to the CPU.", value: fixed(0)},
	{name: "gpu_cache_usage_perc", typ: "gauge", help: "Use of the GPU's KV cache; 1 is all of it.", value: kvUsage},
	{name: "cpu_cache_usage_perc", typ: "gauge", help: "Use of the CPU's KV cache; 1 is all of it.", value: fixed(0)},
	// -1 is off: this version has no prefix cache unless it is asked for.
	{name: "cpu_prefix_cache_hit_rate", typ: "gauge", help: "Hit rate of prefix blocks in the CPU's cache.", value: fixed(-1)},
	{name: "gpu_prefix_cache_hit_rate", typ: "gauge", help: "Hit rate of prefix blocks in the GPU's cache.", value: fixed(-1)},
	{name: "num_preemptions_total", typ: "counter", help: "Preemptions since the start.", value: preemptions},
	{name: "prompt_tokens_total", typ: "counter", help: "Prefill tokens processed.", value: inputTokens},
	{name: "generation_tokens_total", typ: "counter", help: "Generation tokens processed.", value: outputTokens},
	{name: "time_to_first_token_seconds", typ: "histogram", help: "Time to the first token in seconds.", figure: requests.FirstToken, bounds: firstTokenV0},
	{name: "time_per_output_token_seconds", typ: "histogram", help: "Time per output token in seconds.", figure: requests.InterToken, bounds: perTokenV0},
	{name: "e2e_request_latency_seconds", typ: "histogram", help: "End to end latency of requests in seconds.", figure: requests.Duration, bounds: requestV0},
	{name: "request_prompt_tokens", typ: "histogram", help: "Prefill tokens of a request.", figure: requests.PromptTokens, bounds: oneTwoFive},
	{name: "request_generation_tokens", typ: "histogram", help: "Generation tokens of a request.", figure: requests.OutputTokens, bounds: oneTwoFive},
	{name: "request_params_best_of", typ: "histogram", help: "The parameter best_of of requests.", figure: requests.Choices, bounds: choices},
	{name: "request_params_n", typ: "histogram", help: "The parameter n of requests.", figure: requests.Choices, bounds: choices},
	{
		name: "request_success_total", typ: "counter", help: "Requests processed.",
		each: occurred(byReason("finished_reason", requests.Stop, requests.Length, requests.Abort)),
	},
	// Rates of an unknown window: here of the whole life.
	{name: "avg_prompt_throughput_toks_per_s", typ: "gauge", help: "Mean prefill tokens in a second.", value: rate(inputTokens)},
	{name: "avg_generation_throughput_toks_per_s", typ: "gauge", help: "Mean generation tokens in a second.", value: rate(outputTokens)},
	speculation[0], speculation[1], speculation[2],
	{name: "spec_decode_draft_acceptance_rate", typ: "gauge", help: "Part of the proposed tokens that was accepted.", value: acceptance, when: speculates},
	loraInfo,
}

var vllm08 = slices.Concat([]row{
	{name: "num_requests_running", typ: "gauge", help: "Requests in the batches of the model.", value: running},
	{name: "num_requests_waiting", typ: "gauge", help: "Requests that wait to be processed.", value: waiting},
	{name: "gpu_cache_usage_perc", typ: "gauge", help: "Use of the GPU's KV cache; 1 is all of it.", value: kvUsage},
	{name: "gpu_prefix_cache_queries_total", typ: "counter", help: "Queries of the GPU's prefix cache, in terms of number of queried blocks.", value: queriedBlocks},
	{name: "gpu_prefix_cache_hits_total", typ: "counter", help: "Hits of the GPU's prefix cache, in terms of number of cached blocks.", value: hitBlocks},
}, vllmTokens, success(requests.Stop, requests.Length, requests.Abort), vllmRequests, []row{
	{name: "time_to_first_token_seconds", typ: "histogram", help: "Time to the first token in seconds.", figure: requests.FirstToken, bounds: firstTokenV0},
	{name: "time_per_output_token_seconds", typ: "histogram", help: "Time per output token in seconds.", figure: requests.InterToken, bounds: perTokenV0},
}, vllmTimes, speculation, []row{loraInfo, cacheConfig("Configuration of the cache.", noLabels, labels{"cache_dtype", "auto", "enable_prefix_caching", "True", "num_cpu_blocks", "None"})})

// vllm11 has what was renamed under both names.
var vllm11 = slices.Concat([]row{
	{name: "num_requests_running", typ: "gauge", help: "Requests in the batches of the model.", value: running},
	{name: "num_requests_waiting", typ: "gauge", help: "Requests that wait to be processed.", value: waiting},
	{name: "gpu_cache_usage_perc", typ: "gauge", help: "Use of the GPU's KV cache; 1 is all of it. DEPRECATED: use kv_cache_usage_perc.", value: kvUsage},
	{name: "gpu_prefix_cache_queries_total", typ: "counter", help: "Queries of the GPU's prefix cache, in terms of number of queried tokens. DEPRECATED.", value: queried},
	{name: "gpu_prefix_cache_hits_total", typ: "counter", help: "Hits of the GPU's prefix cache, in terms of number of cached tokens. DEPRECATED.", value: hits},
	{name: "kv_cache_usage_perc", typ: "gauge", help: "Use of the KV cache; 1 is all of it.", value: kvUsage},
}, prefixCache, vllmTokens, success(requests.Stop, requests.Length, requests.Abort), vllmRequests, []row{
	{name: "time_to_first_token_seconds", typ: "histogram", help: "Time to the first token in seconds.", figure: requests.FirstToken, bounds: firstTokenV1},
	{name: "time_per_output_token_seconds", typ: "histogram", help: "Time per output token in seconds. DEPRECATED: use inter_token_latency_seconds.", figure: requests.InterToken, bounds: perTokenV1},
}, perToken, vllmTimes, speculation, []row{loraInfo, cacheConfig("Configuration of the cache.", rankOnly, labels{"cache_dtype", "auto", "enable_prefix_caching", "True", "num_cpu_blocks", "None"})})

var vllm21 = slices.Concat([]row{
	{name: "estimated_flops_per_gpu_total", typ: "counter", help: "Estimated operations of each GPU.", value: fixed(0)},
	{name: "estimated_read_bytes_per_gpu_total", typ: "counter", help: "Estimated bytes that each GPU read.", value: fixed(0)},
	{name: "estimated_write_bytes_per_gpu_total", typ: "counter", help: "Estimated bytes that each GPU wrote.", value: fixed(0)},
	{name: "num_requests_running", typ: "gauge", help: "Requests in the batches of the model.", value: running},
	{name: "num_requests_waiting", typ: "gauge", help: "Requests that wait to be processed.", value: waiting},
	{
		name: "num_requests_waiting_by_reason", typ: "gauge", help: "Requests that wait, by the reason: together num_requests_waiting.",
		each: func(v *view) []sample {
			return []sample{{labels{"reason", "capacity"}, waiting(v)}, {labels{"reason", "deferred"}, 0}}
		},
	},
	{name: "engine_sleep_state", typ: "gauge", help: "Whether the engine is awake, at sleep level 1 or at level 2.", each: sleepState},
	{name: "kv_cache_usage_perc", typ: "gauge", help: "Use of the KV cache; 1 is all of it.", value: kvUsage},
}, prefixCache, []row{
	{name: "mm_cache_queries_total", typ: "counter", help: "Queries of the multi-modal cache, in items.", value: fixed(0)},
	{name: "mm_cache_hits_total", typ: "counter", help: "Hits of the multi-modal cache, in items.", value: fixed(0)},
	{name: "num_preemptions_total", typ: "counter", help: "Preemptions since the start.", value: preemptions},
	{name: "prompt_tokens_total", typ: "counter", help: "Prefill tokens processed.", value: inputTokens},
	{
		name: "prompt_tokens_by_source_total", typ: "counter", help: "Prompt tokens by where they came from.",
		each: func(v *view) []sample {
			return []sample{
				{labels{"source", "local_compute"}, inputTokens(v) - cachedInput(v)}, {labels{"source", "local_cache_hit"}, cachedInput(v)},
				{labels{"source", "external_kv_transfer"}, 0},
			}
		},
	},
	{name: "prompt_tokens_cached_total", typ: "counter", help: "Prompt tokens that a cache had.", value: cachedInput},
	{name: "prompt_tokens_recomputed_total", typ: "counter", help: "Cached tokens that were computed again.", value: fixed(0)},
	{name: "generation_tokens_total", typ: "counter", help: "Generation tokens processed.", value: outputTokens},
}, success(requests.Stop, requests.Length, requests.Abort, requests.Error), vllmRequests, []row{
	{name: "time_to_first_token_seconds", typ: "histogram", help: "Time to the first token in seconds.", figure: requests.FirstToken, bounds: firstTokenV1},
}, perToken, vllmTimes, []row{
	{name: "request_prefill_kv_computed_tokens", typ: "histogram", help: "Tokens computed in prefill, without cached ones.", figure: requests.ComputedTokens, bounds: oneTwoFive},
}, speculation, []row{
	loraInfo,
	cacheConfig("Configuration of the cache.", rankOnly, labels{"cache_dtype", "auto", "enable_prefix_caching", "True", "cpu_offload_gb", "0", "kv_offloading_size", "None", "num_cpu_blocks", "None"}),
	{
		name: "=http_request_duration_highr_seconds", typ: "histogram", help: "Latency of HTTP requests.", free: true, figure: requests.Duration,
		bounds: in(.01, .025, .05, .075, .1, .25, .5, .75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60),
	},
})

var prefixCache = []row{
	{name: "prefix_cache_queries_total", typ: "counter", help: "Queries of the prefix cache, in terms of number of queried tokens.", value: queried},
	{name: "prefix_cache_hits_total", typ: "counter", help: "Hits of the prefix cache, in terms of number of cached tokens.", value: hits},
	{name: "external_prefix_cache_queries_total", typ: "counter", help: "Queries of other instances' caches, in terms of number of queried tokens.", value: fixed(0)},
	{name: "external_prefix_cache_hits_total", typ: "counter", help: "Hits of other instances' caches, in terms of number of cached tokens.", value: fixed(0)},
}

var vllmTokens = []row{
	{name: "num_preemptions_total", typ: "counter", help: "Preemptions since the start.", value: preemptions},
	{name: "prompt_tokens_total", typ: "counter", help: "Prefill tokens processed.", value: inputTokens},
	{name: "generation_tokens_total", typ: "counter", help: "Generation tokens processed.", value: outputTokens},
}

var vllmRequests = []row{
	{name: "request_prompt_tokens", typ: "histogram", help: "Prefill tokens of a request.", figure: requests.PromptTokens, bounds: oneTwoFive},
	{name: "request_generation_tokens", typ: "histogram", help: "Generation tokens of a request.", figure: requests.OutputTokens, bounds: oneTwoFive},
	{name: "iteration_tokens_total", typ: "histogram", help: "Tokens of a step of the engine.", figure: requests.StepTokens, bounds: stepTokens},
	{name: "request_max_num_generation_tokens", typ: "histogram", help: "Most generation tokens that a request asked for.", figure: requests.MostTokens, bounds: oneTwoFive},
	{name: "request_params_n", typ: "histogram", help: "The parameter n of requests.", figure: requests.Choices, bounds: choices},
	{name: "request_params_max_tokens", typ: "histogram", help: "The parameter max_tokens of requests.", figure: requests.MostTokens, bounds: oneTwoFive},
}

var perToken = []row{
	{name: "inter_token_latency_seconds", typ: "histogram", help: "Time between two tokens in seconds.", figure: requests.InterToken, bounds: perTokenV1},
	{name: "request_time_per_output_token_seconds", typ: "histogram", help: "Time per output token of a request in seconds.", figure: requests.PerOutputToken, bounds: perTokenV1},
}

var vllmTimes = []row{
	{name: "e2e_request_latency_seconds", typ: "histogram", help: "End to end latency of requests in seconds.", figure: requests.Duration, bounds: requestV1},
	{name: "request_queue_time_seconds", typ: "histogram", help: "Time of a request in the phase WAITING.", figure: requests.QueueTime, bounds: requestV1},
	{name: "request_inference_time_seconds", typ: "histogram", help: "Time of a request in the phase RUNNING.", figure: requests.InferenceTime, bounds: requestV1},
	{name: "request_prefill_time_seconds", typ: "histogram", help: "Time of a request in the phase PREFILL.", figure: requests.PrefillTime, bounds: requestV1},
	{name: "request_decode_time_seconds", typ: "histogram", help: "Time of a request in the phase DECODE.", figure: requests.DecodeTime, bounds: requestV1},
}

func success(all ...requests.Reason) []row {
	return []row{{name: "request_success_total", typ: "counter", help: "Requests processed.", each: byReason("finished_reason", all...)}}
}

var speculation = []row{
	{name: "spec_decode_num_drafts_total", typ: "counter", help: "Drafts.", value: drafts, when: speculates},
	{name: "spec_decode_num_draft_tokens_total", typ: "counter", help: "Tokens proposed in drafts.", value: draftTokens, when: speculates},
	{name: "spec_decode_num_accepted_tokens_total", typ: "counter", help: "Proposed tokens that were accepted.", value: acceptedTokens, when: speculates},
}

// loraInfo has a time for a value and the adapters in its labels: each mix of them is
// another series, and those that were stay.
var loraInfo = row{
	name: "lora_requests_info", typ: "gauge", help: "Adapters of running and of waiting requests.", when: hasLoRA, merged: true, base: noLabels,
	each: func(v *view) (out []sample) {
		for _, m := range v.Mixes {
			out = append(out, sample{labels{
				"max_lora", strconv.Itoa(len(v.Adapters)), "running_lora_adapters", m.Running, "waiting_lora_adapters", m.Waiting,
			}, v.unix(m.Seen)})
		}
		return out
	},
}

func sleepState(v *view) []sample {
	awake, offloaded := 1.0, 0.0
	if v.Asleep {
		awake, offloaded = 0, 1
	}
	return []sample{
		{labels{"sleep_state", "awake"}, awake}, {labels{"sleep_state", "weights_offloaded"}, offloaded}, {labels{"sleep_state", "discard_all"}, 0},
	}
}

// cacheConfig has its values in labels; other are those that change nothing.
func cacheConfig(help string, base func(*view) labels, other labels) row {
	return row{name: "cache_config_info", typ: "gauge", help: help, base: base, each: func(v *view) []sample {
		own := labels{
			"block_size", strconv.Itoa(v.Block), "gpu_memory_utilization", "0.9", "num_gpu_blocks", strconv.Itoa(v.Blocks),
			"num_gpu_blocks_override", "None", "sliding_window", "None",
		}
		return []sample{{slices.Concat(own, other), 1}}
	}}
}

func noLabels(*view) labels { return nil }

func rankOnly(v *view) labels { return labels{"engine", strconv.Itoa(v.rank)} }
