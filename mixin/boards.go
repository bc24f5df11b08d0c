// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin // import "github.com/otelcol-gpu/otelcol-gpu/mixin"

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

func dashboards() []board {
	return []board{fleetBoard(), serviceBoard(), nodeBoard(), healthBoard(), collectorBoard(), inferenceBoard(), costBoard(), schedulingBoard(), trainingBoard(), collectivesBoard()}
}

// stat is one number now; half a row of six.
func figure(title, description, unit, expr string, warn, alarm float64) panel {
	return panel{
		kind: number, title: title, description: description, unit: unit, width: 4, height: 4,
		queries: []query{{expr: expr, legend: title}}, warn: warn, alarm: alarm,
	}
}

// lines is one expression over time; half a row.
func lines(title, description, unit string, of ...query) panel {
	return panel{kind: chart, title: title, description: description, unit: unit, width: 12, height: 9, queries: of}
}

func fleetBoard() board {
	inFleet := inNamespace
	now := func(metric string, s ...queries.Selector) string {
		return sum(last(queries.Of(metric, append(s, inFleet)...)))
	}
	onBoards := func(metric string) string {
		return sum(most(last(queries.Of(metric, inCluster, physical)), queries.Cluster, queries.Device))
	}
	perService := func(metric string, s ...queries.Selector) string {
		return sum(last(queries.Of(metric, append(s, inFleet)...)), service...)
	}
	services := panel{
		kind: grid, title: "Services", unit: units.Short, width: 24, height: 12, toService: true,
		description: "Every service with GPUs. Averages are over pods and leave missing ones out; the name leads to the service.",
		queries: []query{
			{expr: perService(queries.ServicePartial), column: "Partial"},
			{expr: perService(queries.ServicePods, inState("missing")), column: "Pods missing"},
			{expr: perService(queries.ServicePods, inState("reporting", "degraded")), column: "Pods in the mean"},
			{expr: perService(queries.ServiceUtilization), column: "Utilization", unit: units.PercentUnit},
			{expr: perService(queries.ServiceMemory), column: "Memory used", unit: units.BytesIEC},
			{expr: perService(queries.ServiceLimit), column: "Memory held", unit: units.BytesIEC},
			{expr: perService(queries.ServicePower), column: "Power", unit: units.Watt},
			{expr: perService(queries.ServiceDevices), column: "Devices"},
			{expr: perService(queries.ServiceIdle), column: "Idle"},
		},
	}
	hours := panel{
		kind: grid, title: "GPU-hours", unit: units.Short, width: 12, height: 9, toService: true,
		description: "Within the time on display: held, and thereof used (held times utilization). A MIG instance counts as a device, a replica of a shared GPU as its share.",
		queries: []query{
			{expr: "sum_over_time(" + queries.Of(recordHeld, inFleet) + "[$__range]) / 60", column: "GPU-hours held"},
			{expr: "sum_over_time(" + queries.Of(recordUsed, inFleet) + "[$__range]) / 60", column: "GPU-hours used"},
		},
	}
	return board{
		uid: "otelcol-gpu-fleet", title: "GPU fleet",
		description: "All clusters: what the GPUs do, who holds them, and which services need attention.",
		variables:   []variable{clusterVariable, namespaceVariable},
		rows: []row{
			{"Now", []panel{
				figure("GPUs", "Physical devices that report, or are suspended.", units.Short, count(most(queries.There(lately, inCluster, physical), queries.Cluster, queries.Device)), 0, 0),
				figure("Utilization", "Mean over physical devices, free ones included. A board in MIG mode has none.", units.PercentUnit,
					avg(most(last(queries.General(inCluster, physical)), queries.Cluster, queries.Device)), 0, 0),
				figure("Memory used", "On all physical devices.", units.BytesIEC, onBoards(queries.MemoryUsage), 0, 0),
				figure("Power", "Drawn by all boards together.", units.Watt, onBoards(queries.Power), 0, 0),
				figure("Held", "Devices of settled pods. A MIG instance is a device.", units.Short, now(queries.ServiceDevices), 0, 0),
				figure("Idle but held", "Of those, devices that have done nothing for long.", units.Short, now(queries.ServiceIdle), 1, 0),
				figure("Services", "Services that have GPU pods.", units.Short, count(last(queries.Of(queries.ServicePartial, inFleet))), 0, 0),
				figure("Partial services", "More than a quarter of their settled pods are missing.", units.Short, now(queries.ServicePartial), 0, 1),
				figure("Pods missing", "Settled pods without fresh telemetry.", units.Short, now(queries.ServicePods, inState("missing")), 1, 0),
				figure("Pods pending", "GPU pods that no node has accepted.", units.Short, now(queries.ServicePending), 1, 0),
				figure("Exporters down", "Exporters that cannot be scraped.", units.Short, "count("+last(queries.Of(queries.ExporterUp, inCluster))+") - sum("+last(queries.Of(queries.ExporterUp, inCluster))+")", 0, 1),
				figure("Oldest data", "Age of the oldest point in any average.", units.Seconds, most(last(queries.Of(queries.ServiceDataAge, inFleet))), 60, 90),
			}},
			{"Services", []panel{services}},
			{"Over time", []panel{
				withMax(lines("Utilization", "Mean over the physical devices of a cluster.", units.PercentUnit,
					query{expr: avg(most(mean(queries.General(inCluster, physical)), queries.Cluster, queries.Device), queries.Cluster), legend: "mean " + name(queries.Cluster)})),
				lines("Memory", "On the physical devices of a cluster: in use, and there.", units.BytesIEC,
					query{expr: sum(most(mean(queries.Of(queries.MemoryUsage, inCluster, physical)), queries.Cluster, queries.Device), queries.Cluster), legend: "used " + name(queries.Cluster)},
					query{expr: sum(most(mean(queries.Of(queries.MemoryLimit, inCluster, physical)), queries.Cluster, queries.Device), queries.Cluster), legend: "there " + name(queries.Cluster)}),
				lines("Devices held", "By services, with and without fresh data, and those that are idle.", units.Short,
					query{expr: sum(last(queries.Of(queries.ServiceDevices, inFleet)), queries.StateOfDevice), legend: name(queries.StateOfDevice)},
					query{expr: sum(last(queries.Of(queries.ServiceIdle, inFleet))), legend: "idle"}),
				lines("Power", "Of all boards, by model.", units.Watt,
					query{expr: sum(most(mean(queries.Of(queries.Power, inCluster, physical)), queries.Cluster, queries.Device, queries.Model), queries.Model), legend: name(queries.Model)}),
			}},
			{"Usage", []panel{
				hours,
				lines("GPU-hours an hour", "Devices held by each namespace, and used.", units.Short,
					query{expr: sum(queries.Of(recordHeld, inFleet), queries.Namespace, queries.Account), legend: ofNamespace + " held"},
					query{expr: sum(queries.Of(recordUsed, inFleet), queries.Namespace, queries.Account), legend: ofNamespace + " used"}),
			}},
		},
	}
}

