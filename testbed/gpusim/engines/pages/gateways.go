// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// gateways have series for each model that the engines behind them serve.
var gateways = []Engine{
	{
		Name: "dynamo", Gateway: true, Path: "/metrics", Port: 8000, prefix: "dynamo_frontend_", style: style{number: plain, order: "bsc", leLast: true},
		labels: lowerModel, rows: dynamo,
	},
	{Name: "epp", Gateway: true, Path: "/metrics", Port: 9090, style: style{number: golang, order: "bsc"}, labels: noLabels, rows: slices.Concat(eppNew, eppOld)},
	{
		Name: "vllm-router", Gateway: true, Path: "/metrics", Port: 8001, prefix: "vllm:", style: style{number: python, process: true, created: true},
		labels: noLabels, rows: vllmRouter,
	},
}

// Models in requests are in lower case, in what workers announce as they are.
func lowerModel(v *view) labels { return labels{"model", strings.ToLower(v.Model)} }
func realModel(v *view) labels  { return labels{"model", v.Model} }

var dynamo = []row{
	{name: "disconnected_clients", typ: "gauge", help: "Clients that have gone.", free: true, value: finished(requests.Abort)},
	// Those that have no token yet are queued, and in flight as well.
	{name: "inflight_requests", typ: "gauge", help: "Requests in flight.", value: func(v *view) float64 { return running(v) + waiting(v) }},
	{
		name: "input_sequence_tokens", typ: "histogram", help: "Input tokens of a request.", figure: requests.PromptTokens,
		bounds: in(0, 100, 210, 430, 870, 1800, 3600, 7400, 15000, 31000, 63000, 130000),
	},
	{
		name: "inter_token_latency_seconds", typ: "histogram", help: "Time between two tokens in seconds.", figure: requests.InterToken,
		bounds: in(0, .0019, .0035, .0067, .013, .024, .045, .084, .16, .3, .56, 1.1, 2),
	},
	{name: "model_context_length", typ: "gauge", help: "Most tokens of a request.", base: realModel, value: func(v *view) float64 { return float64(v.Context) }},
	{name: "model_kv_cache_block_size", typ: "gauge", help: "Tokens of a block.", base: realModel, value: func(v *view) float64 { return float64(v.Block) }},
	{name: "model_max_num_batched_tokens", typ: "gauge", help: "Most tokens of a batch.", base: realModel, value: fixed(4096)},
	{name: "model_max_num_seqs", typ: "gauge", help: "Most requests of a worker.", base: realModel, value: func(v *view) float64 { return slots(v) / float64(max(v.Engines, 1)) }},
	{name: "model_migration_limit", typ: "gauge", help: "Most migrations of a request.", base: realModel, value: fixed(0)},
	{name: "model_total_kv_blocks", typ: "gauge", help: "Blocks of a worker.", base: realModel, value: func(v *view) float64 { return float64(v.Blocks) / float64(max(v.Engines, 1)) }},
	{
		name: "output_sequence_tokens", typ: "histogram", help: "Output tokens of a request.", figure: requests.OutputTokens,
		bounds: in(0, 100, 210, 430, 880, 1800, 3700, 7600, 16000, 32000),
	},
	{name: "output_tokens_total", typ: "counter", help: "Output tokens, when they are made.", value: outputTokens},
	{name: "queued_requests", typ: "gauge", help: "Requests without a token yet.", value: func(v *view) float64 { return float64(v.NoToken) }},
	{
		name: "request_duration_seconds", typ: "histogram", help: "Duration of requests in seconds.", figure: requests.Duration,
		bounds: in(0, 1.9, 3.4, 6.3, 12, 22, 40, 75, 140, 260),
	},
	{
		name: "requests_total", typ: "counter", help: "Requests processed.", labels: labels{"endpoint", "chat_completions", "request_type", "stream"},
		each: occurred(func(v *view) []sample {
			return []sample{
				{labels{"status", "success", "error_type", ""}, succeeded(v)},
				{labels{"status", "error", "error_type", "internal"}, failed(v)},
				{labels{"status", "error", "error_type", "cancelled"}, finished(requests.Abort)(v)},
				{labels{"status", "error", "error_type", "overload"}, finished(requests.Overloaded)(v)},
			}
		}),
	},
	{
		name: "time_to_first_token_seconds", typ: "histogram", help: "Time to the first token in seconds.", figure: requests.FirstToken,
		bounds: in(0, .0022, .0047, .01, .022, .047, .1, .22, .47, 1, 2.2, 4.7, 10, 22, 48, 100, 220, 480),
	},
}

