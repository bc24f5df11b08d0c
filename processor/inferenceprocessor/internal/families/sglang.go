// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// sglang is SGLang. Families of its schedulers have labels of ranks: those of tensor,
// pipeline and expert ranks repeat each other, those of data-parallel ranks do not. With
// pipeline stages on several nodes, each node has a page with its own. Its
// counters of requests and their tokens move when a request ends.
var sglang = &Engine{
	Name:     "sglang",
	Title:    "SGLang",
	Prefixes: []string{"sglang:", "sglang_"},
	Model:    []string{"model_name"},
	Rank:     "dp_rank",
	Lowest:   []string{"tp_rank", "pp_rank", "moe_ep_rank"},
	Stage:    "pp_rank",
	Rows: []Row{
		{Metric: &names.GenAIRequestDuration, From: []string{"e2e_request_latency_seconds"}},
		{Metric: &names.GenAITimeToFirstToken, From: []string{"time_to_first_token_seconds"}},
		{
			Metric: &names.InferenceInterTokenLatency, From: []string{"inter_token_latency_seconds", "time_per_output_token_seconds"},
			Note: "`time_per_output_token_seconds` has one observation a token, too",
		},
		{Metric: &names.InferenceQueueTime, From: []string{"queue_time_seconds"}},

		{Metric: &names.InferenceRequests, Attributes: running, From: []string{"num_running_reqs"}},
		{Metric: &names.InferenceRequests, Attributes: waiting, From: []string{"num_queue_reqs"}},
		{Metric: &names.InferenceRequests, Attributes: paused, From: []string{"num_paused_reqs"}},
		{Metric: &names.InferenceRequestsFinished, Attributes: succeeded, From: []string{"num_requests"}, Note: "versions may count aborted ones too"},
		{Metric: &names.InferenceRequestsFinished, Attributes: cancelled, From: []string{"num_aborted_requests"}},

		{
			Metric: &names.InferenceTokens, Attributes: input, From: []string{"realtime_tokens"},
			Where: Selector{"mode", "prefill_compute"}, Or: "prefill_cache",
		},
		{Metric: &names.InferenceTokens, Attributes: input, From: []string{"prompt_tokens"}, Note: "counted when a request ends"},
		{Metric: &names.InferenceTokens, Attributes: output, From: []string{"realtime_tokens"}, Where: Selector{"mode", "decode"}},
		{Metric: &names.InferenceTokens, Attributes: output, From: []string{"generation_tokens"}, Note: "counted when a request ends"},
		{Metric: &names.InferenceRequestTokens, Attributes: input, From: []string{"prompt_tokens_histogram"}},
		{Metric: &names.InferenceRequestTokens, Attributes: output, From: []string{"generation_tokens_histogram"}},
		{
			Metric: &names.InferencePrefixCacheQueries, Attributes: device, From: []string{"prompt_tokens"}, Beside: "cached_tokens",
			Note: "counted when a request ends",
		},
		{Metric: &names.InferencePrefixCacheHits, Attributes: device, From: []string{"cached_tokens"}, Note: "counted when a request ends"},
		{
			Metric: &names.InferencePrefixCacheHitRatio, Attributes: device, From: []string{"cache_hit_rate"}, Unless: []string{"cached_tokens"},
			Fold: Highest, Note: "of the last log interval",
		},

		{Metric: &names.InferenceKVCacheUtilization, Attributes: device, From: []string{"token_usage"}, Fold: Highest},
		{Metric: &names.InferenceKVCacheCapacity, Attributes: device, From: []string{"max_total_num_tokens"}},
		{Metric: &names.InferencePreemptions, From: []string{"num_retracted_requests"}},
		{
			Metric: &names.InferenceSpeculationAcceptanceRatio, From: []string{"spec_accept_rate"}, With: "spec_accept_length",
			Rule: Given, Fold: Highest,
		},
		{Metric: &names.InferenceLoraAdapters, Attributes: loraRunning, From: []string{"lora_pool_slots_used"}},
		{Metric: &names.InferenceLoraAdapters, Attributes: loraLimit, From: []string{"lora_pool_slots_total"}},
		{Metric: &names.InferenceModelLoadTime, From: []string{"engine_load_weights_time"}, ZeroIsAbsent: true, Fold: Highest},
	},
	Passed: []string{
		// Stages that differ with disaggregation, and parts of requests and of tokens.
		"per_stage_req_latency_seconds", "num_grammar_queue_reqs", "num_running_reqs_offline_batch", "num_prefill_*", "num_decode_*",
		"num_used_tokens", "decode_sum_seq_lens", "full_token_usage", "swa_*", "mamba_*", "pending_prealloc_token_usage", "num_so_requests",
		"dp_cooperation_*", "num_unique_running_routing_keys", "routing_key_*",
		// A gauge of the last step, and a histogram of retractions a request.
		"num_retracted_reqs", "num_retractions", "num_retracted_input_tokens", "num_retracted_output_tokens",
		// Means of an unknown window.
		"gen_throughput", "utilization", "new_token_ratio", "max_running_requests_under_SLO", "lora_pool_utilization",
		// Of the engine's code and its start.
		"func_latency_seconds", "is_cuda_graph", "cuda_graph_passes", "engine_startup_time", "gpu_execution_seconds", "gpu_overlap_wait_seconds",
		"forward_execution_seconds", "estimated_*", "eplb_*", "cache_config_info", "process_cpu_seconds",
		// Other caches, transfers between engines in milliseconds and megabytes, grammars.
		"hicache_*", "evicted_tokens", "eviction_duration_seconds", "load_back_*", "prefetch*", "backup*", "kv_transfer_*",
		"num_bootstrap_failed_reqs", "num_transfer_failed_reqs", "grammar_*", "num_grammar_*",
	},
	Cannot: map[*names.Metric]string{
		&names.GenAITimePerOutputToken:            "the family of that name has one observation a token",
		&names.InferenceTimePerToken:              "no family has a request's time divided by its tokens",
		&names.InferencePrefillTime:               "stages of a request differ with disaggregation",
		&names.InferenceDecodeTime:                "stages of a request differ with disaggregation",
		&names.InferenceInferenceTime:             "stages of a request differ with disaggregation",
		&names.InferenceRequestsLimit:             "the most requests that run at once are not on the page",
		&names.InferenceSpeculationDrafts:         "only a mean of the acceptance is on the page",
		&names.InferenceSpeculationDraftTokens:    "only a mean of the acceptance is on the page",
		&names.InferenceSpeculationAcceptedTokens: "only a mean of the acceptance is on the page",
		&names.InferenceBatchSize:                 "no family has the size of a batch",
		&names.InferenceIterationTokens:           "no family has the tokens of a step",
		&names.InferenceExecutions:                "steps are not counted",
		&names.InferenceInferences:                "steps are not counted",
		&names.InferenceServerState:               "whether the engine sleeps is not on the page",
	},
}
