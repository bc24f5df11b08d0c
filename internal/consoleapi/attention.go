// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package consoleapi // import "github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"

import (
	"cmp"
	"slices"
	"time"
)

// Attention is the kind of a reason to look at something.
type Attention string

// The kinds, in the order in which those of one severity are listed.
const (
	Stale                Attention = "stale"
	NoData               Attention = "no_data"
	LostNode             Attention = "node_lost"
	DownExporter         Attention = "exporter_down"
	FrozenExporter       Attention = "exporter_frozen"
	UnrecognizedExporter Attention = "exporter_unrecognized" // its fields are not known
	LostDevice           Attention = "device_lost"
	MissingValues        Attention = "values_missing"
	XID                  Attention = "xid"
	ECCUncorrected       Attention = "ecc_uncorrected"
	RowRemapFailure      Attention = "row_remap_failure"
	RetiredPages         Attention = "retired_pages"
	Throttled            Attention = "throttle"
	Temperature          Attention = "temperature"
	MemoryTemperature    Attention = "memory_temperature"
	MemoryPressure       Attention = "memory_pressure"
	Unhealthy            Attention = "health" // a reason of gpu.health that is no condition of its own
	OtherCondition       Attention = "condition"
	FailedDelivery       Attention = "delivery"
	Partial              Attention = "partial"
	MissingPods          Attention = "missing_pods"
	DegradedPods         Attention = "degraded_pods"
	PendingPods          Attention = "pending_pods"
	IdleDevices          Attention = "idle_devices"
	NotRunning           Attention = "not_running"
	Warming              Attention = "warming"
	Unknown              Attention = "unknown"
)

// Attentions are all kinds in their order.
var Attentions = []Attention{
	Stale, NoData, LostNode, DownExporter, FrozenExporter, UnrecognizedExporter, LostDevice, MissingValues, XID, ECCUncorrected, RowRemapFailure, RetiredPages,
	Throttled, Temperature, MemoryTemperature, MemoryPressure, Unhealthy, OtherCondition, FailedDelivery, Partial, MissingPods, DegradedPods,
	PendingPods, IdleDevices, NotRunning, Warming, Unknown,
}

// Severity is how bad a reason is.
type Severity string

// The severities, the worst first.
const (
	SeverityError Severity = "error"
	SeverityWarn  Severity = "warn"
	SeverityInfo  Severity = "info"
)

// Severities are all of them, the worst first.
var Severities = []Severity{SeverityError, SeverityWarn, SeverityInfo}

// Reason is why something needs attention.
type Reason struct {
	Kind     Attention  `json:"kind"`
	Severity Severity   `json:"severity"`
	Label    string     `json:"label"`
	Text     string     `json:"text"`
	Notice   bool       `json:"notice"`
	Subject  Subject    `json:"subject"`
	Endpoint *string    `json:"endpoint"`
	EventID  *string    `json:"event_id"`
	Since    *time.Time `json:"since"`
}

// Pressing reports whether a reason needs attention: one of severity info does not.
func (r *Reason) Pressing() bool { return r.Severity == SeverityError || r.Severity == SeverityWarn }

// Pressing reports whether any of them needs attention.
func Pressing(reasons []Reason) bool {
	return slices.ContainsFunc(reasons, func(r Reason) bool { return r.Pressing() })
}

// CompareReasons orders reasons: by severity, then by kind. What a later version
// adds comes last.
func CompareReasons(a, b Reason) int {
	return cmp.Or(cmp.Compare(place(Severities, a.Severity), place(Severities, b.Severity)), cmp.Compare(place(Attentions, a.Kind), place(Attentions, b.Kind)))
}

func place[T comparable](all []T, one T) int {
	if i := slices.Index(all, one); i >= 0 {
		return i
	}
	return len(all)
}