func withMax(p panel) panel { p.max = 1; return p }

// aDeviceOf is what the variables of the boards of nodes and devices choose.
var (
	nodeVariable = variable{"node", "Node", "k8s.node.name; outside Kubernetes there is a host instead.",
		queries.ThereOrNot(inCluster) + ", " + queries.Node}
	hostVariable = variable{"host", "Host", "host.name; on Kubernetes there is a node instead.",
		queries.ThereOrNot(inCluster) + ", " + queries.Host}
	onNode = queries.And(inCluster, chosen(queries.Node, "node"), chosen(queries.Host, "host"))
)

func nodeBoard() board {
	chosenDevice := queries.And(onNode, chosen(queries.Device, "gpu"))
	each := func(metric string, labels ...string) string {
		return most(mean(queries.Of(metric, chosenDevice)), append(device[:len(device):len(device)], labels...)...)
	}
	one := func(title, description, unit, metric string, labels ...string) panel {
		legend := ofDevice
		if len(labels) > 0 {
			legend += " " + name(labels...)
		}
		return lines(title, description, unit, query{expr: each(metric, labels...), legend: legend})
	}
	activity := func(title, description, metric string, labels ...string) panel {
		p := withMax(one(title, description, units.PercentUnit, metric, labels...))
		p.queries[0].expr = unmeasured(p.queries[0].expr, chosenDevice, device...)
		p.queries[0].legend += " " + name(note)
		return p
	}
	limit := query{expr: most(last(queries.Of(queries.PowerLimit, chosenDevice, queries.Is(queries.LimitKind, "enforced"))), device...), legend: ofDevice + " limit"}
	power := one("Power", "Drawn by the board, and what it may draw.", units.Watt, queries.Power)
	power.queries = append(power.queries, limit)
	heat := one("Temperature", "By sensor: Memory runs hotter than the chip.", units.Celsius, queries.Temperature, queries.Sensor)
	heat.warn, heat.alarm = 85, 90
	who := panel{
		kind: grid, title: "Devices", unit: units.Short, width: 24, height: 10, toService: true,
		description: "Every device and who holds it.",
		queries: []query{
			{expr: most(last(queries.General(chosenDevice)), append(device[:len(device):len(device)], queries.Model, queries.MIGProfile, queries.PartitionMode, queries.Namespace, queries.Pod, queries.Service)...), column: "Utilization", unit: units.PercentUnit},
			{expr: most(last(queries.Of(queries.MemoryUtilization, chosenDevice)), append(device[:len(device):len(device)], queries.Model, queries.MIGProfile, queries.PartitionMode, queries.Namespace, queries.Pod, queries.Service)...), column: "Memory", unit: units.PercentUnit},
		},
	}
	return board{
		uid: "otelcol-gpu-node", title: "GPU node and device",
		description: "Nodes and their devices, down to one GPU, MIG instance, partition or tile.",
		variables: []variable{
			clusterVariable, nodeVariable, hostVariable,
			{"gpu", "GPU", "hw.id; of a MIG instance, partition or tile that of its board, and /number.", queries.ThereOrNot(onNode) + ", " + queries.Device},
		},
		rows: []row{
			{"Now", []panel{who}},
			{"Load", []panel{
				withMax(lines("Utilization", "Time in which the device was busy.", units.PercentUnit,
					query{expr: most(mean(queries.General(chosenDevice)), device...), legend: ofDevice})),
				withMax(one("Memory", "Share that is in use.", units.PercentUnit, queries.MemoryUtilization)),
				activity("SM activity", "Time with a warp on an SM.", queries.SMActive),
				activity("Pipes", "Cycles in which a pipe was active.", queries.PipeActive, queries.Pipe),
				activity("DRAM activity", "Cycles in which the memory interface moved data.", queries.DRAMActive),
				one("Memory used", "In bytes; of a board with MIG instances their sum.", units.BytesIEC, queries.MemoryUsage),
			}},
			{"Board", []panel{
				power, heat,
				one("Clocks", "Clock frequency by domain.", units.Hertz, queries.Clock, queries.ClockDomain),
				withMax(one("Throttling", "Share of the time in which a reason held the clocks down. A power cap is normal under load.", units.PercentUnit, queries.Throttle, queries.Reason)),
				lines("Power from energy", "The rise of the energy counter: what was drawn between two scrapes, peaks included.", units.Watt,
					query{expr: most(rate(queries.Of(queries.Energy, chosenDevice)), device...), legend: ofDevice}),
			}},
			{"Links", []panel{
				one("PCIe", "Traffic as the GPU sees it.", units.BytesPerSecondIEC, queries.PCIeThroughput, queries.Direction),
				one("NVLink", "Traffic as the GPU sees it.", units.BytesPerSecondIEC, queries.NVLinkThroughput, queries.Direction),
			}},
		},
	}
}

