// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Metrics of applications: the names of the semantic conventions, and
// those of vLLM, in which some writers turn the colon into an underscore. The latter are
// read for one release, beside what every engine has.
const (
	httpDuration = "http_server_request_duration_seconds"
	genDuration  = "gen_ai_server_request_duration_seconds"
	vllmFirst    = "vllm[:_]time_to_first_token_seconds"
	vllmEndToEnd = "vllm[:_]e2e_request_latency_seconds"
	vllmCache    = "vllm[:_](kv|gpu)_cache_usage_perc"
	vllmWaiting  = "vllm[:_]num_requests_waiting"
	vllmTokens   = "vllm[:_]generation_tokens_total"
	vllmDone     = "vllm[:_]request_success_total"
	accuracy     = "app_accuracy_ratio"
)

// ofSDKs leaves out what engines report under the same names: the same requests, in
// histograms of other bounds.
var ofSDKs = queries.Is(queries.Engine, "")

// named selects metrics by a pattern of their name.
func named(pattern string, s ...queries.Selector) string {
	return "{" + string(queries.And(append([]queries.Selector{matching("__name__", pattern)}, s...)...)) + "}"
}

// quantile is one of a histogram of a service.
func quantile(q, histogram string, s ...queries.Selector) string {
	return "histogram_quantile(" + q + ", " + sum("rate("+named(histogram+"_bucket", s...)+"[5m])", append(service[:len(service):len(service)], "le")...) + ")"
}

func requests(histogram string, s ...queries.Selector) string {
	return sum("rate("+named(histogram+"_count", s...)+"[5m])", service...)
}

func inferenceAlerts(o objectives) []group {
	slow := []string{
		"GPUServiceThrottled of the same service: then it is the hardware, and Alertmanager has held this back.",
		"Queue and cache: dashboard GPU inference; utilization of the slowest pod: dashboard GPU service.",
	}
	return []group{
		{"otelcol-gpu.applications", []alert{
			{
				name: "GPUAppErrorRate", severity: critical, wait: "5m",
				expr: "(" + requests(httpDuration, matching("http_response_status_code", "5..")) + " / " + requests(httpDuration) + ") > 0.05 or (" +
					requests(genDuration, ofSDKs, set(queries.ErrorType)) + " / " + requests(genDuration, ofSDKs) + ") > 0.05",
				summary: "{{ $value | humanizePercentage }} of the requests to " + theService + " fail.",
				meaning: "More than a twentieth of requests or generations end with an error.",
				check:   []string{"`error_type` or status of the failures, and the application's log and traces.", "XIDs and memory pressure of its devices."},
				do:      []string{"Roll back if it began with a release; restart the pods on devices that reported an XID."},
			},
			{
				name: "GPUAppLatencyP95", severity: warning, wait: "10m",
				expr:    quantile("0.95", httpDuration) + " > 2 or " + quantile("0.95", genDuration, ofSDKs) + " > 10",
				summary: "p95 of " + theService + " is {{ $value | humanizeDuration }}.",
				meaning: "A template: 2 s for requests, 10 s for generations. Set it to what you promise.",
				check:   slow, do: []string{"More replicas, or less concurrency a replica."},
			},
			{
				name: "GPUAppLatencyP99", severity: warning, wait: "10m",
				expr:    quantile("0.99", httpDuration) + " > 5 or " + quantile("0.99", genDuration, ofSDKs) + " > 30",
				summary: "p99 of " + theService + " is {{ $value | humanizeDuration }}.",
				meaning: "A template: 5 s for requests, 30 s for generations. Set it to what you promise.",
				check:   slow, do: []string{"Look for single slow pods first: one throttled GPU makes a p99."},
			},
			{
				name: "GPUAppAccuracyDrop", severity: warning, wait: "15m",
				expr:    "avg_over_time(" + accuracy + "[1h]) < 0.95 * avg_over_time(" + accuracy + "[1d] offset 1h)",
				summary: "Accuracy of " + theService + " fell to {{ $value | humanizePercentage }}.",
				meaning: "The last hour is more than a twentieth below the day before. The application exports its own score as the gauge `app.accuracy` (unit 1).",
				check:   []string{"What changed: model, prompt, data.", "Uncorrected memory errors on its devices: they make wrong numbers."},
				do:      []string{"Roll back the model; replace a device with GPUECCUncorrected."},
			},
		}},
		{"otelcol-gpu.inference", append(engineAlerts(slow), objectiveAlerts(o, slow)...)},
	}
}

