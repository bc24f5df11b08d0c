// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package consoleapi // import "github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"

import "time"

// DeviceState is what becomes of a device.
type DeviceState string

const (
	DeviceLost    DeviceState = "lost"
	DeviceSplit   DeviceState = "split"
	DeviceIdle    DeviceState = "idle"
	DeviceHeld    DeviceState = "held"
	DeviceFree    DeviceState = "free"
	DeviceUnknown DeviceState = "unknown"
)

// Device is a device: a physical one, a MIG instance or a replica.
type Device struct {
	ID                string      `json:"id"`
	Parent            *string     `json:"parent"`
	Index             *string     `json:"index"`
	Vendor            *string     `json:"vendor"`
	Model             *string     `json:"model"`
	MIGProfile        *string     `json:"mig_profile"`
	MIGInstance       *string     `json:"mig_instance"`
	PartitionProfile  *string     `json:"partition_profile"` // of a partition, and of a board that has some
	Partition         *string     `json:"partition"`         // number of a partition or a tile
	State             DeviceState `json:"state"`
	Holders           []Holder    `json:"holders"`
	Idle              *bool       `json:"idle"`
	Values            Values      `json:"values"`
	NotMeasured       []string    `json:"not_measured"` // fields of Values that its vendor does not measure
	Temperature       *float64    `json:"temperature"`
	MemoryTemperature *float64    `json:"memory_temperature"`
	PowerLimit        *float64    `json:"power_limit"`
	Throttle          []string    `json:"throttle"`
	XID               *int        `json:"xid"`
	XIDErrors         []XIDErrors `json:"xid_errors"`
	UncorrectedErrors *float64    `json:"uncorrected_errors"`
	CorrectedErrors   *float64    `json:"corrected_errors"`
	RemappedRows      *float64    `json:"remapped_rows"`
	RemappedRowsRise  *float64    `json:"remapped_rows_rise"`
	Straggler         *string     `json:"straggler"` // why it is slower than its peers
	Health            *Health     `json:"health"`    // of a physical device
	Reasons           []Reason    `json:"reasons"`
	Told
}

// XIDErrors is how often a code was seen.
type XIDErrors struct {
	Code       string  `json:"code"`
	Count      float64 `json:"count"`
	LowerBound bool    `json:"lower_bound"`
}

// Holder is who holds a device.
type Holder struct {
	Namespace string   `json:"namespace"`
	Service   *string  `json:"service"`
	Pod       string   `json:"pod"`
	Container *string  `json:"container"`
	Share     *float64 `json:"share"`
	Sharing   *string  `json:"sharing"`
	Source    string   `json:"source"`
	// Job is the job of Slurm that owns it; then Pod is the job's part on the node, and
	// Namespace its account. Of a nested job they are those of the pod.
	Job *Job `json:"job,omitempty"`
}

// Job is a job of Slurm.
type Job struct {
	Cluster   string  `json:"cluster"`
	ID        string  `json:"id"`
	User      *string `json:"user"`
	Account   *string `json:"account"`
	Partition *string `json:"partition"`
	// Nested: Slurm runs in a pod, which owns the device too.
	Nested bool `json:"nested"`
}

// SlurmCluster is that of an owner that is a job alone.
func (h *Holder) SlurmCluster() string {
	if h.Job == nil || h.Job.Nested {
		return ""
	}
	return h.Job.Cluster
}

// SourceExporterLabels is the source of an owner that only the exporter names.
const SourceExporterLabels = "exporter_labels"

// NodesAnswer is a page of nodes.
type NodesAnswer struct {
	Freshness Freshness  `json:"freshness"`
	Nodes     []Node     `json:"nodes"`
	Total     int        `json:"total"`
	Next      *string    `json:"next"`
	Pending   Pending    `json:"pending"`
	Exporters []Exporter `json:"exporters"`
}

// Exporter is an exporter. Node is null where only its address is known.
type Exporter struct {
	Cluster  *string       `json:"cluster"`
	Node     *string       `json:"node"`
	Address  string        `json:"address"`
	State    ExporterState `json:"state"`
	DataTime time.Time     `json:"data_time"`
	DataAge  float64       `json:"data_age"`
}

// Pending are GPU pods that no node has accepted.
type Pending struct {
	Pods     *int             `json:"pods"`
	Services []PendingService `json:"services"`
}

// PendingService is a service with pending pods.
type PendingService struct {
	Cluster   *string `json:"cluster"`
	Namespace string  `json:"namespace"`
	Service   string  `json:"service"`
	Pods      int     `json:"pods"`
}

// NodeState is the state of a node.
type NodeState string

const (
	NodeLost                 NodeState = "lost"
	NodeExporterDown         NodeState = "exporter_down"
	NodeExporterFrozen       NodeState = "exporter_frozen"
	NodeExporterUnrecognized NodeState = "exporter_unrecognized"
	NodeDegraded             NodeState = "degraded" // it reports, and something is wrong with it or its devices
	NodeOK                   NodeState = "ok"
	NodeUnknown              NodeState = "unknown" // the store took nothing that would show it
)

// Node is a node with its devices.
type Node struct {
	Cluster          *string       `json:"cluster"`
	Node             string        `json:"node"`
	State            NodeState     `json:"state"`
	Exporter         ExporterState `json:"exporter"`
	Schedulable      *bool         `json:"schedulable"`
	MIGReconfiguring *bool         `json:"mig_reconfiguring"`
	Counts           NodeCounts    `json:"counts"`
	Values           Values        `json:"values"`
	Coverage         Coverages     `json:"coverage"`
	Reasons          []Reason      `json:"reasons"`
	Health           Health        `json:"health"`
	Devices          []Device      `json:"devices"`
	Told
}

// NodeCounts are a node's physical devices by state.
type NodeCounts struct {
	Devices int `json:"devices"`
	Free    int `json:"free"`
	Held    int `json:"held"`
	Idle    int `json:"idle"`
	Lost    int `json:"lost"`
	Unknown int `json:"unknown"`
}

// PodsAnswer is a page of pods.
type PodsAnswer struct {
	Freshness Freshness `json:"freshness"`
	Pods      []Pod     `json:"pods"`
	Total     int       `json:"total"`
	Next      *string   `json:"next"`
}

// PodState is the state of a pod.
type PodState string

// The states of a pod; PodUnknown is that of one that gpu_summary does not report.
const (
	PodReporting  PodState = "reporting"
	PodDegraded   PodState = "degraded"
	PodMissing    PodState = "missing"
	PodWarming    PodState = "warming"
	PodNotRunning PodState = "not_running"
	PodUnknown    PodState = "unknown"
)

// Pod is a pod of a service.
type Pod struct {
	Pod      string        `json:"pod"`
	State    PodState      `json:"state"`
	Node     *string       `json:"node"`
	Exporter ExporterState `json:"exporter"`
	Values   Values        `json:"values"`
	// NotMeasured are the fields of Values that the vendors of all its devices do not measure.
	NotMeasured []string  `json:"not_measured"`
	Coverage    Coverages `json:"coverage"`
	Devices     []Device  `json:"devices"`
	Job         *Job      `json:"job,omitempty"` // of a job of Slurm, of which this is the part on a node
	Told
}
