// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import (
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// vllm is vLLM alone, in Triton, or in Ray, which has underscores for colons and adds
// labels of its workers.
var vllm = &Engine{
	Name:     "vllm",
	Title:    "vLLM",
	Prefixes: []string{"vllm:", "vllm_", "ray_vllm:", "ray_vllm_"},
	Model:    []string{"model_name", "model", "gen_ai_request_model"},
	Rank:     "engine",
	Repeats:  []string{"tgi"}, // the adapter for TGIS
	Rows: slices.Concat(vllmRows, []Row{
		{
			Metric: &names.InferenceRequestsFinished, From: []string{"request_success"}, Dimensions: reasons("finished_reason", names.OutcomeSuccess),
			Note: "aborted ones are in the family too, under their reason",
		},
		{Metric: &names.InferenceRequestsFinished, From: []string{"admission_rejections"}, Dimensions: reasons("reason", names.OutcomeRejected)},
	}),
	Passed: vllmPassed,
	Cannot: map[*names.Metric]string{
		&names.InferenceTimePerToken:  "no family has a request's time divided by all of its tokens",
		&names.InferenceRequestsLimit: "the most requests that run at once are not on the page",
		&names.InferenceBatchSize:     "a step is counted by its tokens, not by its requests",
		&names.InferenceExecutions:    "steps are counted by their tokens alone",
		&names.InferenceInferences:    "steps are counted by their tokens alone",
		&names.InferenceModelLoadTime: "the page begins when the model is loaded",
	},
}

// vllmRows are those that relatives of vLLM have too.
var vllmRows = slices.Concat(vllmTimes, vllmState, vllmTokens)

// vllmTimes are the times of requests. The names that begin with gen_ai are those of a
// proposal to print OpenTelemetry's beside vLLM's own.
var vllmTimes = []Row{
	{
		Metric: &names.GenAIRequestDuration,
		From:   []string{"=gen_ai_server_request_duration_seconds", "=gen_ai_server_request_duration", "e2e_request_latency_seconds"},
	},
	{
		Metric: &names.GenAITimeToFirstToken,
		From:   []string{"=gen_ai_server_time_to_first_token_seconds", "=gen_ai_server_time_to_first_token", "time_to_first_token_seconds"},
	},
	{
		Metric: &names.GenAITimePerOutputToken,
		From: []string{
			"=gen_ai_server_time_per_output_token_seconds", "=gen_ai_server_time_per_output_token", "request_time_per_output_token_seconds",
		},
	},
	{
		Metric: &names.InferenceInterTokenLatency, From: []string{"inter_token_latency_seconds", "time_per_output_token_seconds"},
		Note: "`time_per_output_token_seconds` has one observation a token, too",
	},
	{Metric: &names.InferenceQueueTime, From: []string{"request_queue_time_seconds", "time_in_queue_requests"}},
	{Metric: &names.InferencePrefillTime, From: []string{"request_prefill_time_seconds"}},
	{Metric: &names.InferenceDecodeTime, From: []string{"request_decode_time_seconds"}},
	{Metric: &names.InferenceInferenceTime, From: []string{"request_inference_time_seconds"}},
}

// vllmState is what a server holds now.
var vllmState = []Row{
	{Metric: &names.InferenceRequests, Attributes: running, From: []string{"num_requests_running"}},
	{Metric: &names.InferenceRequests, Attributes: waiting, From: []string{"num_requests_waiting"}},
	{Metric: &names.InferenceRequests, Attributes: swapped, From: []string{"num_requests_swapped"}},
	{
		Metric: &names.InferenceKVCacheUtilization, Attributes: device, From: []string{"kv_cache_usage_perc", "gpu_cache_usage_perc"},
		Fold: Highest, Note: "a ratio in spite of its name; wrong in some releases of 0.9",
	},
	{Metric: &names.InferenceKVCacheUtilization, Attributes: host, From: []string{"cpu_cache_usage_perc"}, Fold: Highest},
	{
		Metric: &names.InferenceKVCacheCapacity, Attributes: device, From: []string{"cache_config_info"},
		Rule: LabelProduct, WithLabels: []string{"num_gpu_blocks", "block_size"}, Note: "absent where a label is None",
	},
	{
		Metric: &names.InferenceLoraAdapters, Attributes: loraRunning, From: []string{"lora_requests_info"},
		Rule: LabelList, WithLabels: []string{"running_lora_adapters"},
	},
	{
		Metric: &names.InferenceLoraAdapters, Attributes: loraWaiting, From: []string{"lora_requests_info"},
		Rule: LabelList, WithLabels: []string{"waiting_lora_adapters"},
	},
	{
		Metric: &names.InferenceLoraAdapters, Attributes: loraLimit, From: []string{"lora_requests_info"},
		Rule: LabelProduct, WithLabels: []string{"max_lora"}, Fold: Highest,
	},
	{
		Metric: &names.InferenceServerState, From: []string{"engine_sleep_state"}, Fold: Highest,
		Dimensions: []Dimension{{
			Label: "sleep_state", Attribute: names.InferenceStateServer, Words: map[string]string{"discard_all": "discarded"},
		}},
	},
}

