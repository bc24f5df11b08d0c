// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// clusterVariable and the others are on several boards; links keep their values.
// Their names are those that the console's link sets.
var (
	clusterVariable = variable{"rack", "Cluster", "k8s.cluster.name; telemetry that names no cluster is in All alone.",
		queries.ServicePods + ", " + queries.Cluster}
	namespaceVariable = variable{"namespace", "Namespace", "Namespace of the pods.",
		queries.Of(queries.ServicePods, inCluster) + ", " + queries.Namespace}
	inCluster   = chosen(queries.Cluster, "rack")
	inNamespace = queries.And(inCluster, chosen(queries.Namespace, "namespace"))
)

// aService is what the variables of this board choose. app and service are both
// names of a service: a link sets either, or both.
var aService = queries.And(inNamespace, chosen(queries.Service, "app"), chosen(queries.Service, "service"))

func serviceBoard() board {
	return board{
		uid: queries.ServiceDashboard, title: "GPU service",
		description: "One service, or several: what its GPUs do, averaged over its pods, and how many pods are in the average.",
		variables: []variable{
			clusterVariable, namespaceVariable,
			{"app", "App", "A service, for links that call it an app. What is chosen here bounds the next.",
				queries.Of(queries.ServicePods, inNamespace) + ", " + queries.Service},
			{"service", "Service", "service.name of the pods.",
				queries.Of(queries.ServicePods, inNamespace, chosen(queries.Service, "app")) + ", " + queries.Service},
		},
		rows: []row{
			{"Now, averaged over pods", serviceNow()},
			{"Over time, a line a service", serviceOverTime()},
			{"Pods", servicePods()},
			{"Devices", serviceDevices()},
		},
	}
}

// card is one figure of services, as they were evaluated last.
func card(title, description, unit, metric string, more ...queries.Selector) panel {
	return panel{
		kind: number, title: title, description: description, unit: unit, width: 4, height: 4,
		queries: []query{{expr: most(last(queries.Of(metric, queries.And(append(more, aService)...))), service...), legend: ofService}},
	}
}

// activity is a card of what not every vendor measures.
func activity(title, description, unit, metric string, more ...queries.Selector) panel {
	p := card(title, description+" NVIDIA alone measures it by default.", unit, metric, more...)
	p.queries[0].expr = unmeasured(p.queries[0].expr, aService, service...)
	p.unmeasured = true
	return p
}

func pipe(name string) queries.Selector { return queries.Is(queries.Pipe, name) }

func serviceNow() []panel {
	partial := card("State", "Partial: more than a quarter of the settled pods are missing. The averages leave them out.", units.Number, queries.ServicePartial)
	partial.words = map[string]word{"0": {"complete", green}, "1": {"partial", red}}
	partial.alarm = 1
	age := card("Age of the data", "Age of the oldest point that went into the averages.", units.Seconds, queries.ServiceDataAge)
	age.warn, age.alarm = 60, 90
	idle := card("Idle but held", "Devices that a settled pod holds and that have done nothing for long.", units.Short, queries.ServiceIdle)
	idle.warn = 1
	return []panel{
		card("GPU utilization", "Mean over pods of the time that their GPUs were busy.", units.PercentUnit, queries.ServiceUtilization),
		card("Memory used", "Mean over pods; a pod's is the sum over its GPUs.", units.BytesIEC, queries.ServicePodMemory),
		card("Memory total", "Mean over pods of the memory that they hold.", units.BytesIEC, queries.ServicePodLimit),
		activity("Tensor activity", "Mean over pods of the cycles in which the tensor pipe was active.", units.PercentUnit, queries.ServicePipe, pipe("tensor")),
		activity("SM activity", "Mean over pods of the time with a warp on an SM.", units.PercentUnit, queries.ServiceSM),
		activity("DRAM activity", "Mean over pods of the cycles in which the memory interface moved data.", units.PercentUnit, queries.ServiceDRAM),
		activity("FP16 activity", "Mean over pods of the cycles in which the FP16 pipe was active.", units.PercentUnit, queries.ServicePipe, pipe("fp16")),
		activity("FP32 activity", "Mean over pods of the cycles in which the FP32 pipe was active.", units.PercentUnit, queries.ServicePipe, pipe("fp32")),
		card("Power", "Mean over pods; a pod's is the sum over its GPUs. A MIG instance has none.", units.Watt, queries.ServicePodPower),
		partial, age, idle,
	}
}

// line is a figure of services over time.
func line(title, description, unit, metric string, more ...queries.Selector) panel {
	return panel{
		kind: chart, title: title, description: description, unit: unit, width: 12, height: 9,
		queries: []query{{expr: most(mean(queries.Of(metric, queries.And(append(more, aService)...))), service...), legend: ofService}},
	}
}