// engineAlerts are templates for any inference engine.
func engineAlerts(slow []string) []alert {
	of := func(figure func(queries.Selector, queries.Groups, time.Duration) string) string {
		return figure(queries.All, queries.OfServices, queries.InferenceWindow)
	}
	upper := func(q float64, histogram string) string {
		return queries.InferenceQuantile(q, histogram, queries.All, queries.OfServices, queries.InferenceWindow)
	}
	// The names of vLLM are those that the previous release passed on.
	newOrOld := func(current, old string) string { return "(" + current + " or " + old + ")" }
	waiting := newOrOld(queries.RequestsIn("waiting", queries.All, queries.OfServices, queries.InferenceWindow), sum(named(vllmWaiting), service...))
	pod := append(service[:len(service):len(service)], queries.Pod)
	output := newOrOld(of(queries.OutputTokens), sum("rate("+named(vllmTokens)+"[5m])", service...))
	before := newOrOld(
		sum("rate("+queries.Of(queries.InferenceTokens, queries.FromEngines, queries.Is(queries.TokenType, "output"))+"[5m] offset 1h)", service...),
		sum("rate("+named(vllmTokens)+"[5m] offset 1h)", service...))
	finished := queries.Of(queries.InferenceFinished, queries.FromEngines)
	cancelled := queries.Of(queries.InferenceFinished, queries.FromEngines, queries.Is(queries.Outcome, names.OutcomeCancelled))
	return []alert{
		{
			name: "InferenceTimeToFirstToken", severity: warning, wait: "5m",
			expr:    newOrOld(upper(0.95, queries.TimeToFirstToken), quantile("0.95", vllmFirst)) + " > 2",
			summary: "p95 of the time to the first token of " + theService + " is {{ $value | humanizeDuration }}.",
			meaning: "Users wait more than two seconds for the first word.", check: slow,
			do: []string{"More replicas; chunked prefill; shorter prompts."},
		},
		{
			name: "InferenceLatency", severity: warning, wait: "5m",
			expr:    newOrOld(upper(0.99, queries.RequestDuration), quantile("0.99", vllmEndToEnd)) + " > 30",
			summary: "p99 of whole requests of " + theService + " is {{ $value | humanizeDuration }}.",
			meaning: "One request in a hundred takes more than 30 s.", check: slow,
			do: []string{"More replicas, or a bound for generated tokens."},
		},
		{
			name: "InferenceCachePressure", severity: warning, wait: "5m",
			expr:    newOrOld(queries.KVCache("max", queries.All, queries.OfPods, queries.InferenceWindow), most(named(vllmCache), pod...)) + " > 0.9",
			summary: "The KV cache of {{ $labels." + queries.Pod + " }} of " + theService + " is {{ $value | humanizePercentage }} full.",
			meaning: "Requests will wait or be preempted.", check: slow,
			do: []string{"More replicas, a larger cache fraction, or shorter contexts."},
		},
		{
			name: "InferenceQueueGrowing", severity: warning, wait: "5m",
			expr:    waiting + " > 10 and deriv(" + waiting + "[5m:30s]) > 0",
			summary: "{{ $value }} requests wait at " + theService + ", and their number grows.",
			meaning: "More arrives than is served.", check: slow,
			do: []string{"More replicas; or refuse early."},
		},
		{
			name: "InferenceThroughputDrop", severity: warning, wait: "10m",
			expr:    output + " < 0.5 * " + before + " and " + waiting + " > 0",
			summary: theService + " generates less than half of what it did an hour ago, and requests wait.",
			meaning: "It is slower, and not merely asked for less.", check: slow,
			do: []string{"Look for a lost pod or a throttled device first."},
		},
		{
			name: "InferenceCancelled", severity: warning, wait: "5m",
			expr: newOrOld(sum("rate("+cancelled+"[5m])", service...)+" / "+sum("rate("+finished+"[5m])", service...),
				sum("rate("+named(vllmDone, queries.Is("finished_reason", "abort"))+"[5m])", service...)+" / "+sum("rate("+named(vllmDone)+"[5m])", service...)) + " > 0.05",
			summary: "{{ $value | humanizePercentage }} of the requests of " + theService + " are cancelled.",
			meaning: "Clients give up before the answer is complete.", check: slow,
			do: []string{"Compare with the clients' timeouts; then as for latency."},
		},
	}
}

// objectiveAlerts are the burn rates of the objectives.
func objectiveAlerts(o objectives, slow []string) (all []alert) {
	for _, n := range indicators(o) {
		within := decimal(n.objective.Within) + " s"
		share := percent(n.objective.Share) + " of the requests"
		switch n.histogram {
		case queries.TimeToFirstToken:
			all = append(all, n.alerts("had no first token within "+within, "The objective: the first token within "+within+", for "+share+".", slow,
				[]string{"Fast: more replicas, or fewer requests at once. Slow: plan for more.", "The objective is in mixin/objectives.yaml: set it to what you promise."})...)
		case queries.TimePerToken:
			all = append(all, n.alerts("took more than "+within+" for each token after the first", "The objective: "+within+" for each token after the first, for "+share+".", slow,
				[]string{"Smaller batches, or more replicas.", "The objective is in mixin/objectives.yaml: set it to what you promise."})...)
		default:
			all = append(all, n.alerts("failed or were rejected", "The objective: "+share+" neither fail nor are rejected. Those that the client cancelled do not count. It needs an engine that counts failed requests.",
				[]string{"The panel Finished of the dashboard GPU inference: which outcome, for which reason.", "XIDs and memory pressure of its devices; the engine's log."},
				[]string{"Rejected: more replicas. Failed: restart the pods on devices that reported an XID, or roll back.", "The objective is in mixin/objectives.yaml: set it to what you promise."})...)
		}
	}
	return all
}