func healthBoard() board {
	byDevice := func(metric string, labels ...string) string {
		return most(last(queries.Of(metric, onNode)), append(device[:len(device):len(device)], labels...)...)
	}
	lost := count(queries.There("$__range", onNode, physical), aDevice...) +
		" unless" + on(queries.Cluster, queries.Device) + queries.There(lately, onNode, physical)
	flag := func(title, description, metric string) panel {
		return figure(title, description, units.Short, sum(most(last(queries.Of(metric, onNode)), queries.Cluster, queries.Device)), 0, 1)
	}
	return board{
		uid: "otelcol-gpu-health", title: "GPU health",
		description: "What is wrong with devices, or will be: XID, memory errors, throttling, lost devices, links, exporters.",
		variables:   []variable{clusterVariable, nodeVariable, hostVariable},
		rows: []row{
			{"Now", []panel{
				figure("XID errors", "Counted within the time on display. A first one on a device counts from its second scrape on.", units.Short,
					"sum("+rise(queries.Of(recordXID, onNode))+") or vector(0)", 0, 1),
				figure("Uncorrected errors", "Memory errors that lost data, within the time on display.", units.Short,
					sum(rise(queries.Of(recordErrors, onNode, queries.Is(queries.ErrorType, "uncorrected")))), 0, 1),
				flag("Failed row remaps", "Devices with a memory row that could not be replaced.", queries.RowRemapFailure),
				figure("Lost devices", "Seen within the time range of the dashboard, and not now.", units.Short, count("("+lost+")")+" or vector(0)", 0, 1),
				figure("Throttled", "Devices that slow down to protect themselves.", units.Short,
					sum(most(last(queries.Of(queries.Throttle, protecting, onNode)), queries.Cluster, queries.Device)), 1, 0),
				figure("Hottest chip", "The highest of all devices.", units.Celsius, most(last(queries.Of(queries.Temperature, onNode, not(queries.Sensor, "memory")))), 85, 90),
			}},
			{"State", statePanels()},
			{"XID", []panel{
				{
					kind: grid, title: "Last XID of devices", unit: units.Number, width: 12, height: 9,
					description: "The code that a device reported last; 0 is none. The event gpu.xid has its meaning and what to do.",
					queries:     []query{{expr: byDevice(queries.XIDLast, queries.Model) + " > 0", column: "Last XID"}},
				},
				lines("XID errors", "Counted by device and code, since the collector first saw the device or as the exporter counts.", units.Short,
					query{expr: last(queries.Of(recordXID, onNode)), legend: "{{" + queries.Node + "}}{{" + queries.Host + "}} GPU {{" + queries.Index + "}} XID {{" + queries.XIDCode + "}}"}),
				lines("XIDs an hour", "How often a device reported XIDs within an hour, where the exporter counts them. Where it reports the last code alone, repeats cannot be seen, and there is no line.", units.Short,
					query{expr: last(queries.Of(recordXIDRate, onNode)), legend: "{{" + queries.Node + "}}{{" + queries.Host + "}} GPU {{" + queries.Index + "}}"}),
			}},
			{"Memory", []panel{
				lines("ECC errors", "Corrected ones were repaired, uncorrected ones lost data; since the driver was loaded.", units.Short,
					query{expr: last(queries.Of(recordErrors, onNode)) + " > 0", legend: "{{" + queries.Node + "}}{{" + queries.Host + "}} GPU {{" + queries.Index + "}} " + name(queries.ErrorType)}),
				lines("Remapped rows", "Memory rows that were replaced by spare ones.", units.Short,
					query{expr: byDevice(queries.RemappedRows, queries.ErrorType), legend: ofDevice + " " + name(queries.ErrorType)}),
			}},
			{"Heat and clocks", []panel{
				withMax(lines("Throttling to protect itself", "Share of the time; thermal, or the power brake.", units.PercentUnit,
					query{expr: most(mean(queries.Of(queries.Throttle, protecting, onNode)), append(device[:len(device):len(device)], queries.Reason)...), legend: ofDevice + " " + name(queries.Reason)})),
				withMax(lines("Time throttled, as the device counts it", "Finer than the flag, which is looked at once a scrape.", units.PercentUnit,
					query{expr: most(rate(queries.Of(queries.ThrottleDuration, onNode)), append(device[:len(device):len(device)], queries.Reason)...), legend: ofDevice + " " + name(queries.Reason)})),
				lines("Temperature", "The hottest sensor of each kind.", units.Celsius,
					query{expr: most(mean(queries.Of(queries.Temperature, onNode)), queries.Node, queries.Host, queries.Sensor), legend: "{{" + queries.Node + "}}{{" + queries.Host + "}} " + name(queries.Sensor)}),
				lines("PCIe replays", "Packets sent again, a second.", units.CountsPerSecond,
					query{expr: most(rate(queries.Of(queries.PCIeReplays, onNode)), device...), legend: ofDevice}),
			}},
			{"Devices and exporters", []panel{
				{
					kind: grid, title: "Lost devices", unit: units.Short, width: 12, height: 9,
					description: "Seen within the time range of the dashboard, and not now. Empty is good.",
					queries:     []query{{expr: lost, column: "Was there"}},
				},
				{
					kind: states, title: "Exporters", unit: units.Number, width: 12, height: 9,
					description: "Whether the exporter of each node answers.",
					queries: []query{{expr: least(last(queries.Of(queries.ExporterUp, inCluster)), queries.Node, queries.Address, queries.Port),
						legend: "{{" + queries.Node + "}} " + name(queries.Address) + ":{{" + queries.Port + "}}"}},
					words: map[string]word{"1": {"up", green}, "0": {"down", red}},
				},
			}},
		},
	}
}