// vllmTokens are counts of tokens.
var vllmTokens = []Row{
	{Metric: &names.InferenceTokens, Attributes: input, From: []string{"prompt_tokens"}},
	{Metric: &names.InferenceTokens, Attributes: output, From: []string{"generation_tokens"}},
	{Metric: &names.InferenceRequestTokens, Attributes: input, From: []string{"request_prompt_tokens"}},
	{Metric: &names.InferenceRequestTokens, Attributes: output, From: []string{"request_generation_tokens"}},
	{Metric: &names.InferenceIterationTokens, From: []string{"iteration_tokens_total"}, Note: "a histogram in spite of its name"},
	{
		Metric: &names.InferencePrefixCacheQueries, Attributes: device, From: []string{"prefix_cache_queries", "gpu_prefix_cache_queries"},
		Unit: "{block}", UnitHelp: "blocks",
	},
	{
		Metric: &names.InferencePrefixCacheHits, Attributes: device, From: []string{"prefix_cache_hits", "gpu_prefix_cache_hits"},
		Unit: "{block}", UnitHelp: "blocks",
	},
	{Metric: &names.InferencePrefixCacheQueries, Attributes: external, From: []string{"external_prefix_cache_queries"}},
	{Metric: &names.InferencePrefixCacheHits, Attributes: external, From: []string{"external_prefix_cache_hits"}},
	{
		Metric: &names.InferencePrefixCacheHitRatio, Attributes: device, From: []string{"gpu_prefix_cache_hit_rate"},
		Unless: []string{"prefix_cache_queries", "gpu_prefix_cache_queries"}, Negative: true, Fold: Highest,
	},
	{Metric: &names.InferencePrefixCacheHitRatio, Attributes: host, From: []string{"cpu_prefix_cache_hit_rate"}, Negative: true, Fold: Highest},
	{Metric: &names.InferencePreemptions, From: []string{"num_preemptions"}},
	{Metric: &names.InferenceSpeculationDrafts, From: []string{"spec_decode_num_drafts"}},
	{Metric: &names.InferenceSpeculationDraftTokens, From: []string{"spec_decode_num_draft_tokens"}},
	{Metric: &names.InferenceSpeculationAcceptedTokens, From: []string{"spec_decode_num_accepted_tokens"}},
	{
		Metric: &names.InferenceSpeculationAcceptanceRatio, From: []string{"spec_decode_draft_acceptance_rate"},
		Unless: []string{"spec_decode_num_draft_tokens"}, Fold: Highest,
	},
}

// vllmPassed are vLLM's families that are on no row on purpose.
var vllmPassed = []string{
	// Parts of other families.
	"num_requests_waiting_by_reason", "prompt_tokens_by_source", "prompt_tokens_cached", "prompt_tokens_recomputed",
	"spec_decode_num_accepted_tokens_per_pos",
	// Means of an unknown window, milliseconds of the engine's code, what only older versions have.
	"avg_prompt_throughput_toks_per_s", "avg_generation_throughput_toks_per_s", "model_forward_time_milliseconds",
	"model_execute_time_milliseconds", "spec_decode_efficiency", "spec_decode_num_emitted_tokens",
	// What requests asked for, and what is estimated.
	"request_max_num_generation_tokens", "request_params_*", "request_prefill_kv_computed_tokens", "estimated_*",
	// Transfers and caches of other kinds, some without units.
	"nixl_*", "mooncake_*", "kv_offload_*", "mm_cache_*", "kv_block_*",
}

// reading are the rows that read one of these families, and none but these, for engines
// that have some of another's.
func reading(rows []Row, families ...string) (out []Row) {
	for _, r := range rows {
		var from []string
		for _, name := range r.From {
			if slices.Contains(families, name) {
				from = append(from, name)
			}
		}
		if from != nil {
			r.From = from
			out = append(out, r)
		}
	}
	return out
}
