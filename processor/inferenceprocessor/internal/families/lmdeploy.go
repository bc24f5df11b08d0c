// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import (
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// lmdeploy is LMDeploy, with families modelled on vLLM's.
var lmdeploy = &Engine{
	Name:     "lmdeploy",
	Title:    "LMDeploy",
	Prefixes: []string{"lmdeploy:", "lmdeploy_"},
	Model:    []string{"model_name"},
	Rank:     "engine",
	Rows: slices.Concat(reading(vllmRows,
		"e2e_request_latency_seconds", "time_to_first_token_seconds", "time_per_output_token_seconds", "request_queue_time_seconds",
		"request_prefill_time_seconds", "request_decode_time_seconds", "request_inference_time_seconds", "num_requests_running",
		"num_requests_waiting", "gpu_cache_usage_perc", "prompt_tokens", "generation_tokens", "request_prompt_tokens",
		"request_generation_tokens", "iteration_tokens_total", "spec_decode_num_drafts", "spec_decode_num_draft_tokens",
		"spec_decode_num_accepted_tokens",
	), []Row{
		{Metric: &names.InferenceRequestsFinished, From: []string{"request_success"}, Dimensions: reasons("finished_reason", names.OutcomeError)},
		{
			Metric: &names.InferenceRequestsFinished, Attributes: succeeded, From: []string{"num_requests_succeeded"},
			Unless: []string{"request_success"}, Monotonic: true,
		},
		{
			Metric: &names.InferenceRequestsFinished, Attributes: failed, From: []string{"num_requests_failed"},
			Unless: []string{"request_success"}, Monotonic: true,
		},
		{Metric: &names.InferencePrefixCacheQueries, Attributes: device, From: []string{"prompt_tokens"}, Beside: "cached_tokens"},
		{Metric: &names.InferencePrefixCacheHits, Attributes: device, From: []string{"cached_tokens"}},
		{
			Metric: &names.InferencePrefixCacheHitRatio, Attributes: device, From: []string{"prefix_cache_hit_rate"},
			Unless: []string{"cached_tokens"}, Fold: Highest,
		},
	}),
	Passed: []string{
		// Requests before the engine, and what requests asked for.
		"num_api_requests_routed", "num_api_requests_waiting", "request_max_num_generation_tokens", "request_params_*",
		// Of steps and not of tokens, though it is called a latency between tokens.
		"iter_token_latency",
		// Quotients of the counters, and parts of them.
		"spec_decode_mean_*", "spec_decode_per_position_accept_rate", "spec_decode_num_accepted_tokens_per_pos",
		"multimodal_*", "backend_config_info",
	},
	Cannot: map[*names.Metric]string{
		&names.GenAITimePerOutputToken:             "the family of that name has one observation a token",
		&names.InferenceTimePerToken:               vllm.Cannot[&names.InferenceTimePerToken],
		&names.InferenceRequestsLimit:              vllm.Cannot[&names.InferenceRequestsLimit],
		&names.InferenceKVCacheCapacity:            "the blocks of the cache are not on the page",
		&names.InferencePreemptions:                "no family counts them",
		&names.InferenceSpeculationAcceptanceRatio: "the counters of tokens have it",
		&names.InferenceBatchSize:                  vllm.Cannot[&names.InferenceBatchSize],
		&names.InferenceExecutions:                 vllm.Cannot[&names.InferenceExecutions],
		&names.InferenceInferences:                 vllm.Cannot[&names.InferenceInferences],
		&names.InferenceLoraAdapters:               "no family has adapters",
		&names.InferenceServerState:                "whether the engine sleeps is not on the page",
		&names.InferenceModelLoadTime:              vllm.Cannot[&names.InferenceModelLoadTime],
	},
}
