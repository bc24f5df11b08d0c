// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package consoleapi // import "github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"

import "time"

// Service is a service.
type Service struct {
	Cluster        *string        `json:"cluster"`
	Namespace      string         `json:"namespace"`
	Service        string         `json:"service"`
	SlurmCluster   *string        `json:"slurm_cluster,omitempty"` // of a service on Slurm; Namespace is its account
	Attention      []Attention    `json:"attention"`
	Reasons        []Reason       `json:"reasons"`
	Partial        *bool          `json:"partial"`
	MissingRatio   *float64       `json:"missing_ratio"`
	Values         Values         `json:"values"`
	NotMeasured    []string       `json:"not_measured"` // fields of Values that the vendors of all its devices do not measure
	Coverage       Coverages      `json:"coverage"`
	UtilizationMin *float64       `json:"utilization_min"`
	UtilizationMax *float64       `json:"utilization_max"`
	Totals         Totals         `json:"totals"`
	Pods           PodCounts      `json:"pods"`
	Devices        ServiceDevices `json:"devices"`
	Trend          []*float64     `json:"trend"`               // null where it was not asked for
	Inference      *Inference     `json:"inference,omitempty"` // of a service with inference engines, where it was asked for
	Told
}

// Totals are sums over a service.
type Totals struct {
	MemoryUsed  *float64 `json:"memory_used"`
	MemoryTotal *float64 `json:"memory_total"`
	Power       *float64 `json:"power"`
}

// PodCounts are the pods of a service by state.
type PodCounts struct {
	Total      *int `json:"total"`
	Settled    *int `json:"settled"`
	InMean     *int `json:"in_mean"`
	Reporting  *int `json:"reporting"`
	Degraded   *int `json:"degraded"`
	Missing    *int `json:"missing"`
	Warming    *int `json:"warming"`
	NotRunning *int `json:"not_running"`
	Pending    *int `json:"pending"`
}

// ServiceDevices are the devices of a service.
type ServiceDevices struct {
	Held      *int `json:"held"`
	Reporting *int `json:"reporting"`
	Missing   *int `json:"missing"`
	Busy      *int `json:"busy"`
	Idle      *int `json:"idle"`
	Frozen    int  `json:"frozen"`
	// Health are the boards of the service; null where nothing reports it.
	Health *HealthCounts `json:"health"`
}

// ServicesAnswer is a page of services.
type ServicesAnswer struct {
	Freshness Freshness    `json:"freshness"`
	Services  []Service    `json:"services"`
	Total     int          `json:"total"`
	Next      *string      `json:"next"`
	Summary   FleetSummary `json:"summary"`
	Trend     *Grid        `json:"trend"`
}

// Grid is the grid of trends.
type Grid struct {
	Start  time.Time `json:"start"`
	Step   float64   `json:"step"`
	Points int       `json:"points"`
}

// FleetSummary is the whole fleet.
type FleetSummary struct {
	Services       *int      `json:"services"`
	Attention      *int      `json:"attention"`
	Reasons        []Reason  `json:"reasons"`
	ReasonsTotal   int       `json:"reasons_total"`
	Devices        *int      `json:"devices"`
	DevicesHeld    *int      `json:"devices_held"`
	DevicesBusy    *int      `json:"devices_busy"`
	DevicesIdle    *int      `json:"devices_idle"`
	DevicesFree    *int      `json:"devices_free"`
	DevicesLost    *int      `json:"devices_lost"`
	DevicesUnknown *int      `json:"devices_unknown"`
	Utilization    *float64  `json:"utilization"`
	MemoryUsed     *float64  `json:"memory_used"`
	MemoryTotal    *float64  `json:"memory_total"`
	Power          *float64  `json:"power"`
	Coverage       Coverages `json:"coverage"`
	PodsPending    *int      `json:"pods_pending"`
	// Health are all boards; null where nothing reports it.
	Health *HealthCounts `json:"health"`
}

// ServiceAnswer is one service.
type ServiceAnswer struct {
	Freshness   Freshness `json:"freshness"`
	Service     Service   `json:"service"`
	MissingPods []string  `json:"missing_pods"`
}
