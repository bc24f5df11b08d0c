// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// vllmRelatives embed vLLM or have its families.
var vllmRelatives = []Engine{
	// NIM has vLLM's families without a prefix; its page has no line end at the end.
	{Name: "nim-1", Path: "/v1/metrics", Port: 8000, style: style{number: python, process: true, cut: true}, labels: modelName, rows: nim1},
	{Name: "lmdeploy", Path: "/metrics", Port: 23333, prefix: "lmdeploy:", style: pythonStyle, ranked: true, labels: modelAndEngine, rows: lmdeploy},
	// Ray's node agent reports the engines of all its workers, and each counter under
	// two names.
	{Name: "ray-vllm", Path: "/metrics", Port: 8080, prefix: "ray_vllm_", style: style{number: python}, ranked: true, labels: rayLabels, rows: rayVLLM},
}

var nim1 = []row{
	{name: "num_requests_running", typ: "gauge", help: "Requests that the GPU works on.", value: running},
	{name: "num_requests_waiting", typ: "gauge", help: "Requests that wait to be processed.", value: waiting},
	{name: "num_request_max", typ: "gauge", help: "Most requests that run at once.", value: slots},
	{name: "gpu_cache_usage_perc", typ: "gauge", help: "Use of the GPU's KV cache; 1 is all of it.", value: kvUsage},
	{name: "prompt_tokens_total", typ: "counter", help: "Prefill tokens processed.", value: inputTokens},
	{name: "generation_tokens_total", typ: "counter", help: "Generation tokens processed.", value: outputTokens},
	{name: "time_to_first_token_seconds", typ: "histogram", help: "Time to the first token in seconds.", figure: requests.FirstToken, bounds: firstTokenV0},
	{name: "time_per_output_token_seconds", typ: "histogram", help: "Time per output token in seconds.", figure: requests.InterToken, bounds: perTokenV0},
	{name: "e2e_request_latency_seconds", typ: "histogram", help: "End to end latency of requests in seconds.", figure: requests.Duration, bounds: requestV0},
	{name: "request_prompt_tokens", typ: "histogram", help: "Prefill tokens of a request.", figure: requests.PromptTokens, bounds: oneTwoFive},
	{name: "request_generation_tokens", typ: "histogram", help: "Generation tokens of a request.", figure: requests.OutputTokens, bounds: oneTwoFive},
	{
		name: "request_finish_total", typ: "counter", help: "Finished requests by reason.",
		each: occurred(byReason("finished_reason", requests.Stop, requests.Length)),
	},
	{name: "request_success_total", typ: "counter", help: "Requests that succeeded.", value: succeeded},
	{name: "request_failure_total", typ: "counter", help: "Requests that failed.", value: finished(requests.Error)},
}

var lmdeploy = []row{
	{name: "num_requests_running", typ: "gauge", help: "Requests in the batches of the model.", value: running},
	{name: "num_requests_waiting", typ: "gauge", help: "Requests that wait to be processed.", value: waiting},
	// Gauges that only rise.
	{name: "num_requests_succeeded", typ: "gauge", help: "Requests that succeeded.", value: succeeded},
	{name: "num_requests_failed", typ: "gauge", help: "Requests that failed.", value: finished(requests.Error)},
	{name: "gpu_cache_usage_perc", typ: "gauge", help: "Use of the GPU's KV cache; 1 is all of it.", value: kvUsage},
	{name: "prefix_cache_hit_rate", typ: "gauge", help: "Hit rate of the prefix cache.", value: hitRatio},
	{name: "prompt_tokens_total", typ: "counter", help: "Prefill tokens processed.", value: inputTokens},
	{name: "cached_tokens_total", typ: "counter", help: "Prompt tokens that the cache had.", value: cachedInput},
	{name: "generation_tokens_total", typ: "counter", help: "Generation tokens processed.", value: outputTokens},
	{name: "request_prompt_tokens", typ: "histogram", help: "Prefill tokens of a request.", figure: requests.PromptTokens, bounds: oneTwoFive},
	{name: "request_generation_tokens", typ: "histogram", help: "Generation tokens of a request.", figure: requests.OutputTokens, bounds: oneTwoFive},
	{name: "request_params_n", typ: "histogram", help: "The parameter n of requests.", figure: requests.Choices, bounds: choices},
	{name: "time_to_first_token_seconds", typ: "histogram", help: "Time to the first token in seconds.", figure: requests.FirstToken, bounds: firstTokenV1},
	{name: "time_per_output_token_seconds", typ: "histogram", help: "Time per output token in seconds.", figure: requests.InterToken, bounds: perTokenV1},
	{name: "e2e_request_latency_seconds", typ: "histogram", help: "End to end latency of requests in seconds.", figure: requests.Duration, bounds: requestV1},
	{name: "request_queue_time_seconds", typ: "histogram", help: "Time of a request in the phase WAITING.", figure: requests.QueueTime, bounds: requestV1},
	{name: "request_inference_time_seconds", typ: "histogram", help: "Time of a request in the phase RUNNING.", figure: requests.InferenceTime, bounds: requestV1},
	{name: "request_prefill_time_seconds", typ: "histogram", help: "Time of a request in the phase PREFILL.", figure: requests.PrefillTime, bounds: requestV1},
	{name: "request_decode_time_seconds", typ: "histogram", help: "Time of a request in the phase DECODE.", figure: requests.DecodeTime, bounds: requestV1},
}

// rayLabels: each rank is an engine in a worker of its own.
func rayLabels(v *view) labels {
	id := random.Stream(uint64(v.rank), v.in.Pod)
	return append(rayNode(v), "Component", "core_worker", "WorkerId", fmt.Sprintf("%016x%016x", random.Mix(id), random.Mix(id+1)),
		"ReplicaId", fmt.Sprintf("%08x", random.Mix(id+2)>>32), "model_name", v.Model, "engine", "0")
}

func rayNode(v *view) labels {
	return labels{"NodeAddress", "10.0.0.7", "SessionName", "session_" + v.in.Epoch.Format("2006-01-02_15-04-05") + "_000000_1", "Version", "2.49.0"}
}

var rayVLLM = slices.Concat(rayRows(vllm21), []row{
	{name: "=ray_node_mem_used", typ: "gauge", help: "Memory of the node that is in use.", merged: true, base: rayNode, value: fixed(6.1e10)},
})

// rayRows are vLLM's families as Ray has them: a counter is there from its first
// count on, with the suffix and, as a gauge, without.
func rayRows(rows []row) (out []row) {
	for _, r := range rows {
		if strings.HasPrefix(r.name, "=") || r.merged {
			continue
		}
		if r.base != nil {
			r.base = rayLabels
		}
		if r.typ != "counter" {
			out = append(out, r)
			continue
		}
		if value := r.value; value != nil {
			r.value, r.each = nil, func(v *view) []sample { return []sample{{nil, value(v)}} }
		}
		r.each = occurred(r.each)
		gauge := r
		gauge.name, gauge.typ = strings.TrimSuffix(r.name, "_total"), "gauge"
		out = append(out, gauge, r)
	}
	return out
}
