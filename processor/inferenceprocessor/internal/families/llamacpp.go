// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// llamacpp is the server of llama.cpp, with --metrics. The page of one model does not
// name it.
var llamacpp = &Engine{
	Name:     "llamacpp",
	Title:    "llama.cpp",
	Prefixes: []string{"llamacpp:", "llamacpp_"},
	Model:    []string{"model"},
	Rows: []Row{
		{
			Metric: &names.InferenceInterTokenLatency, From: []string{"tokens_predicted_seconds"}, With: "tokens_predicted", Rule: Mean,
			Note: "moves when a request finishes",
		},
		{Metric: &names.InferenceRequests, Attributes: running, From: []string{"requests_processing"}},
		{Metric: &names.InferenceRequests, Attributes: waiting, From: []string{"requests_deferred"}},
		{
			Metric: &names.InferenceTokens, Attributes: input, From: []string{"prompt_tokens"},
			Note: "those that were computed: tokens from the cache are not in it",
		},
		{Metric: &names.InferenceTokens, Attributes: output, From: []string{"tokens_predicted"}, Note: "moves when a request finishes"},
		{Metric: &names.InferenceKVCacheUtilization, Attributes: device, From: []string{"kv_cache_usage_ratio"}, Note: "builds until 2025"},
		{Metric: &names.InferenceSpeculationDrafts, From: []string{"spec_decode_num_drafts"}},
		{Metric: &names.InferenceSpeculationDraftTokens, From: []string{"spec_decode_num_draft_tokens"}},
		{Metric: &names.InferenceSpeculationAcceptedTokens, From: []string{"spec_decode_num_accepted_tokens"}},
	},
	Passed: []string{
		"prompt_seconds",                                    // without the number of requests that it is of
		"prompt_tokens_seconds", "predicted_tokens_seconds", // tokens per second since the start
		"n_decode", "n_busy_slots_per_decode", // calls, and a mean since the start
		"n_tokens_max", "n_past_max", // high-water marks, whatever their type
		"kv_cache_tokens", "prompt_tokens_cached",
	},
	Cannot: map[*names.Metric]string{
		&names.GenAIRequestDuration:                "the page has no time of a request",
		&names.GenAITimeToFirstToken:               "the page has no time of a request",
		&names.GenAITimePerOutputToken:             "the page has the time of all tokens, not of a request",
		&names.InferenceTimePerToken:               "the page has the time of all tokens, not of a request",
		&names.InferenceQueueTime:                  "the page has no time of a request",
		&names.InferencePrefillTime:                "the time of prefill is on the page without a number of requests",
		&names.InferenceDecodeTime:                 "the time of decode is on the page without a number of requests",
		&names.InferenceInferenceTime:              "times are on the page without a number of requests",
		&names.InferenceRequestTokens:              "only the sum of all requests is on the page",
		&names.InferenceRequestsLimit:              "the number of slots is not on the page",
		&names.InferenceRequestsFinished:           "finished requests are not counted",
		&names.InferencePrefixCacheQueries:         "not on the page",
		&names.InferencePrefixCacheHits:            "only newer builds count them, and not what was looked up",
		&names.InferencePrefixCacheHitRatio:        "not on the page",
		&names.InferenceKVCacheCapacity:            "the page has the tokens in the cache, not its size",
		&names.InferencePreemptions:                "not on the page",
		&names.InferenceSpeculationAcceptanceRatio: "the two counters give it",
		&names.InferenceBatchSize:                  "only its mean since the start is on the page",
		&names.InferenceIterationTokens:            "not on the page",
		&names.InferenceExecutions:                 "calls to decode are counted, of which a step may need several",
		&names.InferenceInferences:                 "not on the page",
		&names.InferenceLoraAdapters:               "not on the page",
		&names.InferenceServerState:                "not on the page",
		&names.InferenceModelLoadTime:              "not on the page",
	},
}