// servers are the engines behind a gateway, all models of each together.
func servers(in *Input) (out []series) {
	for i := 0; i < len(in.States); {
		n := 1
		for i+n < len(in.States) && in.States[i+n].Name == in.States[i].Name {
			n++
		}
		v := &view{requests.Merge(in.States[i : i+n]), i, in}
		out = append(out, series{v, labels{"server", "http://" + v.Name + ":8000"}})
		i += n
	}
	return out
}

// serverModels are the same, model by model.
func serverModels(in *Input) (out []series) {
	for i, s := range in.States {
		out = append(out, series{&view{s, i, in}, labels{"server", "http://" + s.Name + ":8000", "model", s.Model}})
	}
	return out
}

// failed are requests that ended with an error for the client: those that an engine
// took with it when it stopped are among them.
func failed(v *view) float64 { return finished(requests.Error)(v) + finished(requests.Stopped)(v) }

// vllmRouter is production-stack's: it repeats names of vLLM from its own view.
var vllmRouter = []row{
	{name: "num_requests_running", typ: "gauge", help: "Requests that run.", of: servers, value: running},
	{name: "num_requests_waiting", typ: "gauge", help: "Requests that wait.", of: servers, value: waiting},
	{name: "num_requests_swapped", typ: "gauge", help: "Requests that are swapped.", of: servers, value: fixed(0)},
	{name: "gpu_prefix_cache_hit_rate", typ: "gauge", help: "Hit rate of the prefix cache.", of: servers, value: hitRatio},
	{name: "gpu_prefix_cache_hits_total", typ: "gauge", help: "Hits of the prefix cache.", of: servers, value: hits},
	{name: "gpu_prefix_cache_queries_total", typ: "gauge", help: "Queries of the prefix cache.", of: servers, value: queried},
	{name: "current_qps", typ: "gauge", help: "Requests in a second.", of: servers, value: rate(arrived)},
	{
		name: "avg_decoding_length", typ: "gauge", help: "Mean tokens of a request.", of: servers,
		value: func(v *view) float64 { return quotient(finishedOutput(v), succeeded(v)) },
	},
	{name: "num_prefill_requests", typ: "gauge", help: "Requests in prefill.", of: servers, value: func(v *view) float64 { return float64(v.NoToken) }},
	{
		name: "num_decoding_requests", typ: "gauge", help: "Requests in decode.", of: servers,
		value: func(v *view) float64 { return max(running(v)+waiting(v)-float64(v.NoToken), 0) },
	},
	{name: "num_incoming_requests_total", typ: "counter", help: "Requests to the router.", base: realModel, value: arrived},
	{
		name: "routing_decisions_total", typ: "counter", help: "Selections of the router.", free: true, value: arrived,
		labels: labels{"algorithm", "roundrobin", "decision", "selected", "reason", "policy"},
	},
	{name: "healthy_pods_total", typ: "gauge", help: "Healthy pods.", of: servers, value: up},
	{name: "avg_latency", typ: "gauge", help: "Mean latency of a request.", of: servers, value: mean(requests.Duration)},
	{name: "avg_itl", typ: "gauge", help: "Mean time between two tokens.", of: servers, value: mean(requests.InterToken)},
	{name: "input_tokens_total", typ: "counter", help: "Input tokens processed.", of: serverModels, value: inputTokens},
	{name: "output_tokens_total", typ: "counter", help: "Output tokens generated.", of: serverModels, value: outputTokens},
	{
		name: "request_errors_total", typ: "counter", help: "Requests that failed.", of: serverModels,
		each: occurred(func(v *view) []sample { return []sample{{labels{"error_type", "backend_error"}, failed(v)}} }),
	},
	{
		name: "request_latency_seconds", typ: "histogram", help: "Latency of requests at the router.", of: serverModels,
		labels: labels{"status", "success"}, figure: requests.Duration, bounds: in(.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120),
	},
}

func up(v *view) float64 {
	if v.Up {
		return 1
	}
	return 0
}

func mean(f requests.Figure) func(*view) float64 {
	return func(v *view) float64 { return quotient(v.sum(f), float64(v.Histogram(f).Count)) }
}
