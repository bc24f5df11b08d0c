// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"math"
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

var tritonStyle = style{number: plain, order: "csb", leLast: true}

// tritonEngines: with TensorRT-LLM a request goes through an ensemble of models, each
// of which counts it.
var tritonEngines = []Engine{
	{
		Name: "triton", Path: "/metrics", Port: 8002, prefix: "nv_", style: tritonStyle,
		labels: func(v *view) labels { return tritonModel(v.Model) }, rows: slices.Concat(tritonRows, tritonLatencies, tritonGPU),
	},
	{
		Name: "triton-trtllm", Path: "/metrics", Port: 8002, prefix: "nv_", style: tritonStyle,
		labels:   func(*view) labels { return tritonModel("tensorrt_llm") },
		repeated: ensemble, rows: slices.Concat(tritonRows, trtllmBackend, tritonGPU),
	},
}

func tritonModel(name string) labels { return labels{"model", name, "version", "1"} }

func ensemble(*view) (out []labels) {
	for _, name := range []string{"ensemble", "preprocessing", "tensorrt_llm", "postprocessing"} {
		out = append(out, tritonModel(name))
	}
	return out
}

// micros is a sum of seconds in whole microseconds.
func micros(f requests.Figure) func(*view) float64 {
	return func(v *view) float64 { return math.Round(v.sum(f) * 1e6) }
}

var tritonRows = []row{
	{name: "inference_request_success", typ: "counter", help: "Requests that succeeded, of all batch sizes.", value: succeeded},
	{
		name: "inference_request_failure", typ: "counter", help: "Requests that failed, of all batch sizes.",
		each: func(v *view) []sample {
			return []sample{
				{labels{"reason", "BACKEND"}, finished(requests.Error)(v)}, {labels{"reason", "CANCELED"}, finished(requests.Abort)(v)},
				{labels{"reason", "REJECTED"}, finished(requests.Overloaded)(v)}, {labels{"reason", "OTHER"}, 0},
			}
		},
	},
	{name: "inference_count", typ: "counter", help: "Inferences, without cached requests.", value: batches},
	{name: "inference_exec_count", typ: "counter", help: "Executions of the model, without cached requests.", value: steps},
	{name: "inference_request_duration_us", typ: "counter", help: "Time of requests in microseconds.", value: micros(requests.Duration)},
	{name: "inference_queue_duration_us", typ: "counter", help: "Time of requests in the queue in microseconds.", value: micros(requests.QueueTime)},
	{name: "inference_compute_input_duration_us", typ: "counter", help: "Time for inputs in microseconds.", value: fixed(0)},
	{name: "inference_compute_infer_duration_us", typ: "counter", help: "Time for inference in microseconds.", value: micros(requests.InferenceTime)},
	{name: "inference_compute_output_duration_us", typ: "counter", help: "Time for outputs in microseconds.", value: fixed(0)},
	{name: "inference_pending_request_count", typ: "gauge", help: "Requests that await execution.", value: waiting},
}

var tritonLatencies = []row{
	{
		name: "inference_first_response_histogram_ms", typ: "histogram", help: "Time to the first response in milliseconds.",
		figure: requests.FirstToken, scale: 1000, bounds: in(100, 500, 2000, 5000),
	},
	{
		name: "inference_request_summary_us", typ: "summary", help: "Time of requests in microseconds.", figure: requests.Duration, scale: 1e6,
		quantiles: []float64{.5, .9, .95, .99, .999},
	},
	{name: "model_load_duration_secs", typ: "gauge", help: "Time to load the model in seconds.", value: fixed(21.4)},
}

// kinds are series of one family that stand for different things.
func kinds(key string, of func(v *view) []sample) func(*view) []sample {
	return func(v *view) (out []sample) {
		for _, s := range of(v) {
			out = append(out, sample{append(labels{key}, s.labels...), s.value})
		}
		return out
	}
}

