// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"strconv"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/units"

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
	buckets := []string{queries.Cluster, queries.Namespace, "le"}
	firstUses := counter{series: sum(queries.FirstUseDuration+"_bucket", buckets...), key: buckets, reports: most(queries.SummaryWarmup, queries.Cluster), subject: buckets[:1]}
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
			expr:    "histogram_quantile(0.9, " + firstUses.rise(time.Hour) + ") > 900",
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
