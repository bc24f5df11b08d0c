// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

func schedulingBoard() board {
	now := func(title, description, series string, warn float64) panel {
		return figure(title, description, units.Short, sum(last(series))+" or vector(0) and on() "+count(last(queries.Of(queries.Fit, inCluster))), warn, 0)
	}
	ofNodes := func(state string) string {
		return queries.Of(queries.NodeDevices, inCluster, queries.Is(queries.NodeDeviceState, state))
	}
	waiting := queries.Of(queries.PendingDevices, inNamespace)
	return board{
		uid: "otelcol-gpu-scheduling", title: "GPU scheduling",
		description: "What the cluster has to give, what of it is of no use and why, and who waits for it since when. " +
			"Queues, and the scheduler's own figures, are those of the schedulers that config/scheduler.yaml reads.",
		variables: []variable{clusterVariable, namespaceVariable},
		rows: []row{
			{"Now", []panel{
				now("Allocatable", "Devices of all nodes that pods may have.", ofNodes("allocatable"), 0),
				now("Requested", "By pods that have a node.", ofNodes("requested"), 0),
				now("Free", "On all nodes, those that take no pods included.", ofNodes("free"), 0),
				now("Stranded", "Free, and of no use now: see Capacity.", ofNodes("stranded"), 1),
				now("Asked for", "Devices of the pods that wait for a node.", waiting, 1),
				figure("Longest wait", "Age of the oldest of those pods; absent where none waits.", units.Seconds, most(last(queries.Of(queries.PendingAge, inNamespace))), 1800, 0),
			}},
			{"Capacity", schedulingCapacity()},
			{"Who waits", schedulingWaiters()},
			{"Queues of schedulers", schedulingQueues()},
			{"From creation to use", schedulingTimes()},
			{"Schedulers themselves", schedulingSchedulers()},
		},
	}
}

func schedulingCapacity() []panel {
	of := []string{queries.Cluster, queries.Resource, queries.Model}
	byModel := func(series string, more ...string) query {
		return query{expr: sum(last(series), append(of[:3:3], more...)...), legend: name(append(of[1:3:3], more...)...)}
	}
	free := func(state string) query {
		q := byModel(queries.Of(queries.NodeDevices, inCluster, queries.Is(queries.NodeDeviceState, state)))
		q.legend += " " + state
		return q
	}
	return []panel{
		lines("Free and stranded devices", "Of each resource and model. Stranded ones are free too.", units.Short, free("free"), free("stranded")),
		lines("Stranded, by reason", "The first that applies: the node is cordoned, not ready or tainted, or has no CPU or memory left for what usually comes with a device.", units.Short,
			byModel(queries.Of(queries.Stranded, inCluster), queries.StrandedReason)),
		lines("Requests that fit", "How many requests of so many devices on one node find a place now.", units.Short,
			byModel(queries.Of(queries.Fit, inCluster), queries.RequestSize)),
		withMax(lines("Fragmentation", "Share of the free devices that requests of that size cannot use; expected: as pods asked of late. Absent where no device is free.", units.PercentUnit,
			query{expr: most(last(queries.Of(queries.Fragmentation, inCluster)), append(of[:3:3], queries.RequestSize)...), legend: name(queries.Resource, queries.Model, queries.RequestSize)})),
	}
}

func schedulingWaiters() []panel {
	by := func(metric string, labels ...string) query {
		return query{expr: sum(last(queries.Of(metric, inNamespace)), append([]string{queries.Cluster}, labels...)...), legend: name(labels...)}
	}
	age := query{
		expr:   most(last(queries.Of(queries.PendingAge, inNamespace)), queries.Cluster, queries.Namespace, queries.Queue, queries.PendingReason),
		legend: name(queries.Namespace, queries.Queue, queries.PendingReason),
	}
	wait := lines("Oldest waiter", "Since the creation of the pod that waits for longest.", units.Seconds, age)
	wait.warn = 1800
	return []panel{
		lines("Devices asked for, by reason", "Of pods that wait for a node. Jobs that a queue suspends have no pods yet: see Queues.", units.Short, by(queries.PendingDevices, queries.PendingReason, queries.Resource)),
		lines("Devices asked for, by queue", "By namespace and the queue that the pods name.", units.Short, by(queries.PendingDevices, queries.Namespace, queries.Queue)),
		wait,
		lines("Pods that wait", "By namespace and reason.", units.Short, by(queries.PendingPods, queries.Namespace, queries.PendingReason)),
	}
}

