// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package reserved knows the names that applications may not use: the metric
// families of GPUs, of the inference processor, of recorded rules, of the Collector
// and of Prometheus itself, and the labels by which a series is taken for one of a
// device, of an engine or of another pod.
// What counts is the name that Prometheus will have, and not the one that was sent.
package reserved // import "github.com/otelcol-gpu/otelcol-gpu/internal/reserved"

import "strings"

// Owner is who may report a metric family.
type Owner string

const (
	Free       Owner = ""           // anyone's
	GPU        Owner = "gpu"        // written by this distribution, or by an exporter of GPUs
	Scheduling Owner = "scheduling" // of schedulers and queues, whose pages config/scheduler.yaml reads
	Inference  Owner = "inference"  // written by the inference processor: autoscalers read it
	Rules      Owner = "rules"      // the result of a recording rule
	Collector  Owner = "collector"  // telemetry of the Collector, or metadata that it writes
	Prometheus Owner = "prometheus" // written by Prometheus' scraper or rule engine
)

// words are reserved as they are and, unless exact, in front of an underscore.
var words = []struct {
	word  string
	owner Owner
	exact bool
}{
	{word: "gpu", owner: GPU},
	{word: "hw", owner: GPU},
	{word: "dcgm", owner: GPU},
	{word: "DCGM", owner: GPU},
	{word: "amd", owner: GPU},
	{word: "habanalabs", owner: GPU},
	{word: "xpum", owner: GPU},
	{word: "slurm_job_info", owner: GPU, exact: true},
	{word: "kueue", owner: Scheduling},
	{word: "volcano", owner: Scheduling},
	{word: "kai_queue", owner: Scheduling},
	{word: "kai_e2e_scheduling_latency_milliseconds", owner: Scheduling},
	// Other programs have families that begin with scheduler_.
	{word: "scheduler_pending_pods", owner: Scheduling},
	{word: "scheduler_schedule_attempts", owner: Scheduling},
	{word: "scheduler_scheduling_attempt_duration_seconds", owner: Scheduling},
	{word: "scheduler_pod_scheduling_sli_duration_seconds", owner: Scheduling},
	{word: "scheduler_unschedulable_pods", owner: Scheduling},
	{word: "scheduler_preemption", owner: Scheduling},
	{word: "scheduler_elastic_quota", owner: Scheduling},
	{word: "scheduler_waiting_gang_group_number", owner: Scheduling},
	{word: "inference", owner: Inference},
	{word: "otelcol", owner: Collector},
	{word: "target_info", owner: Collector},
	{word: "otel_scope_info", owner: Collector},
	{word: "scrape", owner: Prometheus},
	{word: "ALERTS", owner: Prometheus},
	{word: "up", owner: Prometheus, exact: true},
}

// others are families with a reserved name that belong to an application all the same.
var others = map[string]bool{
	"gpu_cache_usage_perc": true, // NVIDIA NIM: the share of the KV cache in use
}

// engines are what inference engines write in front of a colon. Every other colon
// is that of a recording rule.
var engines = map[string]bool{
	"vllm": true, "sglang": true, "lmcache": true, "lmdeploy": true, "llamacpp": true, "trtllm": true,
	"ray_vllm": true, "ray_llm": true, "ray_serve": true, "ray_sglang": true,
}

// ForApplications reports whether applications may have a family with this name in
// the embedded store. What Prometheus' scraper and the inference processor write about
// their pages belongs to it.
func ForApplications(name string) bool {
	owner := Of(name)
	return owner == Free || owner == Prometheus || owner == Inference
}

// Of returns the owner of a name as Prometheus has it: that of a family, or that of
// a series of one.
func Of(name string) Owner {
	if before, _, colon := strings.Cut(name, ":"); colon {
		if engines[before] {
			return Free
		}
		return Rules
	}
	if others[name] {
		return Free
	}
	for _, w := range words {
		if rest, found := strings.CutPrefix(name, w.word); found && (rest == "" || !w.exact && rest[0] == '_') {
			return w.owner
		}
	}
	return Free
}
