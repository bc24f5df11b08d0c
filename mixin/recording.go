// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Recorded series. Level, metric and operation, as Prometheus' own advice has it.
const (
	recordHeld      = "namespace_service:gpu_devices_held:sum"
	recordUsed      = "namespace_service:gpu_devices_used:sum"
	recordHoursHeld = "namespace_service:gpu_hours_held:1h"
	recordHoursUsed = "namespace_service:gpu_hours_used:1h"
	recordEnergy    = "namespace_service:gpu_energy_joules:1h"
	recordXID       = "device:gpu_xid_errors:max"
	recordErrors    = "device:hw_errors:max"
	recordReplays   = "device:gpu_pcie_replays:max"
	recordResets    = "device:gpu_resets:max"
	recordRAS       = "device:gpu_ras_last:max"
	recordReadings  = "device:gpu_readings:count"
	recordDevices   = "cluster:gpu_devices:count"
	recordMean      = "cluster:hw_gpu_utilization:avg"
	recordPower     = "cluster:hw_power_watts:sum"
	recordMemory    = "cluster:hw_gpu_memory_usage_bytes:sum"
	recordLimit     = "cluster:hw_gpu_memory_limit_bytes:sum"
	recordXIDRate   = "device:gpu_xid_errors:increase1h"
	recordBoards    = "cluster:gpu_boards:count"
	recordFailed    = "device:hw_status_failed:max"
	recordFailures  = "cluster:gpu_board_failures:count1m"
	recordFailing   = "cluster:gpu_failures_per_1000_gpu_days:7d"
)

// everyMinute is the interval in which devices are counted, so that sixty counts
// are an hour.
const everyMinute = "1m"

// physical are devices without the instances and replicas on them.
var physical = queries.Is(queries.Parent, "")

// The kubelet's word on who holds how much of a device, and the device's own
// telemetry; each device once.
var (
	byDevice = append([]string{queries.Device}, service...)
	share    = most(queries.Of(queries.Allocation, set(queries.Service)), byDevice...)
	busy     = most(queries.General(set(queries.Service)), byDevice...)
	there    = most(queries.There("", set(queries.Service)), byDevice...)
)

// held is how many devices a service owns: shares where the kubelet reports them, whole
// devices on nodes where it does not; and where no kubelet does, the count of the summary,
// which includes devices without telemetry.
func held() string {
	return sum(share+" or "+there+" * 0 + 1", service...) + " and" + on(service...) + queries.Of(queries.Allocation, set(queries.Service)) +
		" or " + sum(queries.ServiceDevices, service...)
}

// used is how much of that was busy.
func used() string { return sum(busy+" * "+share+" or "+busy, service...) }

func recording(o objectives) ruleFile {
	perDevice := aDevice
	ofDevices := func(metric string, more ...queries.Selector) string {
		return most(queries.Of(metric, append(more, physical)...), queries.Cluster, queries.Device)
	}
	return ruleFile{[]ruleGroup{
		{Name: "otelcol-gpu.usage", Interval: everyMinute, Rules: []rule{
			{Record: recordHeld, Expr: held()},
			{Record: recordUsed, Expr: used()},
			// Sums of minutes and not means: who was there for half an hour had half.
			{Record: recordHoursHeld, Expr: "sum_over_time(" + recordHeld + "[1h]) / 60"},
			{Record: recordHoursUsed, Expr: "sum_over_time(" + recordUsed + "[1h]) / 60"},
			{Record: recordEnergy, Expr: "sum_over_time(" + most(queries.Of(queries.ServicePower), service...) + "[1h:1m]) * 60"},
		}},
		{Name: "otelcol-gpu.devices", Rules: []rule{
			// Counters by device and not by owner, which changes; and when devices were read.
			{Record: recordReadings, Expr: count(queries.Reports(), byBoard...)},
			{Record: recordXID, Expr: most(queries.XIDErrors, slices.Concat(perDevice, []string{queries.XIDCode})...)},
			{Record: recordErrors, Expr: most(queries.HwErrors, slices.Concat(perDevice, []string{queries.ErrorType})...)},
			{Record: recordReplays, Expr: most(queries.PCIeReplays, perDevice...)},
			{Record: recordResets, Expr: most(names.GPUDeviceResets.Prometheus(), perDevice...)},
			{Record: recordRAS, Expr: most(names.GPURASLast.Prometheus(), slices.Concat(perDevice, []string{"gpu_ras_severity"})...)},
			{Record: recordDevices, Expr: count(most(queries.There("", physical), queries.Cluster, queries.Device), queries.Cluster)},
			{Record: recordMean, Expr: avg(most(queries.General(physical), queries.Cluster, queries.Device), queries.Cluster)},
			{Record: recordPower, Expr: sum(ofDevices(queries.Power), queries.Cluster)},
			{Record: recordMemory, Expr: sum(ofDevices(queries.MemoryUsage), queries.Cluster)},
			{Record: recordLimit, Expr: sum(ofDevices(queries.MemoryLimit), queries.Cluster)},
		}},
		{Name: "otelcol-gpu.boards", Interval: everyMinute, Rules: boardRecording()},
		{Name: "otelcol-gpu.inference", Interval: "30s", Rules: inferenceRecording(o)},
		{Name: "otelcol-gpu.cost", Interval: everyMinute, Rules: costRecording()},
		{Name: "otelcol-gpu.queues", Interval: "30s", Rules: queueRecording()},
	}}
}

