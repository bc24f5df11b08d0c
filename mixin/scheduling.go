// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"fmt"
	"strconv"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
)

// ofQueue names a queue of a scheduler, and the devices that are counted.
var ofQueue = []string{queries.Cluster, queries.QueueScheduler, queries.QueueOf, queries.Resource}

// States of the devices of a queue. What is reserved is set aside and not used yet.
const (
	queueQuota    = "quota"
	queueUsed     = "used"
	queueReserved = "reserved"
	queuePending  = "pending"
)

// gpus selects series of accelerators by the label resource, as every scheduler writes it.
func gpus() queries.Selector {
	accelerators, others := resourcenames.Expressions()
	return queries.And(queries.Selector("resource=~"+strconv.Quote(accelerators)), queries.Selector("resource!~"+strconv.Quote(others)))
}

// limited leaves out what stands for no limit: +Inf, -1, and the largest numbers of a type.
func limited(series string) string { return "(" + series + " >= 0 < 1e9)" }

// renamed copies a label that has a value.
func renamed(series, from, to string) string {
	return `label_replace(` + series + `, "` + to + `", "$1", "` + from + `", "(.+)")`
}

// queueRecording is one view of the queues of schedulers. Units, sentinels and filters are
// those of docs/scheduling.md; a queue of an unknown unit is left out.
func queueRecording() (rules []rule) {
	add := func(scheduler, state, series, label string) {
		series = renamed(renamed(series, label, queries.QueueOf), "resource", queries.Resource)
		rules = append(rules, rule{
			Record: queries.QueueDevices, Expr: most(series, queries.Cluster, queries.QueueOf, queries.Resource),
			Labels: map[string]string{queries.QueueScheduler: scheduler, queries.QueueState: state},
		})
	}
	kueue := func(metric string, labels ...string) string {
		own := append([]string{queries.Cluster, "cluster_queue", "resource"}, labels...)
		return sum(most(limited(queries.Of(metric, gpus(), not("replica_role", "follower"))), own...), own[:3]...)
	}
	const cq = "kueue_cluster_queue_"
	add("kueue", queueQuota, kueue(cq+"nominal_quota", "flavor"), "cluster_queue")
	add("kueue", queueUsed, kueue(cq+"resource_usage", "flavor"), "cluster_queue")
	add("kueue", queueReserved, "clamp_min("+kueue(cq+"resource_reservation", "flavor")+" - "+kueue(cq+"resource_usage", "flavor")+", 0)", "cluster_queue")
	add("kueue", queuePending, kueue(cq+"resource_pending"), "cluster_queue")

	volcano := func(what string) string {
		return most(limited(queries.Of("volcano_queue_"+what+"_scalar_resources", gpus())), queries.Cluster, "queue_name", "resource")
	}
	// Of a queue that was emptied the last value may stay: without pod groups it is 0.
	unlessEmpty := func(series, groups string) string {
		empty := sum(`{__name__=~"volcano_queue_pod_group_(?:`+groups+`)_count"}`, queries.Cluster, "queue_name") + " == 0"
		return "(" + series + " unless" + on(queries.Cluster, "queue_name") + "(" + empty + ") or " + series + " * 0) / 1000"
	}
	inqueue := volcano("inqueue")
	add("volcano", queueQuota, volcano("deserved")+" / 1000", "queue_name")
	add("volcano", queueUsed, unlessEmpty(volcano("allocated"), "running"), "queue_name")
	// Whole devices and not thousandths before Volcano 5391: what is no multiple of 1000.
	add("volcano", queueReserved, "("+inqueue+" and "+inqueue+" % 1000 == 0) / 1000 or "+inqueue, "queue_name")
	add("volcano", queuePending, unlessEmpty("clamp_min("+volcano("request")+" - "+volcano("allocated")+", 0)", "pending|inqueue|running|unknown"), "queue_name")

	kai := func(what string) string {
		return renamed(limited("kai_queue_"+what+"_gpus"), "queue_metadata_name", "queue_name")
	}
	add("kai", queueQuota, kai("deserved"), "queue_name")
	add("kai", queueUsed, kai("allocated"), "queue_name")

	koordinator := func(metric string, fields ...string) (series string) {
		for i, field := range fields {
			// A parent's figures contain those of its children.
			of := func(unit queries.Selector) string {
				return most(limited(queries.Of("scheduler_elastic_quota_"+metric, unit, queries.Is("is_parent", "false"), queries.Is("field", field))), queries.Cluster, "name", "resource")
			}
			cores := of(queries.Is("resource", "koordinator.sh/gpu-core"))
			if i > 0 {
				series += " or "
			}
			series += "(" + cores + " / 100 or " + of(gpus()) + " unless" + on(queries.Cluster, "name") + cores + ")"
		}
		return "(" + series + ")"
	}
	add("koordinator", queueQuota, koordinator("spec", "min"), "name")
	add("koordinator", queueUsed, koordinator("status", "used"), "name")
	add("koordinator", queuePending, "clamp_min("+koordinator("status", "child-request", "request")+" - "+koordinator("status", "used")+", 0)", "name")
	return rules
}

