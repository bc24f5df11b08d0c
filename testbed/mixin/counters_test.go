// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/judge"
)

// tally is a counter, or what an alert reads like one, and what it has to do for its alert.
type tally struct {
	series        string // without the labels of its subject, and without the closing brace
	before, after string
	// first: it appears with the first that it counts.
	first bool
}

// countersOfDevices are what alerts about devices count, by alert.
var countersOfDevices = map[string]tally{
	"GPUXIDFatal":       {`gpu_xid_errors_total{gpu_xid_code="79"`, "1", "2", true},
	"GPUXIDError":       {`gpu_xid_errors_total{gpu_xid_code="13"`, "3", "4", true},
	"GPUXIDWarning":     {`gpu_xid_errors_total{gpu_xid_code="9999"`, "3", "4", true},
	"GPUECCUncorrected": {`hw_errors_total{error_type="uncorrected"`, "1", "2", true},
	"GPUECCCorrected":   {`hw_errors_total{error_type="corrected"`, "20", "50", false},
	"GPUPCIeReplays":    {`gpu_pcie_replays_total{hw_type="gpu"`, "200", "500", false},
	"GPURASError":       {`gpu_ras_last{gpu_ras_severity="fatal"`, "30", "27", true},
	"GPUDeviceReset":    {`gpu_device_resets_total{hw_type="gpu"`, "2", "3", true},
	"GPULinkDown":       {`gpu_link_up{gpu_link_index="0",gpu_link_kind="internal"`, "1", "0", false},
}

// countersOfProcesses are what the Collector counts of itself, by alert.
var countersOfProcesses = map[string]tally{
	"GPUTelemetryRefused":      {`otelcol_receiver_refused_metric_points{receiver="otlp"`, "7", "8", true},
	"GPUCollectorRefusing":     {`otelcol_processor_memory_limiter_refused_metric_points{processor="memory_limiter"`, "7", "8", true},
	"GPUTelemetryDropped":      {`otelcol_exporter_enqueue_failed_metric_points{exporter="x"`, "7", "8", true},
	"GPULimitReached":          {`otelcol_gpu_summary_limit_refusals{limit="pods"`, "7", "8", true},
	"GPUReservedNames":         {`otelcol_app_guard_dropped_points{reason="reserved"`, "7", "8", true},
	"GPUEventsRefused":         {`otelcol_gpu_events_refused{event="gpu.xid"`, "7", "8", true},
	"GPUEventStateFailing":     {`otelcol_gpu_events_state_failures{version="1"`, "7", "8", true},
	"GPUStoreRefusingSamples":  {`otelcol_extension_gpu_store_samples_refused{reason="max_series"`, "7", "8", true},
	"GPUStoreLogFailing":       {`otelcol_extension_gpu_store_log_failures{kind="event",reason="full"`, "7", "8", true},
	"GPUWebhookFailing":        {`otelcol_exporter_webhook_deliveries{receiver="ops",outcome="failed",error_type="timeout"`, "7", "8", true},
	"GPUWebhookQueueFull":      {`otelcol_exporter_webhook_deliveries{receiver="ops",outcome="dropped",error_type="queue_full"`, "7", "8", true},
	"GPUWebhookFilesSkipped":   {`otelcol_exporter_webhook_receiver_files_skipped{reason="invalid"`, "7", "8", true},
	"GPUWebhookStorageFailing": {`otelcol_exporter_webhook_storage_failures{operation="write"`, "7", "8", true},
	"GPUAuditFailing":          {`otelcol_exporter_webhook_audit_failures{version="1"`, "7", "8", true},
	"GPUAuditRecordsLost":      {`otelcol_exporter_webhook_audit_lost_records{version="1"`, "3", "4", true},
	"GPUPriceMissing":          {`otelcol_gpu_cost_unpriced{hw_model="NVIDIA H100"`, "70", "80", true},
	"GPUUsageRefused":          {`otelcol_gpu_cost_refused_points{reason="limit"`, "7", "8", true},
	"GPUUsageStateFailing":     {`otelcol_gpu_cost_store_failures{version="1"`, "7", "8", true},
}

// countersElsewhere are counters of which rules ask for a ratio or a sum over long, to which
// one more or less does not matter.
var countersElsewhere = []string{"GPUIdleSpendOverBudget", "GPUUsageUnknown", "TrainingStands", "TrainingSlower", "TrainingCheckpointSlow"}

// countersOfOthers are counters of runs and of namespaces.
var countersOfOthers = []string{"TrainingNotFinite", "GPUHeldNotUsed"}

