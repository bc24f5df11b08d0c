// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// engineChosen is what the engine variable of the board chooses.
var engineChosen = chosen(queries.Engine, "engine")

// ofEngine are the figures of the services and engines chosen, as a chart reads them.
var ofEngine = queries.Whole{Where: aService, Engines: engineChosen, Over: queries.ForChart}

// without appends to a description which engines cannot give a figure, and why.
func without(description, figure string) string {
	var engines []string
	for _, e := range queries.InferenceEnginesWithout(figure) {
		engines = append(engines, e+" ("+queries.InferenceCannot(e, figure)+")")
	}
	if len(engines) == 0 {
		return description
	}
	return description + " Not from " + strings.Join(engines, "; ") + "."
}

func inferenceBoard() board {
	return board{
		uid: "otelcol-gpu-inference", title: "GPU inference",
		description: "Requests beside the GPUs that serve them: is it the load, the model, or the hardware. " +
			"A figure of a service is absent where a part of the service is not known: pods are missing, a quarter of the engines' pages cannot be read, or one of its engines does not have it.",
		variables: append(serviceBoard().variables, variable{"engine", "Engine", "What serves the models.",
			queries.Of(queries.InferenceUp, aService) + ", " + queries.Engine}),
		rows: []row{
			{"Requests, a line a service", inferenceRequests()},
			{"Engines, a line a service", inferenceEngines()},
			{"Pods", inferencePods()},
			{"Gateways: the same requests, before the engines", inferenceGateways()},
			{"GPUs beside them", inferenceDevices()},
		},
	}
}

func inferenceRequests() []panel {
	quantiles := func(title, description, figure, histogram string) panel {
		var of []query
		for _, q := range []struct {
			legend string
			value  float64
		}{{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}} {
			of = append(of, query{expr: ofEngine.Quantile(q.value, histogram), legend: ofService + " " + q.legend})
		}
		return lines(title, without(description, figure), units.Seconds, of...)
	}
	one := func(expr, legend string) query { return query{expr: expr, legend: ofService + legend} }
	whole := quantiles("Whole request", "From request to last token, and the mean, which every engine with a time of requests has.", "request_duration", queries.RequestDuration)
	whole.queries = append(whole.queries, one(ofEngine.Mean(queries.RequestDuration), " mean"))
	return []panel{
		quantiles("Time to first token", "What a user waits for the first word. An upper bound where histograms have different bounds; beyond the last bound, that bound.", "time_to_first_token", queries.TimeToFirstToken),
		whole,
		quantiles("Time per output token", "Of a request: its time after the first token, divided by the tokens after the first.", "time_per_output_token", queries.TimePerToken),
		quantiles("Between tokens", "From one token to the next: a value for each token, and so another one than the time per output token.", "inter_token_latency", queries.InterTokenLatency),
		quantiles("Queue", "How long finished requests had waited. Empty for engines that do not report it.", "", queries.InferenceQueueTime),
		lines("Requests waiting and running", without("Waiting ones have no place in a batch yet.", "running"), units.Short,
			one(ofEngine.RequestsIn("waiting"), " waiting"), one(ofEngine.RequestsIn("running"), " running")),
		lines("Finished", "Requests a second by outcome and the engine's own reason. Cancelled ones were given up by the client.", units.CountsPerSecond,
			query{
				expr:   queries.FinishedBy(queries.And(engineChosen, aService), queries.OfServices, queries.ForChart, queries.Outcome, queries.FinishReason),
				legend: ofService + " {{" + queries.Outcome + "}} {{" + queries.FinishReason + "}}",
			}),
		withMax(lines("Failed", without("Share of requests that failed or were rejected; cancelled ones do not count.", "error_ratio"), units.PercentUnit, one(ofEngine.ErrorRatio(), ""))),
	}
}

func inferenceEngines() []panel {
	one := func(expr, legend string) query { return query{expr: expr, legend: ofService + legend} }
	return []panel{
		lines("Tokens", without("Tokens a second: generated, and of prompts.", "output_tokens"), units.CountsPerSecond,
			one(ofEngine.OutputTokens(), " output"), one(ofEngine.InputTokens(), " input")),
		withMax(lines("KV cache", without("Share in use, of the fullest engine and the mean.", "kv_cache"), units.PercentUnit,
			one(ofEngine.KVCache("max"), " fullest"), one(ofEngine.KVCache("avg"), " mean"))),
		withMax(lines("Saturation", "The highest of KV cache, running requests among those that may run, and waiting ones among all: the feed of autoscalers.", units.PercentUnit,
			one(ofEngine.Saturation(), ""))),
		withMax(lines("Prefix cache and speculation", "Share of prompt tokens found in the prefix cache, and of drafted tokens accepted. Empty where the engine has neither or counts neither.", units.PercentUnit,
			one(ofEngine.PrefixHits(), " prefix cache"), one(ofEngine.Accepted(), " accepted"))),
		lines("Batch", "Mean number of requests in an execution. Only of engines that count executions: Triton, TGI.", units.Short, one(ofEngine.Batch(), "")),
		lines("Pages", "Engines with a page that was read, and all.", units.Short,
			one(sum(last(queries.Of(queries.InferenceUp, engineChosen, aService)), service...), " read"),
			one(count(last(queries.Of(queries.InferenceUp, engineChosen, aService)), service...), " all")),
	}
}

