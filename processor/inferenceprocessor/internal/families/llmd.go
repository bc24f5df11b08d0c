// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// llmd is the endpoint picker of llm-d and of the Gateway API inference extension. Old
// and new names of a family are on the page together.
var llmd = &Engine{
	Name:    "llm_d",
	Title:   "llm-d endpoint picker",
	Gateway: true,
	Prefixes: []string{
		"llm_d_epp_", "llm_d_router_epp_", "llm_d_inference_scheduler_", "inference_objective_", "inference_model_", "inference_pool_", "inference_extension_",
	},
	NamedBy:    []string{"ready_endpoints", "ready_pods", "average_kv_cache_utilization", "average_queue_size"},
	NamedLabel: "name",
	Model:      []string{"model_name"},
	Rows: []Row{
		{Metric: &names.InferenceGatewayRequestDuration, From: []string{"request_duration_seconds"}},
		{Metric: &names.InferenceGatewayTimeToFirstToken, From: []string{"request_ttft_seconds"}},
		{Metric: &names.InferenceGatewayInterTokenLatency, From: []string{"request_streaming_itl_seconds"}, Note: "of streamed responses"},
		{Metric: &names.InferenceGatewayTimePerOutputToken, From: []string{"request_streaming_tpot_seconds"}, Note: "of streamed responses"},
		{
			Metric: &names.InferenceGatewayQueueTime, From: []string{"flow_control_request_queue_duration_seconds"},
			Dimensions: []Dimension{{Label: "inference_pool", Attribute: names.InferenceGateway}},
			Note:       "with flow control; however the wait ended",
		},
		{
			Metric: &names.InferenceGatewayTimePerToken, Attributes: []Attribute{{names.InferenceIncludes, "prefill,queue"}},
			From: []string{"request_ntpot_seconds", "normalized_time_per_output_token_seconds"},
		},

		{Metric: &names.InferenceGatewayRequests, Attributes: running, From: []string{"request_running", "running_requests"}},
		{
			Metric: &names.InferenceGatewayRequests, Attributes: waiting, From: []string{"flow_control_queue_size"},
			Dimensions: []Dimension{{Label: "inference_pool", Attribute: names.InferenceGateway}}, Note: "with flow control",
		},
		{
			Metric: &names.InferenceGatewayRequestsFinished, Attributes: succeeded, From: []string{"request_duration_seconds"}, Rule: CountOf,
			Note: "responses that ended; one with an error status of the server is in its outcome too",
		},
		{
			Metric: &names.InferenceGatewayRequestsFinished, From: []string{"request_error"},
			Dimensions: []Dimension{{Label: "error_code", Attribute: names.InferenceFinish, Outcome: names.OutcomeError}},
		},
		{Metric: &names.InferenceGatewayRequestTokens, Attributes: input, From: []string{"request_input_tokens", "input_tokens"}},
		{Metric: &names.InferenceGatewayRequestTokens, Attributes: output, From: []string{"request_output_tokens", "output_tokens"}},
		{Metric: &names.InferenceGatewayRequestTokens, Attributes: cached, From: []string{"request_cached_tokens", "prompt_cached_tokens"}},
		{
			Metric: &names.InferenceGatewayEndpointsReady, From: []string{"ready_endpoints", "ready_pods"},
			Dimensions: []Dimension{{Label: "name", Attribute: names.InferenceGateway}},
		},

		{Metric: &names.InferenceGatewayPoolKVCacheUtilization, From: []string{"average_kv_cache_utilization"}, Dimensions: []Dimension{pool}, Fold: Highest},
		{Metric: &names.InferenceGatewayPoolRequestsMean, Attributes: running, From: []string{"average_running_requests"}, Dimensions: []Dimension{pool}, Fold: Highest},
		{Metric: &names.InferenceGatewayPoolRequestsMean, Attributes: waiting, From: []string{"average_queue_size"}, Dimensions: []Dimension{pool}, Fold: Highest},
	},
	Passed: []string{
		"request", // counted when it was sent to a server, however it ended
		"request_size*", "response_size*", "request_processing_*", "response_processing_*", "request_predicted_*", "request_ttft_prediction_*",
		"request_tpot_prediction_*", "request_slo_*", "request_tpot_*", "request_predict_*",
		"std_dev_*", "per_endpoint_*", "per_pod_*", "inflight_*", "inference_request_metric",
		"flow_control_*", "scheduler_*", "plugin_*", "prefix_*", "encoder_cache_*", "program_aware_*", "disagg*", "pd_decision",
		"datalayer_*", "model_rewrite_*", "extproc_*", "kv_cache_*", "info", "config_*",
	},
	Cannot: map[*names.Metric]string{
		&names.InferenceGatewayTokens: "only responses that report their usage are known",
	},
}

var pool = Dimension{Label: "name", Attribute: names.InferencePool}
