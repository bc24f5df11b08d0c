// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// dynamo is the frontend of NVIDIA Dynamo. Its workers have the families of their
// engine on the page, which count, and dynamo_component_, which repeat them.
var dynamo = &Engine{
	Name:     "dynamo",
	Title:    "Dynamo frontend",
	Gateway:  true,
	Prefixes: []string{"dynamo_frontend_", "dynamo_"},
	Named:    "frontend",
	Model:    []string{"model"},
	Rows: []Row{
		{Metric: &names.InferenceGatewayRequestDuration, From: []string{"request_duration_seconds"}},
		{Metric: &names.InferenceGatewayTimeToFirstToken, From: []string{"time_to_first_token_seconds"}},
		{Metric: &names.InferenceGatewayInterTokenLatency, From: []string{"inter_token_latency_seconds"}, Note: "one observation a token"},
		{Metric: &names.InferenceGatewayRequestTokens, Attributes: input, From: []string{"input_sequence_tokens"}},
		{Metric: &names.InferenceGatewayRequestTokens, Attributes: output, From: []string{"output_sequence_tokens"}},
		{Metric: &names.InferenceGatewayRequestTokens, Attributes: cached, From: []string{"cached_tokens"}},

		{
			Metric: &names.InferenceGatewayRequests, Attributes: running, From: []string{"inflight_requests"},
			With: "queued_requests", Rule: Difference, Note: "a queued request is in flight too",
		},
		{
			Metric: &names.InferenceGatewayRequests, Attributes: waiting, From: []string{"queued_requests"},
			Note: "until the first token, prefill included",
		},
		{
			Metric: &names.InferenceGatewayRequestsFinished, Attributes: succeeded, From: []string{"requests"},
			Where: Selector{"status", "success"}, Dimensions: []Dimension{endpoint},
		},
		{
			Metric: &names.InferenceGatewayRequestsFinished, From: []string{"requests"}, Where: Selector{"status", "error"},
			Dimensions: []Dimension{{Label: "error_type", Attribute: names.InferenceFinish, Outcome: names.OutcomeError}, endpoint},
		},
		{Metric: &names.InferenceGatewayTokens, Attributes: output, From: []string{"output_tokens"}, Note: "moves while tokens are made"},
	},
	Passed: []string{
		// Limits of workers, with the model's name in another spelling, and their last figures.
		"model_*", "worker_*",
		"disconnected_clients", "kv_hit_rate", "tokenizer_latency_ms", "router_*", "event_loop_*", "stage_*",
		// Of workers, which their engine's families count, and of the parts of the frontend.
		"component_*", "preprocessor_*", "request_plane_*", "transport_*", "tokio_*", "kvindexer_*", "work_handler_*", "operator_*",
	},
	Cannot: map[*names.Metric]string{
		&names.InferenceGatewayTimePerOutputToken:     "each token is observed, not each request",
		&names.InferenceGatewayQueueTime:              "only the number of queued requests is on the page",
		&names.InferenceGatewayTimePerToken:           "each token is observed, not each request",
		&names.InferenceGatewayEndpointsReady:         "workers are not counted on the page of every version, and not as ready",
		&names.InferenceGatewayPoolKVCacheUtilization: "not on the page",
		&names.InferenceGatewayPoolRequestsMean:       "not on the page",
	},
}

// endpoint is the operation by the path that was called.
var endpoint = Dimension{
	Label: "endpoint", Attribute: names.GenAIOperationName,
	Words: map[string]string{
		"chat_completions": "chat", "responses": "chat", "anthropic_messages": "chat", "completions": "text_completion",
	},
}
