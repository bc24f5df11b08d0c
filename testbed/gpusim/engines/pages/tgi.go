// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import "github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"

// tgiSeconds are the bounds of every duration of TGI: 35, each half as much more.
var tgiSeconds = growing(.00015, 1.5, 150)

func limitInput(l requests.Limits) int { return l.Input }
func limitTotal(l requests.Limits) int { return l.Total }

// tgi3 has seconds without the unit in the name, and no time to first token.
var tgi3 = []row{
	{name: "request_count", typ: "counter", help: "Requests.", value: arrived},
	{name: "request_success", typ: "counter", help: "Requests that succeeded.", value: succeeded},
	{
		name: "request_failure", typ: "counter", help: "Requests that failed.",
		each: occurred(func(v *view) []sample {
			return []sample{
				{labels{"err", "generation"}, finished(requests.Error)(v)}, {labels{"err", "overloaded"}, finished(requests.Overloaded)(v)},
			}
		}),
	},
	{name: "request_duration", typ: "histogram", help: "Time of a request.", figure: requests.Duration, bounds: tgiSeconds},
	{name: "request_queue_duration", typ: "histogram", help: "Time of a request in the queue.", figure: requests.QueueTime, bounds: tgiSeconds},
	{name: "request_inference_duration", typ: "histogram", help: "Time of a request in inference.", figure: requests.InferenceTime, bounds: tgiSeconds},
	{
		name: "request_mean_time_per_token_duration", typ: "histogram", help: "Mean time of a request for each token.", figure: requests.InferencePerToken,
		bounds: tgiSeconds,
	},
	{name: "request_input_length", typ: "histogram", help: "Input tokens of a request.", figure: requests.PromptTokens, bounds: hundredth(limitInput)},
	{name: "request_generated_tokens", typ: "histogram", help: "Generated tokens of a request.", figure: requests.OutputTokens, bounds: hundredth(limitTotal)},
	{name: "request_max_new_tokens", typ: "histogram", help: "Most new tokens of a request.", figure: requests.MostTokens, bounds: hundredth(limitTotal)},
	{name: "batch_next_size", typ: "histogram", help: "Size of the next batch.", figure: requests.StepBatch, bounds: upTo(1024)},
	{
		name: "batch_inference_duration", typ: "histogram", help: "Time of a batch.", labels: labels{"method", "decode"}, figure: requests.StepSeconds,
		bounds: tgiSeconds,
	},
	{name: "batch_inference_count", typ: "counter", help: "Inference calls.", labels: labels{"method", "decode"}, value: steps},
	{name: "batch_inference_success", typ: "counter", help: "Inference calls that succeeded.", labels: labels{"method", "decode"}, value: steps},
	{name: "batch_current_size", typ: "gauge", help: "Size of the batch.", value: running},
	{name: "batch_current_max_tokens", typ: "gauge", help: "Most tokens of the batch.", value: kvTokens},
	{name: "queue_size", typ: "gauge", help: "Requests in the queue.", value: waiting},
	{
		name: "request_skipped_tokens", typ: "summary", help: "Tokens of a request that speculation saved.", figure: requests.SkippedTokens,
		quantiles: []float64{0, .5, .9, .95, .99, .999, 1},
	},
}