// ofInference begins the names of what is recorded of inference services.
const ofInference = "namespace_service:inference_"

// inferenceRecording are the figures of inference services, and what their objectives
// count. A figure is absent where a part of its service is not known; what objectives
// count is not, for alerts must not end when pages do.
func inferenceRecording(o objectives) []rule {
	known := queries.Whole{Over: queries.InferenceWindow}
	rules := []rule{
		{Record: ofInference + "output_tokens:rate5m", Expr: known.OutputTokens()},
		{Record: ofInference + "input_tokens:rate5m", Expr: known.InputTokens()},
		{Record: ofInference + "tokens_per_device:rate5m", Expr: known.TokensPerDevice("avg_over_time(" + recordHeld + "[5m])")},
		{Record: ofInference + "tokens_per_joule:rate5m", Expr: known.TokensPerJoule()},
	}
	for _, h := range []struct{ name, histogram string }{
		{"ttft", queries.TimeToFirstToken},
		{"tpot", queries.TimePerToken},
		{"itl", queries.InterTokenLatency},
		{"request", queries.RequestDuration},
		{"queue", queries.InferenceQueueTime},
	} {
		for _, q := range []struct {
			name  string
			value float64
		}{{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}} {
			rules = append(rules, rule{Record: ofInference + h.name + "_seconds:" + q.name, Expr: known.Quantile(q.value, h.histogram)})
		}
	}
	rules = append(rules, []rule{
		{Record: ofInference + "request_seconds:mean5m", Expr: known.Mean(queries.RequestDuration)},
		{Record: ofInference + "errors:ratio5m", Expr: known.ErrorRatio()},
		{Record: ofInference + "kv_cache:max", Expr: known.KVCache("max")},
		{Record: ofInference + "kv_cache:avg", Expr: known.KVCache("avg")},
		{Record: ofInference + "demand:requests", Expr: known.Demand()},
		{Record: ofInference + "saturation:ratio", Expr: known.Saturation()},
		{Record: ofInference + "prefix_cache_hits:ratio5m", Expr: known.PrefixHits()},
		{Record: ofInference + "speculation_accepted:ratio5m", Expr: known.Accepted()},
		{Record: ofInference + "batch:mean5m", Expr: known.Batch()},
	}...)
	for _, n := range indicators(o) {
		rules = append(rules, n.rules()...)
	}
	return rules
}

// boardRecording are the states of boards, how often boards fail, and how often they
// report XIDs. It is evaluated every minute: a failure is found by comparing a board with
// the minute before, and 1,440 counts of boards are as many GPU-days.
func boardRecording() []rule {
	status := queries.Of(queries.BoardStatus, ofGPU)
	failed := queries.Of(queries.BoardStatus, ofGPU, queries.Is(queries.HwState, health.Failed.String()))
	// A board that is unknown for up to an hour before it fails has failed: what broke it
	// often silences it first. One that was never known otherwise has not.
	began := recordFailed + " == 1 and last_over_time(" + recordFailed + "[1h] offset 1m) == 0"
	return []rule{
		{Record: recordBoards, Expr: sum(most(status, append(byBoard[:2:2], queries.HwState)...), queries.Cluster, queries.HwState)},
		{Record: recordFailed, Expr: most(failed, byBoard...)},
		{Record: recordFailures, Expr: count(began, queries.Cluster) + " or " + sum(recordFailed, queries.Cluster) + " * 0"},
		{Record: recordFailing, Expr: "1000 * sum_over_time(" + recordFailures + "[7d]) / (" + sum("sum_over_time("+recordBoards+"[7d])", queries.Cluster) + " / 1440)"},
		{Record: recordXIDRate, Expr: xidRate()},
	}
}

// xidRate is how often a board reported XIDs within an hour, where an exporter counts
// them: what is derived from the last code misses repeats, and would be too low.
func xidRate() string {
	all, ofBoard := deviceCounter(recordXID, []string{queries.XIDCode}), deviceCounter(recordXID, nil)
	return ofBoard.located(sum(all.rise(time.Hour), byBoard...) +
		" unless" + on(byBoard...) + queries.Of(queries.XIDErrors, queries.Is(queries.XIDDerived, "true")))
}