// inQueues are the devices of queues in a state.
func inQueues(state string, labels ...string) string {
	return sum(queries.Of(queries.QueueDevices, queries.Is(queries.QueueState, state)), labels...)
}

// Texts that name what the alerts about scheduling are about.
const (
	theQueue    = "{{ with $labels." + queries.Queue + " }} in queue {{ . }}{{ end }}"
	theResource = "{{ $labels." + queries.Resource + " }}"
	causeLabel  = "cause"
)

// freeDevices are those that are free on nodes to which pods may go, by resource. It is
// known without series of each node: what a request of one device finds, and what CPU or
// memory keeps from it.
func freeDevices(alsoClosed bool) string {
	of := []string{queries.Cluster, queries.Resource}
	fits := sum(queries.Of(queries.Fit, queries.Is(queries.RequestSize, "1")), of...)
	reasons := queries.OneOf(queries.StrandedReason, "cpu", "memory")
	if alsoClosed {
		reasons = queries.All
	}
	return "(" + fits + " + (" + sum(queries.Of(queries.Stranded, reasons), of...) + " or " + fits + " * 0))"
}

func schedulingAlerts() []alert {
	waiting := func(reasons ...string) string {
		return sum(queries.Of(queries.PendingDevices, queries.OneOf(queries.PendingReason, reasons...)), queries.Cluster, queries.Resource)
	}
	unserved := func(cause, wanted, free string) string {
		return `label_replace((` + wanted + " <= " + free + ") > 0, \"" + causeLabel + `", "` + cause + `", "", "")`
	}
	allocatable := sum(queries.Of(queries.NodeDevices, queries.Is(queries.NodeDeviceState, "allocatable")), queries.Cluster, queries.Resource, queries.Model)
	return []alert{
		{
			name: "GPUPodsWait", severity: warning,
			expr:    most(queries.Of(queries.PendingAge, queries.Is(queries.PendingReason, "insufficient_gpu")), queries.Cluster, queries.Namespace, queries.Queue) + " > 1800",
			summary: "A pod of {{ $labels." + queries.Namespace + " }}" + theQueue + " has waited for GPUs for {{ $value | humanizeDuration }}.",
			meaning: "The oldest of the pods that no node has enough free GPUs for is older than 30 minutes.",
			check: []string{
				"`gpuctl capacity`, or the console's page Capacity: who waits, since when, and where requests of its size fit.",
				"Dashboard GPU scheduling, row Capacity: whether devices are free. If they are, GPUsFreeButNotUsable names why they do not serve.",
			},
			do: []string{
				"No device is free: more nodes, or end what is idle (GPUIdleHeld, GPUHeldNotUsed).",
				"A request larger than any node has will wait for ever: ask for less on a node, and for more nodes.",
			},
		},
		{
			name: "GPUsFreeButNotUsable", severity: warning, wait: "15m",
			expr: unserved("fragmentation", waiting("insufficient_gpu", "insufficient_cpu", "insufficient_memory"), freeDevices(false)) + " or " +
				unserved("taints", waiting("taint", "affinity"), freeDevices(true)) + " or " +
				unserved("quota", inQueues(queuePending, queries.Cluster, queries.Resource), freeDevices(false)),
			summary: "{{ $value }} " + theResource + " are asked for, as many are free, and they do not serve: {{ $labels." + causeLabel + " }}.",
			meaning: "Pods or queues wait for devices, and at least as many are free. The label `" + causeLabel + "` is `fragmentation` (free devices are spread over nodes, or their nodes have no CPU or memory left), `taints` (their nodes have taints or labels that keep the pods away, or are cordoned), or `quota` (a queue waits by its own rules).",
			check: []string{
				"fragmentation: `gpu_scheduling_fit` by size, `gpu_scheduling_fragmentation_ratio`, and `gpu_scheduling_stranded` by reason; the console's page Capacity names the nodes.",
				"taints: `kubectl describe pod` of one that waits, against taints and labels of the nodes with free devices.",
				"quota: `gpu:queue_devices` of the queue. The devices of other queues are not for it, or its quota is used.",
			},
			do: []string{
				"fragmentation: let the scheduler fill nodes (MostAllocated for GPUs), move small pods, or request CPU and memory in proportion to GPUs.",
				"taints: tolerate them, uncordon the node, or correct the selector.",
				"quota: lend between queues (a cohort), or change the quotas.",
			},
		},
		{
			name: "GPUsStranded", severity: warning, wait: "1h",
			expr:    "(" + sum(queries.Stranded, queries.Cluster, queries.Resource, queries.Model) + " / " + allocatable + ") > 0.1",
			summary: "{{ $value | humanizePercentage }} of {{ with $labels." + queries.Model + " }}{{ . }} ({{ end }}" + theResource + "{{ with $labels." + queries.Model + " }}){{ end }} are free and of no use.",
			meaning: "More than a tenth of the devices is free on nodes that are cordoned, not ready or tainted, or that have no CPU or memory left for the pods that come with a device. It needs series of each node (`nodes` of gpu_scheduling).",
			check: []string{
				"`gpu_scheduling_stranded` by `gpu_stranded_reason`, `gpu_node_devices{gpu_node_device_state=\"stranded\"}` by node.",
				"cpu, memory: which pods without GPUs are on those nodes.",
			},
			do: []string{
				"cordoned, not_ready: repair the node, or uncordon it. tainted: is the taint still meant.",
				"cpu, memory: keep pods without GPUs off these nodes by a taint, or have GPU pods request less.",
			},
		},
		{
			name: "QueueStarved", severity: warning, wait: "30m",
			expr: inQueues(queuePending, ofQueue...) + " > 0 and" + on(ofQueue...) +
				"(" + inQueues(queueUsed, ofQueue...) + " < " + inQueues(queueQuota, ofQueue...) + ")",
			summary: "Queue {{ $labels." + queries.QueueOf + " }} of {{ $labels." + queries.QueueScheduler + " }} waits for {{ $value }} devices while it uses less than its quota.",
			meaning: "Work waits in a queue that has not got what it is entitled to: others hold its share, what waits is larger than the rest of the quota, or there are not enough devices.",
			check: []string{
				"Dashboard GPU scheduling, row Queues: the queue's quota, use and reservations, and who is above its quota.",
				"The scheduler's own events of the first workload (Kueue: `kubectl describe workload`).",
			},
			do: []string{
				"Others are above their quota: allow the scheduler to reclaim (Kueue: preemption.reclaimWithinCohort).",
				"Quotas add up to more than there is: GPUsStranded, lost nodes, or quotas of old hardware.",
			},
		},
		{
			name: "GPUHeldNotUsed", severity: info,
			expr:    fmt.Sprintf("histogram_quantile(0.9, %s) > 900", sum("increase("+queries.FirstUseDuration+"_bucket[1h])", queries.Cluster, queries.Namespace, "le")),
			summary: "Pods of {{ $labels." + queries.Namespace + " }} first use their GPUs {{ $value | humanizeDuration }} after their start.",
			meaning: "One in ten pods of the last hour held its devices for more than 15 minutes before any of them was used. Pods that ended before that are in `gpu_scheduling_never_used_total`.",
			check: []string{
				"What the pods do first: download of a model or data set, a compilation, a queue of their own.",
				"GPUIdleHeld for pods that still do not use theirs.",
			},
			do: []string{"Load data in an init container or a job without GPUs, or from a cache on the node. Nothing is broken."},
		},
	}
}