// statePanels are the states of boards, why they are not well, and what to do.
func statePanels() []panel {
	board := []string{queries.Cluster, queries.Device}
	in := func(s health.State) string {
		return sum(most(last(queries.Of(queries.BoardStatus, ofGPU, onNode, queries.Is(queries.HwState, s.String()))), board...))
	}
	seen := most(last(queries.Reports(onNode, physical)), board...)
	unknown := count("("+seen+" unless"+on(board...)+last(queries.Of(queries.BoardStatus, ofGPU))+")") + " or vector(0)"
	attention := most(last(queries.Of(queries.BoardReason, onNode)), append(device[:len(device):len(device)], queries.Model, queries.HwState, queries.HealthReason, queries.HealthAction)...)
	return []panel{
		figure("Failed", "Boards that cannot be relied on before the action is done.", units.Short, in(health.Failed), 0, 1),
		figure("Predicted to fail", "Boards that work, and will not for long.", units.Short, in(health.PredictedFailure), 1, 0),
		figure("Degraded", "Boards that work, but slower, or that need a reset when they are free.", units.Short, in(health.Degraded), 1, 0),
		figure("Ok", "Boards without a reason against them.", units.Short, in(health.OK), 0, 0),
		figure("Unknown", "Boards that report, and of which nothing that decides about their health is read.", units.Short, unknown, 1, 0),
		figure("Least coverage", "Reasons that were judged with fresh inputs, of those that fit the board: the board with the fewest.", units.PercentUnit,
			least(last(queries.Of(queries.BoardCoverage, onNode))), 0, 0),
		{
			kind: grid, title: "Boards that need attention", unit: units.Short, width: 24, height: 10,
			description: "Every reason that is active against a board, and what to do. Each reason has a runbook: docs/runbooks.",
			queries:     []query{{expr: attention + " == 1", column: "Active"}},
		},
		{
			kind: chart, title: "Boards by state", unit: units.Short, width: 12, height: 9, stacked: true,
			description: "Of all clusters that are chosen, whatever the node. Unknown boards are in none of the states.",
			queries:     []query{{expr: sum(last(queries.Of(recordBoards, inCluster)), queries.HwState), legend: name(queries.HwState)}},
		},
		lines("Failures per 1,000 GPU-days", "Changes of boards to failed within 7 days, for 1,000 days of a board with a known state. A small fleet makes large steps: of 10 boards one failure is 14.", units.Short,
			query{expr: last(queries.Of(recordFailing, inCluster)), legend: "cluster " + name(queries.Cluster)}),
		withMax(lines("Coverage", "Reasons that were judged with fresh inputs, of those that fit the board.", units.PercentUnit,
			query{expr: most(mean(queries.Of(queries.BoardCoverage, onNode)), device...), legend: ofDevice})),
	}
}