func inferencePods() []panel {
	s := queries.And(engineChosen, aService)
	of := func(expr, legend string) query { return query{expr: expr, legend: name(queries.Pod) + legend} }
	return []panel{
		lines("Time to first token, p95", "Of each pod: one slow pod makes the p95 of a service.", units.Seconds,
			of(queries.InferenceQuantile(0.95, queries.TimeToFirstToken, s, queries.OfPods, queries.ForChart), "")),
		lines("Requests", "Waiting and running at each pod: an uneven share is the balancer's.", units.Short,
			of(queries.RequestsIn("waiting", s, queries.OfPods, queries.ForChart), " waiting"), of(queries.RequestsIn("running", s, queries.OfPods, queries.ForChart), " running")),
		withMax(lines("KV cache of pods", "Share in use, of the pod's fullest engine.", units.PercentUnit,
			of(queries.KVCache("max", s, queries.OfPods, queries.ForChart), ""))),
		lines("Tokens generated", "By each pod, a second.", units.CountsPerSecond, of(queries.OutputTokens(s, queries.OfPods, queries.ForChart), "")),
		lines("Preemptions", "Running requests that were put back into the queue, a second: the KV cache is too small for the load.", units.CountsPerSecond,
			of(sum(rate(queries.Of(queries.InferencePreemptions, s)), queries.OfPods...), "")),
	}
}

func inferenceGateways() []panel {
	// Not by service: a gateway's is its own.
	legend := ofService + " {{" + queries.Engine + "}}"
	by := append(queries.OfServices[:len(queries.OfServices):len(queries.OfServices)], queries.Engine)
	p95 := func(histogram, what string) query {
		return query{expr: queries.InferenceQuantile(0.95, histogram, inNamespace, by, queries.ForChart), legend: legend + what}
	}
	now := func(metric, what string, s ...queries.Selector) query {
		return query{expr: sum(last(queries.Of(metric, append(s, inNamespace)...)), by...), legend: legend + what}
	}
	return []panel{
		lines("Latency at the gateway, p95", "From its arrival at an endpoint picker, a router or a frontend: to the first token, and to the last. The difference to the engines' is what the gateway adds.", units.Seconds,
			p95(queries.GatewayFirstToken, " first token"), p95(queries.GatewayDuration, " whole")),
		lines("Requests in the gateway", "Waiting ones were not given to an engine yet. Dynamo counts as waiting what has no first token.", units.Short,
			now(queries.GatewayRequests, " waiting", queries.Is(queries.RequestState, "waiting")), now(queries.GatewayRequests, " running", queries.Is(queries.RequestState, "running"))),
		lines("Finished at the gateway", "Requests a second by outcome. They are those of the engines once more: never add the two.", units.CountsPerSecond,
			query{expr: sum(rate(queries.Of(queries.GatewayFinished, inNamespace)), append(by[:len(by):len(by)], queries.Outcome)...), legend: legend + " {{" + queries.Outcome + "}}"}),
		lines("Endpoints", "Engines that the gateway may choose. Only from endpoint pickers.", units.Short, now(queries.GatewayReady, " ready")),
	}
}

func inferenceDevices() []panel {
	// Power and devices are of whole services, whatever engine is chosen.
	whole := queries.Whole{Where: aService, Over: queries.ForChart}
	return []panel{
		withMax(line("GPU utilization", "Mean over the pods that report.", units.PercentUnit, queries.ServiceUtilization)),
		withMax(line("Tensor activity", "Mean over the pods that report.", units.PercentUnit, queries.ServicePipe, pipe("tensor"))),
		line("Power", "Of all boards of the service.", units.Watt, queries.ServicePower),
		withMax(lines("Thermal throttling", "Share of the time in which a device of the service slowed down to protect itself.", units.PercentUnit,
			query{expr: most(mean(queries.Of(queries.Throttle, protecting, aService)), service...), legend: ofService})),
		lines("Tokens per joule", without("Generated tokens for the energy of the service's boards. Absent where a page cannot be read, or a device that is held has no power: MIG instances, replicas.", "tokens_per_joule"), units.Short,
			query{expr: whole.TokensPerJoule(), legend: ofService}),
		lines("Tokens a second and device", "Generated tokens for each device held; a share of a device counts as that share. Reads a recorded series.", units.CountsPerSecond,
			query{expr: whole.TokensPerDevice(most(last(queries.Of(recordHeld, aService)), service...)), legend: ofService}),
	}
}
