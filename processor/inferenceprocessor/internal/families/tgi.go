// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// tgi is Hugging Face's Text Generation Inference, 1 to 3. Its durations are seconds
// without the suffix, and the bounds of its token counts follow from a model's limits.
var tgi = &Engine{
	Name:     "tgi",
	Title:    "Text Generation Inference",
	Prefixes: []string{"tgi_"},
	Rows: []Row{
		{Metric: &names.GenAIRequestDuration, From: []string{"request_duration"}},
		{
			Metric: &names.InferenceTimePerToken, Attributes: []Attribute{{names.InferenceIncludes, "prefill"}},
			From: []string{"request_mean_time_per_token_duration"},
		},
		{Metric: &names.InferenceQueueTime, From: []string{"request_queue_duration"}},
		{Metric: &names.InferenceInferenceTime, From: []string{"request_inference_duration"}},
		{Metric: &names.InferenceRequestTokens, Attributes: input, From: []string{"request_input_length"}},
		{Metric: &names.InferenceRequestTokens, Attributes: output, From: []string{"request_generated_tokens"}},

		{Metric: &names.InferenceRequests, Attributes: running, From: []string{"batch_current_size"}},
		{Metric: &names.InferenceRequests, Attributes: waiting, From: []string{"queue_size"}},
		{Metric: &names.InferenceRequestsFinished, Attributes: succeeded, From: []string{"request_success"}},
		{
			Metric: &names.InferenceRequestsFinished, From: []string{"request_failure"},
			Dimensions: []Dimension{{Label: "err", Attribute: names.InferenceFinish, Outcome: names.OutcomeError}},
		},
		{
			Metric: &names.InferenceTokens, Attributes: output, From: []string{"request_generated_tokens"}, Rule: SumOf,
			Note: "moves when a request finishes",
		},
		{Metric: &names.InferenceBatchSize, From: []string{"batch_next_size"}},
	},
	Passed: []string{
		"request_count", // all that arrived, however they ended
		"request_skipped_tokens", "request_max_new_tokens", "request_validation_duration", "request_input_count",
		"batch_*", // other than those above: parts of the engine's steps
	},
	Cannot: map[*names.Metric]string{
		&names.GenAITimeToFirstToken:               "not on the page",
		&names.GenAITimePerOutputToken:             "the time per token includes prefill and the first token",
		&names.InferenceInterTokenLatency:          "only a request's mean is on the page",
		&names.InferencePrefillTime:                "only times of batches are on the page",
		&names.InferenceDecodeTime:                 "only times of batches are on the page",
		&names.InferenceRequestsLimit:              "not on the page",
		&names.InferencePrefixCacheQueries:         "not on the page",
		&names.InferencePrefixCacheHits:            "not on the page",
		&names.InferencePrefixCacheHitRatio:        "not on the page",
		&names.InferenceKVCacheUtilization:         "not on the page",
		&names.InferenceKVCacheCapacity:            "the limit on the page is that of a batch",
		&names.InferencePreemptions:                "not on the page",
		&names.InferenceSpeculationDrafts:          "not on the page",
		&names.InferenceSpeculationDraftTokens:     "not on the page",
		&names.InferenceSpeculationAcceptedTokens:  "skipped tokens are a summary of a sliding window",
		&names.InferenceSpeculationAcceptanceRatio: "drafted tokens are not on the page",
		&names.InferenceIterationTokens:            "not on the page",
		&names.InferenceExecutions:                 "calls are counted by method, and a method by version",
		&names.InferenceInferences:                 "not on the page",
		&names.InferenceLoraAdapters:               "not on the page",
		&names.InferenceServerState:                "not on the page",
		&names.InferenceModelLoadTime:              "not on the page",
	},
}