// Every alert that asks for the rise of a counter is in the tables here.
func TestEveryCounterOfAnAlertIsTested(t *testing.T) {
	var found []string
	for _, g := range newJudge(t, promqltest.LoadedStorage(t, ""), judge.NewEngine(), everything).Groups {
		for _, r := range g.AlertingRules() {
			if text := r.Query().String(); strings.Contains(text, "increase(") || strings.Contains(text, "changes(") {
				found = append(found, r.Name())
			}
		}
	}
	tested := slices.Concat(slices.Collect(maps.Keys(countersOfDevices)), slices.Collect(maps.Keys(countersOfProcesses)), countersElsewhere, countersOfOthers)
	tested = append(tested, "TrainingCheckpointLate") // it counts how often a gauge moved
	for _, alert := range found {
		assert.Contains(t, tested, alert)
	}
}

// situation is what happens to a counter at begin, and whether that is an alert. Values are
// those of its subject and of the counter, under one or two sets of labels.
type situation struct {
	subject       string
	before, after string // of the counter: b stands for the value before, a for that after
	alert         func(tally) bool
}

func never(tally) bool     { return false }
func always(tally) bool    { return true }
func ifFirst(c tally) bool { return c.first }

// Labels of a device, of its owners, and of the index that it has after a change.
const (
	ownerA = `,k8s_namespace_name="ml",k8s_pod_name="a"`
	ownerB = `,k8s_namespace_name="ml",k8s_pod_name="b"`
	moved  = `k8s_cluster_name="c1",k8s_node_name="n1",hw_id="GPU-1",hw_model="NVIDIA H100",gpu_index="8"`
)

// Counters of devices fire for what they count, and for nothing else: when Prometheus was away
// or is new, when the owner or the index of a device changes, and with a first value.
func TestCountersOfDevices(t *testing.T) {
	t.Parallel()
	same := [2]string{brd + ownerA, brd + ownerA}
	owner, index := [2]string{brd + ownerA, brd + ownerB}, [2]string{brd + ownerA, moved + ownerA}
	const there = "1e9x480"
	for name, c := range map[string]struct {
		labels [2]string
		situation
	}{
		"it counts":                          {same, situation{there, "bx360 ax119", "", always}},
		"nothing happens":                    {same, situation{there, "bx480", "", never}},
		"Prometheus was away":                {same, situation{"1e9x300 _x59 1e9x120", "bx300 _x59 bx120", "", never}},
		"Prometheus was away for a minute":   {same, situation{"1e9x357 _x2 1e9x120", "bx357 _x2 bx120", "", never}},
		"Prometheus is new":                  {same, situation{"_x360 1e9x119", "_x360 bx119", "", never}},
		"the owner changes":                  {owner, situation{there, "bx360 stale", "_x361 bx118", never}},
		"the owner changes, and it counts":   {owner, situation{there, "bx360 stale", "_x361 ax118", always}},
		"the index changes":                  {index, situation{there, "bx360 stale", "_x361 bx118", never}},
		"the index changes, and it counts":   {index, situation{there, "bx360 stale", "_x361 ax118", always}},
		"the index changes without an end":   {index, situation{there, "bx360 _x119", "_x361 bx118", never}},
		"a first value":                      {same, situation{there, "_x361 bx118", "", ifFirst}},
		"a reboot, and as many as before it": {same, situation{"1e9x340 stale _x10 1e9x120", "bx340 stale _x20 bx110", "", ifFirst}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			series := map[string]string{`hw_power_watts{` + brd + `}`: c.subject}
			want := map[string]bool{}
			for alert, of := range countersOfDevices {
				values := strings.NewReplacer("b", of.before, "a", of.after)
				put := func(labels, v string) {
					if v != "" {
						series[of.series+","+labels+"}"] = numbers(values, v)
					}
				}
				put(c.labels[0], c.before)
				put(c.labels[1], c.after)
				if c.alert(of) {
					want[alert] = true
				}
			}
			assert.Equal(t, want, firedBy(t, series, "otelcol-gpu.devices"))
		})
	}
}

// A GPU that was suspended for long has, when it is read again, counted what it had before.
func TestCountersOfASuspendedDevice(t *testing.T) {
	t.Parallel()
	series := map[string]string{
		`hw_power_watts{` + brd + `}`:       "70x200 stale _x159 70x119",
		`gpu_device_suspended{` + brd + `}`: "0x200 1x159 0x119",
		`gpu_exporter_up{` + exp + `}`:      "1x480",
	}
	for _, of := range countersOfDevices {
		series[of.series+","+brd+"}"] = of.before + "x200 stale _x159 " + of.before + "x119"
	}
	assert.Empty(t, firedBy(t, series, "otelcol-gpu.devices"))
}

