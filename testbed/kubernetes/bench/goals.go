// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/gateways"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/gobench"
)

// goal is what a figure was meant to be.
type goal struct {
	what, unit string
	place
	beside string  // row; then the goal is for the ratio to it, of the same turn
	factor float64 // from the column's unit to the goal's; 0 is 1
	plus   []term  // what is added, by its median
	limit  float64
	least  bool // the limit is the least, not the most
	// peer is a row of the same run that distinguishes a slow machine from a slow program: it
	// stands beside a goal that is missed.
	peer string
	// cause is why it is missed, where it is. It has no figures: they would not be
	// those of the next run.
	cause string
}

// term is a figure in another unit.
type term struct {
	place
	factor float64
}

const (
	summaryAlone    = "processor/gpusummaryprocessor/internal/summary: "
	inferenceAlone  = "processor/inferenceprocessor: "
	costAlone       = "connector/gpucostconnector/internal/"
	schedulingAlone = "receiver/gpuschedulingreceiver: "
	slurmAlone      = "receiver/slurmallocationreceiver: "
	causeScheduling = "Every pod and node is visited once, and the Kubernetes API shares the cores."
	partitionsRow   = "amd_gpu receiver"
	gatewayRow      = "gpu_summary, gpu_events"
	fleetRow        = "5000 nodes, 40000 GPUs" + gateways.ScaleOutNote
	causeAlone      = "The processors without a gateway are in *Components alone*."
	causeDifference = "It is the difference of two processes; *receive* shows its noise. " + causeAlone
	causePoints     = "pdata allocates a point, its value, its attributes and each of their texts on their own."
	causeCost       = "Attributes are looked up one by one, and an account keeps two snapshots of its board."
	causeHangs      = "Both exporters and all receivers share the cores; *second* in the same table is what chance alone makes of the ratio."
)

