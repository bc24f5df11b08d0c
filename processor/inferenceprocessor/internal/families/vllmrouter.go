// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// vllmRouter is the router of vLLM's production stack. It prints names of vLLM's
// families with its own view of the engines.
var vllmRouter = &Engine{
	Name:     "vllm_router",
	Title:    "vLLM production stack router",
	Gateway:  true,
	Prefixes: []string{"vllm:"},
	Marks:    []string{"vllm:healthy_pods_total", "vllm:num_incoming_requests_total", "vllm:num_incoming_requests"},
	Hides:    "vllm",
	Named:    "router",
	Model:    []string{"model"},
	Rows: []Row{
		{Metric: &names.InferenceGatewayRequestDuration, From: []string{"request_latency_seconds"}},
		{Metric: &names.InferenceGatewayRequests, Attributes: running, From: []string{"num_requests_running"}},
		{Metric: &names.InferenceGatewayRequests, Attributes: waiting, From: []string{"num_requests_waiting"}},
		{
			Metric: &names.InferenceGatewayRequestsFinished, Attributes: succeeded, From: []string{"request_latency_seconds"},
			Where: Selector{"status", "success"}, Rule: CountOf,
		},
		{
			Metric: &names.InferenceGatewayRequestsFinished, From: []string{"request_errors"}, Beside: "request_latency_seconds",
			Dimensions: reasons("error_type", names.OutcomeError), Note: "releases without the histogram count errors alone",
		},
		{Metric: &names.InferenceGatewayTokens, Attributes: input, From: []string{"input_tokens"}, Note: "of requests that do not stream"},
		{Metric: &names.InferenceGatewayTokens, Attributes: output, From: []string{"output_tokens"}, Note: "of requests that do not stream"},
		{Metric: &names.InferenceGatewayEndpointsReady, From: []string{"healthy_pods_total"}},
	},
	Passed: []string{
		// Means of an unknown window.
		"current_qps", "avg_*",
		// The engines' own figures, repeated.
		"num_requests_swapped", "gpu_prefix_cache_hit_rate", "gpu_prefix_cache_hits", "gpu_prefix_cache_queries",
		// Parts of the requests, and requests that have not ended.
		"num_prefill_requests", "num_decoding_requests", "num_incoming_requests", "routing_decisions",
	},
	Cannot: map[*names.Metric]string{
		&names.InferenceGatewayTimeToFirstToken:       "the router has no family of it",
		&names.InferenceGatewayInterTokenLatency:      "only a mean of an unknown window is on the page",
		&names.InferenceGatewayTimePerOutputToken:     "the router has no family of it",
		&names.InferenceGatewayQueueTime:              "the router keeps no queue",
		&names.InferenceGatewayTimePerToken:           "the router has no family of it",
		&names.InferenceGatewayRequestTokens:          "tokens are counted by engine, not by request",
		&names.InferenceGatewayPoolKVCacheUtilization: "the router has no family of it",
		&names.InferenceGatewayPoolRequestsMean:       "requests are reported for each engine, not as a mean",
	},
}