// Counters of the Collector fire for what it counts: not for what it had counted when
// Prometheus came back or was new, and also when a process that just began counts as much as
// the one before it.
func TestCountersOfProcesses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]situation{
		"it counts":           {"1000+30x480", "bx360 ax119", "", always},
		"nothing happens":     {"1000+30x480", "bx480", "", never},
		"Prometheus was away": {"1000+30x300 _x59 12800+30x120", "bx300 _x59 bx120", "", never},
		"Prometheus is new":   {"_x360 90000+30x119", "_x360 bx119", "", never},
		"a first value":       {"1000+30x480", "_x361 bx118", "", always},
		"another process counts as much": {
			"1000+30x350 stale _x8 10+30x120", "bx350 stale _x10 bx118", "", always,
		},
		"another process with the labels of the one before": {
			"1000+30x360 10+30x119", "bx480", "", always,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			series := map[string]string{`otelcol_process_uptime{` + own + `}`: c.subject, `otelcol_gpu_summary_services_tracked{` + own + `}`: "5x480"}
			want := map[string]bool{}
			for alert, of := range countersOfProcesses {
				series[of.series+","+own+"}"] = numbers(strings.NewReplacer("b", of.before, "a", of.after), c.before)
				if c.alert(of) {
					want[alert] = true
				}
			}
			assert.Equal(t, want, firedBy(t, series, "otelcol-gpu.collector", "otelcol-gpu.webhooks", "otelcol-gpu.usage"))
		})
	}
}

// Counters of a run and of a namespace begin with what they count first.
func TestCountersOfRunsAndNamespaces(t *testing.T) {
	t.Parallel()
	const (
		run = `k8s_cluster_name="c1",k8s_namespace_name="ml",service_name="train",training_run_id="r"`
		ns  = `k8s_cluster_name="c1",k8s_namespace_name="ml"`
	)
	for name, c := range map[string]struct {
		subject, counter string
		alert            bool
	}{
		"a first value":       {"1x480", "_x361 1x118", true},
		"it counts":           {"1x480", "1x360 2x119", true},
		"Prometheus was away": {"1x200 _x159 1x120", "1x200 _x159 1x120", false},
		"Prometheus is new":   {"_x360 1x119", "_x360 1x119", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fired := firedBy(t, map[string]string{
				`training_step{` + run + `}`:                                             c.subject,
				`gpu_summary_warmup_seconds{k8s_cluster_name="c1"}`:                      c.subject,
				`training_nonfinite_total{` + run + `}`:                                  c.counter,
				`gpu_scheduling_first_use_duration_seconds_bucket{le="900",` + ns + `}`:  strings.NewReplacer("1x", "0x", "2x", "0x").Replace(c.counter),
				`gpu_scheduling_first_use_duration_seconds_bucket{le="1800",` + ns + `}`: c.counter,
				`gpu_scheduling_first_use_duration_seconds_bucket{le="+Inf",` + ns + `}`: c.counter,
			}, "otelcol-gpu.training", "otelcol-gpu.scheduling")
			want := map[string]bool{}
			for _, alert := range countersOfOthers {
				if c.alert {
					want[alert] = true
				}
			}
			assert.Equal(t, want, fired)
		})
	}
}

// numbers replaces b and a in a list of values, but for those of stale.
func numbers(values *strings.Replacer, list string) string {
	parts := strings.Fields(list)
	for i, part := range parts {
		if part != "stale" {
			parts[i] = values.Replace(part)
		}
	}
	return strings.Join(parts, " ")
}

// firedBy evaluates groups of rules over series and returns the alerts that fire from begin
// on. None fires in the twenty minutes before.
func firedBy(t *testing.T, series map[string]string, groups ...string) map[string]bool {
	t.Helper()
	j := newJudge(t, promqltest.LoadedStorage(t, load(series)), judge.NewEngine(), func(group string) bool { return slices.Contains(groups, group) })
	fired := map[string]bool{}
	for i := begin - 80; i < begin+110; i++ {
		firing := j.At(t, sampled(i))
		delete(firing, "GPUWatchdog")
		maps.Copy(fired, firing)
		if i < begin {
			assert.Empty(t, firing, "before")
		}
	}
	return fired
}
