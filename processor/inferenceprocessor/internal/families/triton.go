// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// triton is NVIDIA's Triton Inference Server, with the TensorRT-LLM backend or without.
// Families of other backends, such as vLLM's, are on the page under their own names.
var triton = &Engine{
	Name:     "triton",
	Title:    "Triton Inference Server",
	Prefixes: []string{"nv_"},
	Model:    []string{"model"},
	Rows: []Row{
		{
			Metric: &names.GenAIRequestDuration, From: []string{"inference_request_duration_us"}, With: "inference_request_success",
			Rule: Mean, Div: 1e6, Note: "of successful requests",
		},
		{
			Metric: &names.GenAITimeToFirstToken, From: []string{"inference_first_response_histogram_ms"}, Div: 1000,
			Note: "of models that stream",
		},
		{
			Metric: &names.InferenceQueueTime, From: []string{"inference_queue_duration_us"}, With: "inference_request_success",
			Rule: Mean, Div: 1e6, Note: "of successful requests",
		},

		{Metric: &names.InferenceRequests, Attributes: running, From: []string{"trt_llm_request_metrics"}, Where: Selector{"request_type", "scheduled"}},
		{Metric: &names.InferenceRequests, Attributes: waiting, From: []string{"trt_llm_request_metrics"}, Where: Selector{"request_type", "waiting"}},
		{Metric: &names.InferenceRequests, Attributes: waiting, From: []string{"inference_pending_request_count"}},
		{Metric: &names.InferenceRequestsLimit, From: []string{"trt_llm_request_metrics"}, Where: Selector{"request_type", "max"}, ZeroIsAbsent: true},
		{Metric: &names.InferenceRequestsFinished, Attributes: succeeded, From: []string{"inference_request_success"}},
		{
			Metric: &names.InferenceRequestsFinished, From: []string{"inference_request_failure"},
			Dimensions: []Dimension{{Label: "reason", Attribute: names.InferenceFinish, Outcome: names.OutcomeError}},
		},

		{
			Metric: &names.InferenceKVCacheUtilization, Attributes: device, From: []string{"trt_llm_kv_cache_block_metrics"},
			Where: Selector{"kv_cache_block_type", "used"}, With: "trt_llm_kv_cache_block_metrics",
			WithWhere: Selector{"kv_cache_block_type", "max"}, Rule: Quotient, Fold: Highest,
		},
		{
			Metric: &names.InferenceKVCacheUtilization, Attributes: device, From: []string{"trt_llm_kv_cache_block_metrics"},
			Where: Selector{"kv_cache_block_type", "fraction"}, Fold: Highest, Note: "pages exist on which it contradicts the quotient",
		},
		{
			Metric: &names.InferenceKVCacheCapacity, Attributes: device, From: []string{"trt_llm_kv_cache_block_metrics"},
			Where: Selector{"kv_cache_block_type", "max"}, With: "trt_llm_kv_cache_block_metrics",
			WithWhere: Selector{"kv_cache_block_type", "tokens_per"}, Rule: Product, ZeroIsAbsent: true,
		},

		{Metric: &names.InferenceExecutions, From: []string{"inference_exec_count"}},
		{Metric: &names.InferenceInferences, From: []string{"inference_count"}},
		{Metric: &names.InferenceModelLoadTime, From: []string{"model_load_duration_secs"}, ZeroIsAbsent: true, Fold: Highest},
	},
	Passed: []string{
		// Times of parts of a request, and quantiles of a sliding window.
		"inference_compute_*", "inference_request_summary_us", "inference_queue_summary_us",
		// Of the cache of responses, and of the host.
		"cache_*", "cpu_*", "pinned_memory_*",
		"trt_llm_runtime_memory_metrics", "trt_llm_inflight_batcher_metrics", "trt_llm_v1_metrics", "trt_llm_general_metrics",
		// Milliseconds and requests in one counter.
		"trt_llm_disaggregated_serving_metrics",
		"trt_llm_response_metrics",
	},
	Dropped: []string{"nv_gpu_*", "nv_energy_*"},
	Cannot: map[*names.Metric]string{
		&names.GenAITimePerOutputToken:             "Triton knows responses, not tokens",
		&names.InferenceInterTokenLatency:          "Triton knows responses, not tokens",
		&names.InferenceTimePerToken:               "Triton knows responses, not tokens",
		&names.InferencePrefillTime:                "phases are those of a batch, not of a model that generates",
		&names.InferenceDecodeTime:                 "phases are those of a batch, not of a model that generates",
		&names.InferenceInferenceTime:              "the time of computing is counted once a request of a batch, without cached requests",
		&names.InferenceRequestTokens:              "Triton knows responses, not tokens",
		&names.InferenceTokens:                     "Triton knows responses, not tokens",
		&names.InferencePrefixCacheQueries:         "the cache that is counted has whole responses",
		&names.InferencePrefixCacheHits:            "the cache that is counted has whole responses",
		&names.InferencePrefixCacheHitRatio:        "the cache that is counted has whole responses",
		&names.InferencePreemptions:                "not on the page",
		&names.InferenceSpeculationDrafts:          "not on the page",
		&names.InferenceSpeculationDraftTokens:     "not on the page",
		&names.InferenceSpeculationAcceptedTokens:  "not on the page",
		&names.InferenceSpeculationAcceptanceRatio: "not on the page",
		&names.InferenceBatchSize:                  "only its mean: inferences divided by executions",
		&names.InferenceIterationTokens:            "tokens of a step are on the page without a distribution",
		&names.InferenceLoraAdapters:               "not on the page",
		&names.InferenceServerState:                "not on the page",
	},
}