func collectorBoard() board {
	here := queries.And(chosen("job", "job"), chosen("instance", "instance"))
	with := func(labels []string) string {
		legend := "{{instance}}"
		if len(labels) > 0 {
			legend += " " + name(labels...)
		}
		return legend
	}
	gauge := func(title, description, unit, metric string, labels ...string) panel {
		return lines(title, description, unit, query{expr: most(last(queries.Of(metric, here)), append(process[:len(process):len(process)], labels...)...), legend: with(labels)})
	}
	flow := func(title, description, metric string, labels ...string) panel {
		return lines(title, description, units.CountsPerSecond, query{expr: sum(rate(queries.Of(metric, here)), append(process[:len(process):len(process)], labels...)...), legend: with(labels)})
	}
	ofReceivers := func(metric string, read func(string) string, labels ...string) query {
		labels = append([]string{queries.OwnReceiver}, labels...)
		return query{expr: sum(queries.EachReceiver(metric, here, read), append(process[:len(process):len(process)], labels...)...), legend: with(labels)}
	}
	queue := gauge("Queues", "What waits to be sent. At the capacity, telemetry is dropped.", units.Short, queries.OwnQueueSize, "exporter", "data_type")
	queue.queries = append(queue.queries, query{
		expr: most(last(queries.Of(queries.OwnQueueCapacity, here)), append(process[:len(process):len(process)], "exporter", "data_type")...), legend: with([]string{"exporter", "data_type"}) + " capacity",
	})
	cpu := lines("CPU", "Cores in use by the process.", units.PercentUnit, query{expr: sum(rate(queries.Of(queries.OwnCPU, here)), process...), legend: with(nil)})
	evaluation := lines("Evaluation of services, p99", "How long gpu_summary takes for all services.", units.Seconds, query{
		expr:   "histogram_quantile(0.99, " + sum(rate(queries.Of(queries.OwnEvaluation+"_bucket", here)), append(process[:len(process):len(process)], "le")...) + ")",
		legend: with(nil),
	})
	return board{
		uid: "otelcol-gpu-collector", title: "GPU telemetry collector",
		description: "Agents and gateways themselves: what comes in, what goes out, what is refused, webhooks and their audit. Needs a scrape of their port 8888.",
		variables: []variable{
			{"job", "Job", "Prometheus job of the scrape of port 8888.", queries.OwnUptime + ", job"},
			{"instance", "Instance", "Agent or gateway.", queries.Of(queries.OwnUptime, chosen("job", "job")) + ", instance"},
		},
		rows: []row{
			{"Process", []panel{
				gauge("Memory", "Resident memory of the process.", units.BytesIEC, queries.OwnMemory), cpu,
				gauge("Uptime", "A fall is a restart.", units.Seconds, queries.OwnUptime), evaluation,
			}},
			{"Telemetry", []panel{
				flow("Received", "Points a second, by receiver.", queries.OwnReceived, "receiver"),
				flow("Sent", "Points a second, by exporter.", queries.OwnSent, "exporter"),
				flow("Refused", "Points that receivers had to refuse: the memory limit, or what comes next.", queries.OwnReceiverRefused, "receiver"),
				queue,
				lines("Scrapes of GPUs", "By receiver and outcome; anything but ok is a hole.", units.CountsPerSecond, ofReceivers(queries.OwnScrapes, rate, "outcome")),
				lines("Rows without data", "By receiver and reason. Sentinels and stale markers are normal.", units.CountsPerSecond, ofReceivers(queries.OwnRowsRefused, rate, "reason")),
			}},
			{"GPUs", []panel{
				lines("Devices", "On the newest pages of all exporters, and of the driver.", units.Short, ofReceivers(queries.OwnDevices, last)),
				gauge("Devices without a known owner", "Neither owned, nor free, nor shared.", units.Short, queries.OwnUnattributed),
				gauge("Services", "In memory of gpu_summary.", units.Short, queries.OwnServices),
				gauge("Pods", "In memory of gpu_summary.", units.Short, queries.OwnPods),
				gauge("Age of the kubelet's answer", "Of agents. After three intervals owners are no longer reported.", units.Seconds, queries.OwnSnapshotAge),
			}},
			{"Events and webhooks", []panel{
				gauge("Events", "Raised and cleared since the start.", units.Short, queries.OwnEvents, "event", "state"),
				gauge("Raised now", "Conditions that are not over.", units.Short, queries.OwnEventsRaised),
				gauge("Deliveries", "To webhooks, by what became of them.", units.Short, queries.OwnDeliveries, "receiver", "outcome"),
				gauge("Webhook queues", "Deliveries that wait for their receiver.", units.Short, queries.OwnWebhookQueue, "receiver"),
				gauge("Audit records", "Written to the audit file.", units.Short, queries.OwnAuditWritten),
				gauge("Audit failures", "Operations on the audit file that failed.", units.Short, queries.OwnAuditFailures),
			}},
			{"Store", []panel{
				flow("Samples", "Samples stored a second.", queries.OwnStoreSamples),
				gauge("Series", "Series in the memory of gpu_store.", units.Short, queries.OwnStoreSeries),
				gauge("Size", "Of the files with samples.", units.BytesIEC, queries.OwnStoreSize),
			}},
		},
	}
}
