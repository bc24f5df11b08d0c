// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"

// Metrics of applications: the names of the semantic conventions, and
// those of vLLM, in which some writers turn the colon into an underscore.
const (
	httpDuration = "http_server_request_duration_seconds"
	genDuration  = "gen_ai_server_request_duration_seconds"
	genFirst     = "gen_ai_server_time_to_first_token_seconds"
	vllmFirst    = "vllm[:_]time_to_first_token_seconds"
	vllmEndToEnd = "vllm[:_]e2e_request_latency_seconds"
	vllmCache    = "vllm[:_](kv|gpu)_cache_usage_perc"
	vllmWaiting  = "vllm[:_]num_requests_waiting"
	vllmRunning  = "vllm[:_]num_requests_running"
	vllmTokens   = "vllm[:_]generation_tokens_total"
	vllmDone     = "vllm[:_]request_success_total"
	accuracy     = "app_accuracy_ratio"
)

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

func inferenceAlerts() []group {
	slow := []string{
		"GPUServiceThrottled of the same service: then it is the hardware, and Alertmanager has held this back.",
		"Queue and cache: dashboard GPU inference; utilization of the slowest pod: dashboard GPU service.",
	}
	return []group{
		{"otelcol-gpu.applications", []alert{
			{
				name: "GPUAppErrorRate", severity: critical, wait: "5m",
				expr: "(" + requests(httpDuration, matching("http_response_status_code", "5..")) + " / " + requests(httpDuration) + ") > 0.05 or (" +
					requests(genDuration, set(queries.ErrorType)) + " / " + requests(genDuration) + ") > 0.05",
				summary: "{{ $value | humanizePercentage }} of the requests to " + theService + " fail.",
				meaning: "More than a twentieth of requests or generations end with an error.",
				check:   []string{"`error_type` or status of the failures, and the application's log and traces.", "XIDs and memory pressure of its devices."},
				do:      []string{"Roll back if it began with a release; restart the pods on devices that reported an XID."},
			},
			{
				name: "GPUAppLatencyP95", severity: warning, wait: "10m",
				expr:    quantile("0.95", httpDuration) + " > 2 or " + quantile("0.95", genDuration) + " > 10",
				summary: "p95 of " + theService + " is {{ $value | humanizeDuration }}.",
				meaning: "A template: 2 s for requests, 10 s for generations. Set it to what you promise.",
				check:   slow, do: []string{"More replicas, or less concurrency a replica."},
			},
			{
				name: "GPUAppLatencyP99", severity: warning, wait: "10m",
				expr:    quantile("0.99", httpDuration) + " > 5 or " + quantile("0.99", genDuration) + " > 30",
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
		{"otelcol-gpu.vllm", []alert{
			{
				name: "VLLMTimeToFirstToken", severity: warning, wait: "5m",
				expr: quantile("0.95", vllmFirst) + " > 2", summary: "p95 of the time to the first token of " + theService + " is {{ $value | humanizeDuration }}.",
				meaning: "Users wait more than two seconds for the first word.", check: slow,
				do: []string{"More replicas; chunked prefill; shorter prompts."},
			},
			{
				name: "VLLMLatency", severity: warning, wait: "5m",
				expr: quantile("0.99", vllmEndToEnd) + " > 30", summary: "p99 of whole requests of " + theService + " is {{ $value | humanizeDuration }}.",
				meaning: "One request in a hundred takes more than 30 s.", check: slow,
				do: []string{"More replicas, or a bound for generated tokens."},
			},
			{
				name: "VLLMCachePressure", severity: warning, wait: "5m",
				expr:    most(named(vllmCache), append(service[:len(service):len(service)], queries.Pod)...) + " > 0.9",
				summary: "The KV cache of {{ $labels." + queries.Pod + " }} of " + theService + " is {{ $value | humanizePercentage }} full.",
				meaning: "Requests will wait or be preempted.", check: slow,
				do: []string{"More replicas, a larger cache fraction, or shorter contexts."},
			},
			{
				name: "VLLMQueueGrowing", severity: warning, wait: "5m",
				expr:    sum(named(vllmWaiting), service...) + " > 10 and deriv(" + sum(named(vllmWaiting), service...) + "[5m:30s]) > 0",
				summary: "{{ $value }} requests wait at " + theService + ", and their number grows.",
				meaning: "More arrives than is served.", check: slow,
				do: []string{"More replicas; or refuse early."},
			},
			{
				name: "VLLMThroughputDrop", severity: warning, wait: "10m",
				expr: sum("rate("+named(vllmTokens)+"[5m])", service...) + " < 0.5 * " + sum("rate("+named(vllmTokens)+"[5m] offset 1h)", service...) +
					" and " + sum(named(vllmWaiting), service...) + " > 0",
				summary: theService + " generates less than half of what it did an hour ago, and requests wait.",
				meaning: "It is slower, and not merely asked for less.", check: slow,
				do: []string{"Look for a lost pod or a throttled device first."},
			},
			{
				name: "VLLMAborted", severity: warning, wait: "5m",
				expr:    "(" + sum("rate("+named(vllmDone, queries.Is("finished_reason", "abort"))+"[5m])", service...) + " / " + sum("rate("+named(vllmDone)+"[5m])", service...) + ") > 0.05",
				summary: "{{ $value | humanizePercentage }} of the requests of " + theService + " are aborted.",
				meaning: "Clients give up before the answer is complete.", check: slow,
				do: []string{"Compare with the clients' timeouts; then as for latency."},
			},
		}},
	}
}
