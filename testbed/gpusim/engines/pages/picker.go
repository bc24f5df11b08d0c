// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import "github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"

// The endpoint picker of llm-d and of the Gateway API reports everything under its
// present names and, on the same page, under those that it had before.
var (
	pickerSeconds = in(.005, .025, .05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600,
		900, 1200, 1800, 2700, 3600)
	pickerPerToken = in(.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10)
	pickerQueue    = in(.0001, .0005, .001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)
	pickerInput    = in(1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32778, 65536, 131072, 262144, 524288, 1048576)
	pickerOutput   = in(1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
	pickerBytes    = in(64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608)
)

const bytesPerToken = 4

func pickerModel(v *view) labels {
	return labels{"model_name", v.Model, "target_model_name", v.Model, "fairness_id", "", "priority", "0"}
}

func pickerOldModel(v *view) labels {
	return labels{"model_name", v.Model, "target_model_name", v.Model}
}
func pickerPool(*view) labels { return labels{"name", "llama-pool"} }

func pickerFlow(v *view) labels {
	return append(pickerModel(v), "outcome", "Dispatched", "inference_pool", "llama-pool")
}

func pickerErrors(v *view) []sample {
	return occurred(func(v *view) []sample {
		return []sample{
			{labels{"error_code", "ModelServerError"}, failed(v)},
			{labels{"error_code", "ResourceExhausted"}, finished(requests.Overloaded)(v)},
		}
	})(v)
}

// Means over the engines of the pool.
func pooled(of func(*view) float64) func(*view) float64 {
	return func(v *view) float64 { return quotient(of(v), float64(v.Engines)) }
}

func ready(v *view) float64 {
	n := 0.0
	for i := range v.in.States {
		n += up(&view{State: v.in.States[i]})
	}
	return n
}

var eppNew = []row{
	{name: "llm_d_epp_request_total", typ: "counter", help: "[ALPHA] Requests.", base: pickerModel, value: arrived},
	{name: "llm_d_epp_request_error_total", typ: "counter", help: "[ALPHA] Requests that failed.", base: pickerModel, each: pickerErrors},
	{name: "llm_d_epp_request_duration_seconds", typ: "histogram", help: "[ALPHA] End to end latency.", base: pickerModel, figure: requests.Duration, bounds: pickerSeconds},
	{name: "llm_d_epp_request_size_bytes", typ: "histogram", help: "[ALPHA] Size of requests.", base: pickerModel, figure: requests.PromptTokens, scale: bytesPerToken, bounds: pickerBytes},
	{name: "llm_d_epp_request_input_tokens", typ: "histogram", help: "[ALPHA] Input tokens of a request.", base: pickerModel, figure: requests.PromptTokens, bounds: pickerInput},
	{name: "llm_d_epp_request_output_tokens", typ: "histogram", help: "[ALPHA] Output tokens of a request.", base: pickerModel, figure: requests.OutputTokens, bounds: pickerOutput},
	{name: "llm_d_epp_request_cached_tokens", typ: "histogram", help: "[ALPHA] Cached tokens of a request.", base: pickerModel, figure: requests.CachedTokens, bounds: pickerInput},
	{name: "llm_d_epp_request_running", typ: "gauge", help: "[ALPHA] Requests in flight.", base: pickerModel, value: func(v *view) float64 { return running(v) + waiting(v) }},
	{
		name: "llm_d_epp_request_ntpot_seconds", typ: "histogram", help: "[ALPHA] End to end latency divided by output tokens.", base: pickerModel,
		figure: requests.DurationPerToken, bounds: pickerPerToken,
	},
	{
		name: "llm_d_epp_request_ttft_seconds", typ: "histogram", help: "[ALPHA] Time to the first token.", base: pickerModel, labels: labels{"streaming", "true"},
		figure: requests.FirstToken, bounds: pickerSeconds,
	},
	{name: "llm_d_epp_request_streaming_tpot_seconds", typ: "histogram", help: "[ALPHA] Time per output token.", base: pickerModel, figure: requests.PerOutputToken, bounds: pickerPerToken},
	{name: "llm_d_epp_request_streaming_itl_seconds", typ: "histogram", help: "[ALPHA] Time between two tokens.", base: pickerModel, figure: requests.InterToken, bounds: pickerPerToken},
	{
		name: "llm_d_epp_flow_control_request_queue_duration_seconds", typ: "histogram", help: "[ALPHA] Time in the queue.", base: pickerFlow,
		figure: requests.QueueTimeAtStart, bounds: pickerQueue,
	},
	{
		name: "llm_d_epp_flow_control_queue_size", typ: "gauge", help: "[ALPHA] Requests in the queue.", base: pickerModel,
		labels: labels{"inference_pool", "llama-pool"}, value: waiting,
	},
	{name: "llm_d_epp_average_kv_cache_utilization", typ: "gauge", help: "[ALPHA] Mean use of the KV cache.", merged: true, base: pickerPool, value: kvUsage},
	{name: "llm_d_epp_average_queue_size", typ: "gauge", help: "[ALPHA] Mean of waiting requests.", merged: true, base: pickerPool, value: pooled(waiting)},
	{name: "llm_d_epp_average_running_requests", typ: "gauge", help: "[ALPHA] Mean of running requests.", merged: true, base: pickerPool, value: pooled(running)},
	{name: "llm_d_epp_ready_endpoints", typ: "gauge", help: "[ALPHA] Ready endpoints.", merged: true, base: pickerPool, value: ready},
	{
		name: "llm_d_epp_info", typ: "gauge", help: "[ALPHA] The build.", free: true, labels: labels{"commit", "0000000000000000000000000000000000000000", "build_ref", "v0.8.0"},
		value: one,
	},
}

var eppOld = []row{
	{name: "inference_objective_request_total", typ: "counter", help: "[ALPHA] [Deprecated] Requests.", base: pickerOldModel, labels: labels{"priority", "0"}, value: arrived},
	{name: "inference_objective_request_error_total", typ: "counter", help: "[ALPHA] [Deprecated] Requests that failed.", base: pickerOldModel, each: pickerErrors},
	{
		name: "inference_objective_request_duration_seconds", typ: "histogram", help: "[ALPHA] [Deprecated] End to end latency.", base: pickerOldModel,
		figure: requests.Duration, bounds: pickerSeconds,
	},
	{
		name: "inference_objective_request_sizes", typ: "histogram", help: "[ALPHA] [Deprecated] Size of requests in bytes.", base: pickerOldModel,
		figure: requests.PromptTokens, scale: bytesPerToken, bounds: pickerBytes,
	},
	{name: "inference_objective_input_tokens", typ: "histogram", help: "[ALPHA] [Deprecated] Input tokens of a request.", base: pickerOldModel, figure: requests.PromptTokens, bounds: pickerInput},
	{name: "inference_objective_output_tokens", typ: "histogram", help: "[ALPHA] [Deprecated] Output tokens of a request.", base: pickerOldModel, figure: requests.OutputTokens, bounds: pickerOutput},
	{name: "inference_objective_prompt_cached_tokens", typ: "histogram", help: "[ALPHA] [Deprecated] Cached tokens of a request.", base: pickerOldModel, figure: requests.CachedTokens, bounds: pickerInput},
	{
		name: "inference_objective_running_requests", typ: "gauge", help: "[ALPHA] [Deprecated] Requests in flight.", base: modelName,
		value: func(v *view) float64 { return running(v) + waiting(v) },
	},
	{
		name: "inference_objective_normalized_time_per_output_token_seconds", typ: "histogram", help: "[ALPHA] [Deprecated] Latency divided by output tokens.",
		base: pickerOldModel, figure: requests.DurationPerToken, bounds: pickerPerToken,
	},
	{
		name: "inference_model_request_ttft_seconds", typ: "histogram", help: "[ALPHA] [Deprecated] Time to the first token.", base: pickerOldModel,
		figure: requests.FirstToken, bounds: pickerSeconds,
	},
	{name: "inference_pool_average_kv_cache_utilization", typ: "gauge", help: "[ALPHA] [Deprecated] Mean use of the KV cache.", merged: true, base: pickerPool, value: kvUsage},
	{name: "inference_pool_average_queue_size", typ: "gauge", help: "[ALPHA] [Deprecated] Mean of waiting requests.", merged: true, base: pickerPool, value: pooled(waiting)},
	{name: "inference_pool_average_running_requests", typ: "gauge", help: "[ALPHA] [Deprecated] Mean of running requests.", merged: true, base: pickerPool, value: pooled(running)},
	{name: "inference_pool_ready_pods", typ: "gauge", help: "[ALPHA] [Deprecated] Ready pods.", merged: true, base: pickerPool, value: ready},
	{
		name: "inference_extension_flow_control_request_queue_duration_seconds", typ: "histogram", help: "[ALPHA] [Deprecated] Time in the queue.",
		base: pickerFlow, figure: requests.QueueTimeAtStart, bounds: pickerQueue,
	},
}