func schedulingQueues() []panel {
	in := func(state string) string {
		return most(last(queries.Of(queries.QueueDevices, inCluster, queries.Is(queries.QueueState, state))), ofQueue...)
	}
	legend := name(queries.QueueScheduler, queries.QueueOf, queries.Resource)
	return []panel{
		{kind: grid, title: "Queues", unit: units.Short, width: 24, height: 9,
			description: "Devices of each queue as its scheduler counts them. Reserved: set aside and not used yet. Waiting pods of Volcano and Koordinator, and gated ones of Kueue, are in Who waits as well: never add the two. Reads a recorded series.",
			queries: []query{
				{expr: in(queueQuota), column: "Quota"}, {expr: in(queueUsed), column: "Used"}, {expr: in(queueReserved), column: "Reserved"}, {expr: in(queuePending), column: "Waiting"},
			}},
		lines("Use of quotas", "Devices used, and the quota. Reads a recorded series.", units.Short,
			query{expr: in(queueUsed), legend: legend + " used"}, query{expr: in(queueQuota), legend: legend + " quota"}),
		lines("Waiting in queues", "Devices that the queue's work asks for and has not got. Reads a recorded series.", units.Short, query{expr: in(queuePending), legend: legend}),
	}
}

// quantileOf is a quantile of a histogram within what a chart shows at a moment.
func quantileOf(q float64, histogram string, s queries.Selector, labels ...string) string {
	return "histogram_quantile(" + strconv.FormatFloat(q, 'g', -1, 64) + ", " + sum(rate(queries.Of(histogram+"_bucket", s)), append(labels, "le")...) + ")"
}

func schedulingTimes() []panel {
	times := func(title, description, histogram string) panel {
		of := []string{queries.Cluster, queries.Namespace}
		return lines(title, description, units.Seconds,
			query{expr: quantileOf(0.5, histogram, inNamespace, of...), legend: name(queries.Namespace) + " p50"},
			query{expr: quantileOf(0.95, histogram, inNamespace, of...), legend: name(queries.Namespace) + " p95"})
	}
	return []panel{
		times("Created to scheduled", "Of pods that got a node: those that still wait are in Oldest waiter.", queries.ScheduleDuration),
		times("Scheduled to running", "Images, volumes and init containers.", queries.StartDuration),
		times("Running to first use", "Until the first point with utilization of one of the pod's devices.", queries.FirstUseDuration),
		lines("Never used", "Pods that ended before any of their devices was used, within an hour.", units.Short,
			query{expr: sum("increase("+queries.Of(queries.NeverUsed, inNamespace)+"[1h])", queries.Cluster, queries.Namespace), legend: name(queries.Namespace)}),
	}
}

func schedulingSchedulers() []panel {
	// Of one scheduler, whichever replica leads.
	const attempts, sli, admission = "scheduler_scheduling_attempt_duration_seconds", "scheduler_pod_scheduling_sli_duration_seconds", "kueue_admission_wait_time_seconds"
	return []panel{
		{kind: states, title: "Pages", unit: units.Short, width: 12, height: 9, description: "Whether the page of each scheduler is read.",
			words:   map[string]word{"0": {"not read", red}, "1": {"read", green}},
			queries: []query{{expr: least(last(queries.Of(queries.SchedulerUp, inCluster)), queries.Cluster, queries.SchedulerName, queries.Address, queries.Port), legend: name(queries.SchedulerName, queries.Address)}}},
		lines("kube-scheduler: pods in its queues", "Of all pods, with and without GPUs. active: next to be tried; backoff: after a failure; unschedulable; gated.", units.Short,
			query{expr: sum(last(queries.Of("scheduler_pending_pods", inCluster)), queries.Cluster, "queue"), legend: name("queue")}),
		lines("kube-scheduler: latency", "One attempt, and a pod from its first place in the queue to its node. Pods that still wait are in neither, nor is the time in which a pod was gated.", units.Seconds,
			query{expr: quantileOf(0.99, attempts, inCluster, queries.Cluster), legend: "attempt p99"},
			query{expr: quantileOf(0.95, sli, inCluster, queries.Cluster), legend: "pod p95"}),
		lines("Kueue: wait for admission", "From the creation of a workload, or its return to the queue, until it was admitted.", units.Seconds,
			query{expr: quantileOf(0.5, admission, inCluster, queries.Cluster, "cluster_queue"), legend: name("cluster_queue") + " p50"},
			query{expr: quantileOf(0.95, admission, inCluster, queries.Cluster, "cluster_queue"), legend: name("cluster_queue") + " p95"}),
	}
}