// goals, in the order of entries.
var goals = []goal{
	{what: "agent: resident memory, the most of it", unit: "MiB", place: place{"agent-15s", "agent.yaml", "most"}, limit: 60,
		cause: "Mostly pages of the binary, which the system can reclaim ([footprint](../extension/footprintextension/README.md)). Their number depends on the page cache, and differs more between runs than this."},
	{what: "agent: memory of its own (anonymous)", unit: "MiB", place: place{"agent-15s", "agent.yaml", "anon"}, limit: 30,
		cause: "The stock Collector beside it is the same runtime with one receiver."},
	{what: "agent: CPU every 15 s", unit: "% of a core", place: place{"agent-15s", "agent.yaml", "core"}, limit: 0.2, peer: "stock Collector",
		cause: "Beside scraping it asks the kubelet, watches pods and judges events, and every timer wakes it; the stock Collector's row is what scraping alone costs on that machine."},
	{what: "100 exporters from one place: CPU", unit: "us a sample", place: place{"scrape", "100 exporters, dcgm receiver", "cpu"}, limit: 3, peer: "100 exporters, stock Collector",
		cause: "The exporters share the cores with it, and a slower processor makes all rows dearer: the goal is a time."},
	{what: "100 exporters: anonymous memory", unit: "KiB a series", place: place{"scrape", "100 exporters, dcgm receiver", "kib"}, limit: 2,
		cause: "The process itself is in it, and is much of it with few exporters."},
	{what: "500 exporters: CPU", unit: "us a sample", place: place{"scrape", "500 exporters, dcgm receiver", "cpu"}, limit: 3, peer: "500 exporters, stock Collector",
		cause: "The exporters share the cores with it, and a slower processor makes all rows dearer: the goal is a time."},
	{what: "500 exporters: anonymous memory", unit: "KiB a series", place: place{"scrape", "500 exporters, dcgm receiver", "kib"}, limit: 2,
		cause: "Each exporter has a connection and the pages that it had last."},
	{what: "64 partitions: CPU", unit: "us a sample", place: place{"partitions", partitionsRow, "cpu"}, limit: 3.5, peer: "stock Collector",
		cause: "The exporter shares the cores with it: the goal is a time."},
	{what: "64 partitions: CPU every 15 s", unit: "% of a core", place: place{"partitions", partitionsRow, "core"}, limit: 0.3, peer: "stock Collector",
		cause: "The exporter shares the cores with it: the goal is a time."},
	{what: "64 partitions: resident memory", unit: "MiB", place: place{"partitions", partitionsRow, "rss"}, limit: 90, peer: "stock Collector",
		cause: "Mostly pages of the binary, and the text of the page."},
	{what: "gateway: summary and events, beyond receiving", unit: "us a point", place: place{"gateway", gatewayRow, "added"}, limit: 0.3, peer: gateways.StockMeanRow,
		cause: causeDifference},
	{what: "the same with attribution, which is done in the agent", unit: "us a point", place: place{"gateway", gatewayRow, "added"},
		plus:  []term{{place{"go-components", "processor/gpupodprocessor: Devices", "ns/point"}, 0.001}},
		limit: 0.3, peer: gateways.StockMeanRow, cause: causeDifference},
	{what: "40,000 GPUs on one gateway: CPU", unit: "% of a core", place: place{"growth", fleetRow, "core"}, limit: 100,
		cause: "The generator runs on the same cores."},
	{what: "40,000 GPUs: requests refused", place: place{"growth", fleetRow, "failed"}, limit: 0,
		cause: "The gateway had no more of the cores than the generator left."},
	{what: "40,000 GPUs: points taken a second, of 27,000 that are due", place: place{"growth", fleetRow, "points"}, limit: 26730, least: true,
		cause: "Where a request is answered late, the next one is sent late; the generator runs on the same cores."},
	{what: "40,000 GPUs: pods seen", place: place{"growth", fleetRow, "pods"}, limit: 40000, least: true,
		cause: "Not every node had been seen when the measurement ended."},
	{what: "a complete service is called partial", unit: "% of the time", place: place{"correctness", "**All faults**: reports partial while it is not, % of answers", "summary"}, limit: 0,
		cause: "No fault of the script ends a partial state, so that an old answer explains none of it: gpu_summary is wrong there."},
	{what: "events neither delivered nor given up on record", place: place{"webhooks-faults", "otelcol-gpu: standalone.yaml, webhooks.yaml", "lost"}, limit: 0,
		cause: "What is acknowledged is kept, so nothing that was done to the sender excuses it."},
	{what: "attempts that the audit log proves", unit: "%", place: place{"webhooks-faults", "otelcol-gpu: standalone.yaml, webhooks.yaml", "proved"}, limit: 100, least: true,
		cause: "What was on its way when the sender was killed has no record of its own."},
	{what: "attribution: the decision alone beside all that k8s_attributes does", unit: "of its time", place: place{"go-attribution", "Decision", "ns/resource"}, beside: "K8sAttributes", limit: 0.1,
		cause: "A round of so little work is mostly the benchmark's own loop and what disturbs it."},
	{what: "inference: thirty families beside transform", unit: "of its time", place: place{"go-inference", gobench.InferenceBeside + "Inference", "ns/point"}, beside: gobench.InferenceBeside + "Transform", limit: 0.1,
		cause: "Transform changes names in place; the processor makes points, with checks, start times and common attributes."},
	{what: "inference: a page of vLLM", unit: "us", place: place{"go-inference", inferenceAlone + "Page", "us/page"}, limit: 40, cause: causePoints},
	{what: "inference: a page of TGI", unit: "us", place: place{"go-inference", inferenceAlone + "PageTGI", "us/page"}, limit: 150, cause: causePoints},
	{what: "inference: a family of no row", unit: "ns a point", place: place{"go-inference", inferenceAlone + "Unknown", "ns/point"}, limit: 60,
		cause: "Its name is looked up among those of all engines, as a whole and by what it begins with."},
	{what: "inference: a number", unit: "ns a point", place: place{"go-inference", inferenceAlone + "Number", "ns/point"}, limit: 250, cause: causePoints},
	{what: "inference: allocations of a number", unit: "a point", place: place{"go-inference", inferenceAlone + "Number", "allocs/point"}, limit: 2, cause: causePoints},
	{what: "inference: a histogram", unit: "us a point", place: place{"go-inference", inferenceAlone + "Histogram", "ns/point"}, factor: 1e-3, limit: 1.2, cause: causePoints},
	{what: "inference: memory", unit: "B a series", place: place{"go-inference", inferenceAlone + "Memory", "B/series"}, limit: 300,
		cause: "A series keeps its last value, its start and its place in a map."},
	{what: "inference: series of an engine in a store", place: place{"go-inference", inferenceAlone + "Page", "series/engine"}, limit: 260,
		cause: "A histogram keeps the bounds of the page, of which the engine has more."},
	{what: "summary of 100,000 pods: arrival", unit: "ns a point", place: place{"go-components", summaryAlone + "Observe/pods=100000", "ns/point"}, limit: 100,
		cause: "With fewer pods it is met: what grows with the fleet is the time to load the state of a pod from memory."},
	{what: "summary of 100,000 pods: evaluation, under the lock", unit: "ms", place: place{"go-components", summaryAlone + "Evaluate/compute/pods=100000", "ns/op"}, factor: 1e-6, limit: 100,
		cause: "It visits every pod and device once."},
	{what: "the same with writing it, outside the lock", unit: "ms", place: place{"go-components", summaryAlone + "Evaluate/compute/pods=100000", "ns/op"}, factor: 1e-6,
		plus:  []term{{place{"go-components", summaryAlone + "Evaluate/write/pods=100000", "ns/op"}, 1e-6}},
		limit: 100, cause: "pdata allocates every point and attribute. It delays no arrival."},
	{what: "summary of 100,000 pods: memory", unit: "KiB a pod", place: place{"go-components", summaryAlone + "Memory/pods=100000", "B/pod"}, factor: 1. / 1024, limit: 1.5,
		cause: "A pod keeps its names, its device, and a value with its time for each input."},
	{what: "source sysfs: a collection of 8 boards", unit: "ms", place: place{"go-vendors", "receiver/amdgpureceiver: Sysfs", "ns/op"}, factor: 1e-6, limit: 5,
		cause: "Files are read in parallel, each board by itself."},
	{what: "cost: a point of gpu.allocation", unit: "ns", place: place{"go-cost", costAlone + "intake: AllocationPoint", "ns/op"}, limit: 500, cause: causeCost},
	{what: "cost: memory", unit: "KiB a board", place: place{"go-cost", costAlone + "intake: Device", "B/device"}, factor: 1. / 1024, limit: 1.5, cause: causeCost},
	{what: "cost: flush of 10,000 boards", unit: "ms", place: place{"go-cost", "connector/gpucostconnector: Flush", "ns/op"}, factor: 1e-6, limit: 50, cause: causeCost},
	{what: "cost: written by it", unit: "KiB", place: place{"go-cost", "connector/gpucostconnector: Flush", "KiB/write"}, limit: 512, cause: causeCost},
	{what: "cost: report of 30 days of 1,000 services", unit: "s", place: place{"go-cost", "internal/costreport: Month", "ns/op"}, factor: 1e-9, limit: 1, cause: causeCost},
	{what: "scheduling: evaluation of 50,000 pods on 5,000 nodes", unit: "ms", place: place{"go-scheduling", schedulingAlone + "Evaluation", "ns/op"}, factor: 1e-6, limit: 200, cause: causeScheduling},
	{what: "scheduling: memory of them", unit: "MB", place: place{"go-scheduling", schedulingAlone + "Start", "MB"}, limit: 250, cause: causeScheduling},
	{what: "scheduling: until the first figures of them", unit: "s", place: place{"go-scheduling", schedulingAlone + "Start", "ns/op"}, factor: 1e-9, limit: 30, cause: causeScheduling},
	{what: "Slurm: until the owner is known, the slowest of 300 jobs", unit: "s", place: place{"go-scheduling", slurmAlone + "Jobs", "ms-most"}, factor: 1e-3, limit: 1, cause: "The folder is read after the kernel reports a change."},
	{what: "Slurm: memory", unit: "MB", place: place{"go-scheduling", slurmAlone + "Jobs", "MB"}, limit: 20, cause: "Jobs that ended are forgotten with the next reading."},
	{what: "10 receivers, one hangs: p99 of the others", unit: "of that without", place: place{"go-delivery", "Hanging/receivers=10/nothing", "hanging-p99-ratio-median"}, limit: 1.2, cause: causeHangs},
	{what: "the same with retry, storage and audit", unit: "of that without", place: place{"go-delivery", "Hanging/receivers=10/storage+audit", "hanging-p99-ratio-median"}, limit: 1.2, cause: causeHangs},
	{what: "100 receivers, the same", unit: "of that without", place: place{"go-delivery", "Hanging/receivers=100/storage+audit", "hanging-p99-ratio-median"}, limit: 1.2, cause: causeHangs},
	{what: "cause to webhook, demo: the slowest", unit: "s", place: place{"go-alarm", "Alarm/demo", "death-max-s"}, limit: 16,
		cause: "Staleness counts from the last point and evaluations have their beat; what remains is what the machine delayed."},
	{what: "cause to webhook, defaults: the slowest", unit: "s", place: place{"go-alarm", "Alarm/defaults", "death-max-s"}, limit: 61,
		cause: "Staleness counts from the last point and evaluations have their beat; what remains is what the machine delayed."},
}