// trtllmBackend is what the model tensorrt_llm alone reports.
var trtllmBackend = []row{
	{
		name: "trt_llm_request_metrics", typ: "gauge", help: "Requests of TensorRT-LLM.", merged: true,
		each: kinds("request_type", func(v *view) []sample {
			return []sample{
				{labels{"waiting"}, waiting(v)}, {labels{"context"}, 0}, {labels{"scheduled"}, running(v)}, {labels{"max"}, slots(v)},
				{labels{"active"}, running(v) + waiting(v)},
			}
		}),
	},
	{
		name: "trt_llm_runtime_memory_metrics", typ: "gauge", help: "Memory of TensorRT-LLM.", merged: true,
		each: kinds("memory_type", func(*view) []sample {
			return []sample{{labels{"pinned"}, 0}, {labels{"gpu"}, 1610236}, {labels{"cpu"}, 0}}
		}),
	},
	{
		name: "trt_llm_kv_cache_block_metrics", typ: "gauge", help: "Blocks of the KV cache of TensorRT-LLM.", merged: true,
		each: kinds("kv_cache_block_type", func(v *view) []sample {
			return []sample{
				{labels{"fraction"}, kvUsage(v)}, {labels{"tokens_per"}, float64(v.Block)}, {labels{"used"}, float64(v.Used)},
				{labels{"free"}, float64(v.Blocks - v.Used)}, {labels{"max"}, float64(v.Blocks)},
			}
		}),
	},
	{
		name: "trt_llm_inflight_batcher_metrics", typ: "gauge", help: "In-flight batching of TensorRT-LLM.", merged: true,
		each: kinds("inflight_batcher_specific_metric", func(v *view) []sample {
			return []sample{{labels{"micro_batch_id"}, 0}, {labels{"generation_requests"}, running(v)}, {labels{"total_context_tokens"}, 0}}
		}),
	},
	{
		name: "trt_llm_general_metrics", typ: "gauge", help: "TensorRT-LLM in general.", merged: true,
		each: kinds("general_type", func(v *view) []sample {
			return []sample{{labels{"iteration_counter"}, steps(v)}, {labels{"timestamp"}, math.Floor(v.unix(v.Now))}}
		}),
	},
	{
		name: "trt_llm_disaggregated_serving_metrics", typ: "counter", help: "Disaggregated serving of TensorRT-LLM.", merged: true,
		each: kinds("disaggregated_serving_type", func(*view) []sample {
			return []sample{{labels{"kv_cache_transfer_ms"}, 0}, {labels{"request_count"}, 0}}
		}),
	},
}

func gpuUUID(v *view) labels {
	return labels{"gpu_uuid", "GPU-" + random.UUID(random.Stream(0, v.in.Pod))}
}

// tritonGPU is about the board: figures that have nothing to do with the requests.
var tritonGPU = []row{
	{name: "gpu_utilization", typ: "gauge", help: "Utilization of the GPU, 0 to 1.", base: gpuUUID, value: fixed(.5)},
	{name: "gpu_memory_total_bytes", typ: "gauge", help: "Memory of the GPU in bytes.", base: gpuUUID, value: fixed(85520809984)},
	{name: "gpu_memory_used_bytes", typ: "gauge", help: "Used memory of the GPU in bytes.", base: gpuUUID, value: fixed(77309411328)},
	{name: "gpu_power_usage", typ: "gauge", help: "Power of the GPU in watts.", base: gpuUUID, value: fixed(320.5)},
	{name: "gpu_power_limit", typ: "gauge", help: "Power limit of the GPU in watts.", base: gpuUUID, value: fixed(700)},
	{name: "energy_consumption", typ: "counter", help: "Energy of the GPU in joules since the start.", base: gpuUUID, value: func(v *view) float64 { return 320.5 * v.uptime() }},
	{name: "cpu_utilization", typ: "gauge", help: "Utilization of the CPU, 0 to 1.", free: true, value: fixed(.1)},
	{name: "cache_util", typ: "gauge", help: "Utilization of the response cache, 0 to 1.", free: true, value: fixed(0)},
}
