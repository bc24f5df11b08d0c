// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package consoleapi // import "github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"

import "time"

// ErrorReason is the kind of an Error.
type ErrorReason string

const (
	InvalidParameter    ErrorReason = "invalid_parameter"
	LimitExceeded       ErrorReason = "limit_exceeded"
	Unauthenticated     ErrorReason = "unauthenticated"
	NotFound            ErrorReason = "not_found"
	MethodNotAllowed    ErrorReason = "method_not_allowed"
	UpstreamUnreachable ErrorReason = "upstream_unreachable"
	UpstreamTimeout     ErrorReason = "upstream_timeout"
	UpstreamInvalid     ErrorReason = "upstream_invalid"
	UpstreamRejected    ErrorReason = "upstream_rejected"
	QueryLimit          ErrorReason = "query_limit"
	CircuitOpen         ErrorReason = "circuit_open"
	Busy                ErrorReason = "busy"
	InternalError       ErrorReason = "internal"
)

// Error is the body of every response that fails.
type Error struct {
	Text   string      `json:"error"`
	Reason ErrorReason `json:"reason"`
	Detail string      `json:"detail"`
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Text
	}
	return e.Text + " " + e.Detail
}

// Told is how current something is.
type Told struct {
	DataTime *time.Time `json:"data_time"`
	DataAge  *float64   `json:"data_age"`
	Stale    bool       `json:"stale"`
}

// Freshness is how current an answer is.
type Freshness struct {
	EvaluatedAt time.Time `json:"evaluated_at"`
	Told
	StaleAfter float64 `json:"stale_after"`
}

// Values are the nine fields.
type Values struct {
	Utilization *float64 `json:"utilization"`
	MemoryUsed  *float64 `json:"memory_used"`
	MemoryTotal *float64 `json:"memory_total"`
	Tensor      *float64 `json:"tensor"`
	SM          *float64 `json:"sm"`
	DRAM        *float64 `json:"dram"`
	FP16        *float64 `json:"fp16"`
	FP32        *float64 `json:"fp32"`
	Power       *float64 `json:"power"`
}

// Coverage is over how many devices a figure is, of those that should have it.
type Coverage struct {
	Devices int `json:"devices"`
	Of      int `json:"of"`
}

// Coverages are those of the nine fields; null is of no device.
type Coverages struct {
	Utilization *Coverage `json:"utilization"`
	MemoryUsed  *Coverage `json:"memory_used"`
	MemoryTotal *Coverage `json:"memory_total"`
	Tensor      *Coverage `json:"tensor"`
	SM          *Coverage `json:"sm"`
	DRAM        *Coverage `json:"dram"`
	FP16        *Coverage `json:"fp16"`
	FP32        *Coverage `json:"fp32"`
	Power       *Coverage `json:"power"`
}

// ExporterState is the state of a node's exporter.
type ExporterState string

const (
	ExporterUp      ExporterState = "up"
	ExporterDown    ExporterState = "down"
	ExporterFrozen  ExporterState = "frozen"
	ExporterUnknown ExporterState = "unknown"
	// ExporterUnrecognized: it answers, and its fields are not known.
	ExporterUnrecognized ExporterState = "unrecognized"
)