// measured are what the turns gave of what the goal is for.
func (g goal) measured(results map[string]frame.Result) ([]float64, error) {
	all, err := g.values(results)
	if err != nil {
		return nil, err
	}
	if g.beside != "" {
		others, err := place{g.entry, g.beside, g.column}.values(results)
		if err != nil {
			return nil, err
		}
		all = frame.Ratios(all, others)
	}
	all = known(all)
	if g.factor != 0 {
		for i := range all {
			all[i] *= g.factor
		}
	}
	for _, t := range g.plus {
		more, err := t.values(results)
		if err != nil {
			return nil, err
		}
		for i := range all {
			all[i] += frame.Median(known(more)) * t.factor
		}
	}
	if len(all) == 0 {
		return nil, errUnmeasured
	}
	return all, nil
}

// verdict is whether the goal is met, else by how much it is missed, and the cause.
func (g goal) verdict(all []float64, results map[string]frame.Result) (verdict, cause string) {
	mc := results[g.entry].Machine
	missed := func(v float64) bool { return v > g.limit && !g.least || v < g.limit && g.least }
	got := frame.Median(all)
	if !missed(got) {
		return "met", ""
	}
	distance := number(math.Abs(got-g.limit), -1)
	if g.limit != 0 {
		percent, decimals := 100*math.Abs(got-g.limit)/g.limit, 0
		if percent < 1 {
			decimals = 2
		}
		distance = number(percent, decimals) + " %"
	}
	cause = g.cause
	if peer, err := (place{g.entry, g.peer, g.column}).values(results); g.peer != "" && err == nil {
		cause += fmt.Sprintf(" %s in the same run: %s.", g.peer, number(frame.Median(known(peer)), -1))
	}
	if mc.Busy() {
		cause += fmt.Sprintf(" Busy machine: load %s on %d cores.", mc.Load, mc.Cores)
	}
	return "**missed by " + distance + "**", strings.TrimSpace(cause)
}