func serviceOverTime() []panel {
	utilization := line("GPU utilization", "Mean over the pods that report. Missing pods are left out, not counted as 0.", units.PercentUnit, queries.ServiceUtilization)
	tensor := line("Tensor activity", "Mean over the pods that report it.", units.PercentUnit, queries.ServicePipe, pipe("tensor"))
	tensor.queries[0].expr = unmeasured(tensor.queries[0].expr, aService, service...)
	tensor.queries[0].legend += " " + name(note)
	memory := line("Memory", "Of the whole service: in use, and held.", units.BytesIEC, queries.ServiceMemory)
	memory.queries[0].legend += " used"
	memory.queries = append(memory.queries, query{
		expr: most(mean(queries.Of(queries.ServiceLimit, aService)), service...), legend: ofService + " held",
	})
	power := line("Power", "Of all boards of the service.", units.Watt, queries.ServicePower)
	spread := panel{
		kind: chart, title: "Utilization, least and most busy pod", unit: units.PercentUnit, width: 12, height: 9, max: 1,
		description: "A straggler hides in a mean: when the lowest pod falls away from the highest, look at the pods below.",
		queries: []query{
			{expr: least(mean(queries.Of(queries.ServiceUtilizationMin, aService)), service...), legend: ofService + " least"},
			{expr: most(mean(queries.Of(queries.ServiceUtilizationMax, aService)), service...), legend: ofService + " most"},
		},
	}
	pods := panel{
		kind: chart, title: "Pods by state", unit: units.Short, width: 12, height: 9, stacked: true,
		description: "Reporting and degraded pods are in the averages. Missing ones should be and are not; warming and not running ones are not expected to.",
		queries:     []query{{expr: sum(last(queries.Of(queries.ServicePods, aService)), append(service[:len(service):len(service)], queries.StateOfPod)...), legend: ofService + " {{" + queries.StateOfPod + "}}"}},
	}
	utilization.max, tensor.max = 1, 1
	return []panel{utilization, memory, tensor, power, spread, pods}
}

func servicePods() []panel {
	ofPods := queries.And(aService, set(queries.Pod))
	// First each device once, then the pod's devices.
	perDevice := func(series string) string { return most(mean(series), queries.Pod, queries.Device) }
	ofPod := name(queries.Pod)
	return []panel{
		{
			kind: chart, title: "GPU utilization of pods", unit: units.PercentUnit, width: 12, height: 9, max: 1,
			description: "Mean over each pod's devices.",
			queries:     []query{{expr: avg(perDevice(queries.General(ofPods)), queries.Pod), legend: ofPod}},
		},
		{
			kind: chart, title: "Memory of pods", unit: units.BytesIEC, width: 12, height: 9,
			description: "Sum over each pod's devices.",
			queries:     []query{{expr: sum(perDevice(queries.Of(queries.MemoryUsage, ofPods)), queries.Pod), legend: ofPod}},
		},
		{
			kind: chart, title: "Power of pods", unit: units.Watt, width: 12, height: 9,
			description: "Sum over each pod's boards. MIG instances and replicas of a shared GPU have none.",
			queries:     []query{{expr: sum(perDevice(queries.Of(queries.Power, ofPods)), queries.Pod), legend: ofPod}},
		},
		{
			kind: states, title: "State of pods", unit: units.Number, width: 12, height: 9,
			description: "What each pod was found to be at each evaluation.",
			// One bar a pod: each state has a number of its own.
			queries: []query{{expr: most(podStates(ofPods), queries.Pod), legend: ofPod}},
			words: map[string]word{
				"1": {"reporting", green}, "2": {"degraded", amber}, "3": {"missing", red}, "4": {"warming", blue}, "5": {"not running", grey},
			},
		},
	}
}

// podStates numbers the state that a pod is in.
func podStates(s queries.Selector) string {
	expr := ""
	for i, state := range []string{"reporting", "degraded", "missing", "warming", "not_running"} {
		if i > 0 {
			expr += " or "
		}
		expr += "(" + last(queries.Of(queries.PodState, queries.Is(queries.StateOfPod, state), s)) + " == 1) * " + string(rune('1'+i))
	}
	return expr
}

func serviceDevices() []panel {
	return []panel{
		{
			kind: chart, title: "Devices held", unit: units.Short, width: 12, height: 9,
			description: "Devices of settled pods, with and without fresh data, and those that are idle. A MIG instance is a device.",
			queries: []query{
				{expr: sum(last(queries.Of(queries.ServiceDevices, aService)), append(service[:len(service):len(service)], queries.StateOfDevice)...), legend: ofService + " {{" + queries.StateOfDevice + "}}"},
				{expr: sum(last(queries.Of(queries.ServiceIdle, aService)), service...), legend: ofService + " idle"},
			},
		},
		{
			kind: chart, title: "Thermal throttling", unit: units.PercentUnit, width: 12, height: 9, max: 1,
			description: "Share of the time in which a device of the service was slowed down to protect itself: look here when latency rises.",
			queries: []query{{
				expr:   most(mean(queries.Of(queries.Throttle, protecting, aService)), append(device, queries.Service)...),
				legend: name(queries.Service) + " " + ofDevice,
			}},
		},
	}
}

// protecting are the throttle reasons with which the hardware protects itself; a
// power cap is a configured limit.
var protecting = matching(queries.Reason, "hw_thermal|sw_thermal|hw_power_brake|prochot|vr_thermal|memory_thermal")
