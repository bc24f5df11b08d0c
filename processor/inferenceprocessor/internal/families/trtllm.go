// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// trtllm is TensorRT-LLM's own server. Early releases have no prefix; those names are
// accepted where the target is known to be this engine.
var trtllm = &Engine{
	Name:     "tensorrt_llm",
	Title:    "TensorRT-LLM",
	Prefixes: []string{"trtllm_", "trtllm:", ""},
	Model:    []string{"model_name"},
	Rows: []Row{
		{Metric: &names.GenAIRequestDuration, From: []string{"e2e_request_latency_seconds"}},
		{Metric: &names.GenAITimeToFirstToken, From: []string{"time_to_first_token_seconds"}},
		{Metric: &names.GenAITimePerOutputToken, From: []string{"time_per_output_token_seconds"}, Note: "one observation a request"},
		{Metric: &names.InferenceQueueTime, From: []string{"request_queue_time_seconds"}},
		{Metric: &names.InferencePrefillTime, From: []string{"request_prefill_time_seconds"}},
		{Metric: &names.InferenceDecodeTime, From: []string{"request_decode_time_seconds"}},
		{Metric: &names.InferenceInferenceTime, From: []string{"request_inference_time_seconds"}},

		{Metric: &names.InferenceRequests, Attributes: running, From: []string{"num_requests_running"}},
		{Metric: &names.InferenceRequests, Attributes: waiting, From: []string{"num_requests_waiting"}},
		{Metric: &names.InferenceRequests, Attributes: paused, From: []string{"num_paused_requests"}},
		{Metric: &names.InferenceRequestsLimit, From: []string{"max_num_active_requests"}},
		{Metric: &names.InferenceRequestsFinished, From: []string{"request_success"}, Dimensions: reasons("finished_reason", names.OutcomeSuccess)},
		{Metric: &names.InferenceRequestsFinished, From: []string{"request_error"}, Dimensions: reasons("http_code", names.OutcomeError)},

		{Metric: &names.InferenceTokens, Attributes: input, From: []string{"prompt_tokens"}},
		{Metric: &names.InferenceTokens, Attributes: output, From: []string{"generation_tokens"}},
		{Metric: &names.InferenceRequestTokens, Attributes: cached, From: []string{"prompt_cached_tokens_per_request"}},
		{Metric: &names.InferencePrefixCacheQueries, Attributes: device, From: []string{"prompt_tokens"}, Beside: "prompt_cached_tokens"},
		{Metric: &names.InferencePrefixCacheHits, Attributes: device, From: []string{"prompt_cached_tokens"}},
		{
			Metric: &names.InferencePrefixCacheHitRatio, Attributes: device, From: []string{"kv_cache_hit_rate"},
			Unless: []string{"prompt_cached_tokens"}, Fold: Highest,
		},

		{Metric: &names.InferenceKVCacheUtilization, Attributes: device, From: []string{"kv_cache_utilization"}, Fold: Highest},
		{Metric: &names.InferenceKVCacheUtilization, Attributes: host, From: []string{"kv_cache_host_utilization"}, Fold: Highest},
		{
			Metric: &names.InferenceKVCacheCapacity, Attributes: device, From: []string{"kv_cache_max_blocks"},
			With: "kv_cache_tokens_per_block", Rule: Product,
		},
		{Metric: &names.InferenceSpeculationDraftTokens, From: []string{"spec_decode_num_draft_tokens"}},
		{Metric: &names.InferenceSpeculationAcceptedTokens, From: []string{"spec_decode_num_accepted_tokens"}},
	},
	Passed: []string{
		// Other counts of the same requests, and parts of them.
		"num_requests_completed", "num_context_requests", "num_generation_requests", "num_scheduled_requests", "prompt_cache_hit_tokens",
		"spec_decode_drafted_tokens", "spec_decode_accepted_tokens", "total_context_tokens",
		// Of the last step, or means.
		"iteration_latency_seconds", "avg_decoded_tokens_per_iter", "spec_decode_acceptance_length", "spec_decode_draft_overhead",
		"prefill_batch_*", "scheduled_batch_size", "kv_cache_iter_*",
		// Blocks and bytes of the cache, memory, settings, quality.
		"kv_cache_reused_blocks", "kv_cache_missed_blocks", "kv_cache_gen_alloc_blocks", "kv_cache_onboard_bytes", "kv_cache_offload_bytes",
		"kv_cache_disk_prefetch_blocks", "kv_cache_intra_device_copy_bytes", "kv_cache_free_blocks", "kv_cache_used_blocks",
		"gpu_memory_usage_bytes", "cpu_memory_usage_bytes", "pinned_memory_usage_bytes", "max_batch_size_*", "max_num_tokens_runtime",
		"prefill_perplexity", "generation_perplexity", "model_config_info", "parallel_config_info", "speculative_config_info",
		"kv_cache_config_info",
	},
	Cannot: map[*names.Metric]string{
		&names.InferenceInterTokenLatency:          "no family has one observation a token",
		&names.InferenceTimePerToken:               "no family has a request's time divided by all of its tokens",
		&names.InferencePreemptions:                "no family counts them",
		&names.InferenceSpeculationDrafts:          "tokens are counted, not drafts",
		&names.InferenceSpeculationAcceptanceRatio: "the counters of tokens have it",
		&names.InferenceBatchSize:                  "only gauges of the last step are on the page",
		&names.InferenceIterationTokens:            "only the tokens of prefill are on the page",
		&names.InferenceExecutions:                 "steps are not counted",
		&names.InferenceInferences:                 "steps are not counted",
		&names.InferenceLoraAdapters:               "no family has adapters",
		&names.InferenceServerState:                "whether the engine sleeps is not on the page",
		&names.InferenceModelLoadTime:              "no family has it",
	},
}
