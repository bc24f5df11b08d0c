// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import "github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"

func trtllmLabels(v *view) labels { return labels{"engine_type", "trtllm", "model_name", v.Model} }

// trtllm11 is everything that this version has. Each family counts ended requests.
var trtllm11 = []row{
	{
		name: "request_success_total", typ: "counter", help: "Requests processed.",
		each: occurred(byReason("finished_reason", requests.Stop, requests.Length)),
	},
	{name: "e2e_request_latency_seconds", typ: "histogram", help: "End to end latency of requests in seconds.", figure: requests.Duration, bounds: requestV1},
	{name: "time_to_first_token_seconds", typ: "histogram", help: "Time to the first token in seconds.", figure: requests.FirstTokenOfFinished, bounds: firstTokenV1},
	{name: "time_per_output_token_seconds", typ: "histogram", help: "Time per output token in seconds.", figure: requests.PerOutputToken, bounds: perTokenV1},
	{name: "request_queue_time_seconds", typ: "histogram", help: "Time of a request in the phase WAITING.", figure: requests.QueueTime, bounds: requestV1},
}

// llamacpp has no histogram and no label.
var llamacpp = []row{
	{name: "prompt_tokens_total", typ: "counter", help: "Prompt tokens processed.", value: inputTokens},
	{name: "prompt_seconds_total", typ: "counter", help: "Time of prompts.", value: func(v *view) float64 { return v.sum(requests.PrefillTime) }},
	{name: "tokens_predicted_total", typ: "counter", help: "Tokens generated.", value: finishedOutput},
	{name: "tokens_predicted_seconds_total", typ: "counter", help: "Time of generation.", value: func(v *view) float64 { return v.sum(requests.DecodeTime) }},
	{name: "n_decode_total", typ: "counter", help: "Calls of decode.", value: steps},
	{name: "n_tokens_max", typ: "counter", help: "Most tokens that were in use at once.", value: func(v *view) float64 { return float64(v.Blocks * v.Block / 2) }},
	{name: "n_busy_slots_per_decode", typ: "counter", help: "Mean of busy slots in a call of decode.", value: func(v *view) float64 { return quotient(batches(v), steps(v)) }},
	{
		name: "prompt_tokens_seconds", typ: "gauge", help: "Mean prompt tokens in a second.",
		value: func(v *view) float64 { return quotient(finishedInput(v), v.sum(requests.PrefillTime)) },
	},
	{
		name: "predicted_tokens_seconds", typ: "gauge", help: "Mean tokens generated in a second.",
		value: func(v *view) float64 { return quotient(finishedOutput(v), v.sum(requests.DecodeTime)) },
	},
	{name: "kv_cache_usage_ratio", typ: "gauge", help: "Use of the KV cache; 1 is all of it.", value: kvUsage},
	{name: "kv_cache_tokens", typ: "gauge", help: "Tokens in the KV cache.", value: func(v *view) float64 { return float64(v.InBlocks) }},
	{name: "requests_processing", typ: "gauge", help: "Requests that are processed.", value: running},
	{name: "requests_deferred", typ: "gauge", help: "Requests that wait.", value: waiting},
	{name: "spec_decode_num_draft_tokens_total", typ: "counter", help: "Tokens proposed.", value: draftTokens, when: speculates},
	{name: "spec_decode_num_accepted_tokens_total", typ: "counter", help: "Proposed tokens that were accepted.", value: acceptedTokens, when: speculates},
}
