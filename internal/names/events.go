// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package names

import "slices"

// Values of gpu.event.state.
const (
	// EventAcknowledged is the state of a record that the console keeps: someone has
	// seen a notice, which counts no more. It never leaves the store.
	EventAcknowledged = "acknowledged"

	EventRaised  = "raised"
	EventCleared = "cleared"
)

// Attributes of events about a service.
const (
	GPUServiceMissingPods     = "gpu.service.missing_pods"      // names, at most 50
	GPUServiceMissingPodCount = "gpu.service.missing_pod_count" // all of them
	GPUServiceMissingRatio    = "gpu.service.missing_ratio"     // missing / settled
	GPUServiceSettledPodCount = "gpu.service.settled_pod_count"
)

// Names of the events. That of a metric is also that of the event about it.
const (
	EventServicePartial  = "gpu.service.partial"
	EventServiceNoData   = "gpu.service.no_data"
	EventIdleHeld        = "gpu.idle_held"
	EventNodeLost        = "gpu.node.lost"
	EventExporterDown    = "gpu.exporter.down"
	EventDeviceLost      = "gpu.device.lost"
	EventXID             = "gpu.xid"
	EventECCUncorrected  = "gpu.ecc.uncorrected"
	EventRowRemapFailure = "gpu.row_remap.failure"
	EventThrottle        = "gpu.throttle"
	EventTemperature     = "gpu.temperature"
	EventMemoryPressure  = "gpu.memory.pressure"
	EventHealth          = "gpu.health"
	EventStraggler       = "gpu.straggler"
	EventRAS             = "gpu.ras"
	EventMemoryRepair    = "gpu.memory.repair"
	EventDeviceReset     = "gpu.device.reset"
	EventLinkDown        = "gpu.link.down"
)

// EventRule is a rule of gpu_events, which emits an event.
type EventRule struct {
	Event  string
	Set    string // device or service: where the rule runs
	Notice bool   // the event is raised, never cleared, and no raised condition
	// Metrics are the names of the metrics that the rule reads.
	Metrics []string
}

// EventRules returns the rules of gpu_events.
func EventRules() []EventRule { return eventRules }

// EventIsNotice reports whether an event is a notice: it is raised, never cleared,
// and no raised condition.
func EventIsNotice(event string) bool {
	i := slices.IndexFunc(eventRules, func(r EventRule) bool { return r.Event == event })
	return i >= 0 && eventRules[i].Notice
}

// Events returns the names of all events that this distribution emits. A pattern of
// gpu.* that matches none of them is a mistake.
func Events() []string {
	all := make([]string, len(eventRules), len(eventRules)+2)
	for i, r := range eventRules {
		all[i] = r.Event
	}
	return append(all, EventNCCLStraggler, EventNCCLStall)
}

// Values of gpu.event.level and gpu.exporter.reason.
const (
	EventLevelHigh             = "high"
	EventLevelCritical         = "critical"
	ExporterReasonDown         = "down"         // the scrape fails
	ExporterReasonFrozen       = "frozen"       // its values stand still
	ExporterReasonUnrecognized = "unrecognized" // its fields are not known
)

// Values of attributes of metrics that events are made of.
const (
	ThrottleHWThermal     = "hw_thermal" // gpu.throttle.reason
	ThrottleSWThermal     = "sw_thermal"
	ThrottleHWPowerBrake  = "hw_power_brake"
	ThrottleHWSlowdown    = "hw_slowdown"
	ThrottleProchot       = "prochot"
	ThrottleVRThermal     = "vr_thermal"
	ThrottleMemoryThermal = "memory_thermal"
	SensorGPU             = "gpu" // hw.sensor_location
	SensorMemory          = "memory"
	ErrorTypeUncorrected  = "uncorrected" // error.type
	WatchExporter         = "exporter"    // gpu.health.watch: the exporter's own judgement
	LinkExternal          = "external"    // gpu.link.kind
	RepairReplaced        = "replaced"    // gpu.memory.repair.state
	RepairPending         = "pending"
	RepairFailed          = "failed"
)

// Attributes of events about devices, exporters and nodes.
const (
	GPUXIDMnemonic      = "gpu.xid.mnemonic"
	GPUXIDMeaning       = "gpu.xid.meaning"
	GPUXIDAction        = "gpu.xid.action"
	GPUXIDBucket        = "gpu.xid.bucket"        // the resolution in the catalogue of the vendor
	GPUHealthAction     = "gpu.health.action"     // one word, of a closed list
	GPUHealthReasons    = "gpu.health.reasons"    // the worst first
	GPUHealthCauses     = "gpu.health.causes"     // a sentence for each of the reasons
	GPUHealthValues     = "gpu.health.values"     // what was read for each of them; empty: nothing is compared
	GPUHealthThresholds = "gpu.health.thresholds" // what that is compared with; likewise
	HwState             = "hw.state"
	GPUXIDFatal         = "gpu.xid.fatal"         // whether the workload is over
	GPUEventOccurrences = "gpu.event.occurrences" // how often it happened since it was last reported
	GPUEventLevel       = "gpu.event.level"
	GPUEventValue       = "gpu.event.value"     // in the unit of the metric
	GPUEventThreshold   = "gpu.event.threshold" // likewise
	GPUThrottleReasons  = "gpu.throttle.reasons"
	GPURASCode          = "gpu.ras.code"     // AFID
	GPURASCategory      = "gpu.ras.category" // the part of the board
	GPURASMeaning       = "gpu.ras.meaning"
	GPURASAction        = "gpu.ras.action"
	GPURASDerived       = "gpu.ras.derived"         // from changes of the last code: repeats are not seen
	GPURepairState      = "gpu.memory.repair.state" // replaced, pending or failed
	GPULinkIndexes      = "gpu.link.indexes"        // ports that are down, at most 50
	GPUExporterReason   = "gpu.exporter.reason"
	GPUDeviceInstances  = "gpu.device.instances"  // hw.id of the MIG instances that went with it, at most 50
	GPUNodeDevices      = "gpu.node.devices"      // hw.id, at most 50
	GPUNodeDeviceCount  = "gpu.node.device_count" // all of them
	GPUNodeServices     = "gpu.node.services"     // namespace/name, at most 50
	GPUNodeServiceCount = "gpu.node.service_count"
	GPUServiceIdle      = "gpu.service.idle_devices"
	GPUStragglerCause   = "gpu.straggler.cause" // thermal, power, link or clock
	GPUStragglerPeers   = "gpu.straggler.peers" // how many boards it was compared with
)
