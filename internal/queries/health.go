// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package queries // import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Metrics of the health of boards and nodes.
var (
	BoardStatus   = names.HwStatus.Prometheus()
	BoardReason   = names.GPUHealthReason.Prometheus()
	BoardCoverage = names.GPUHealthCoverage.Prometheus()
	BoardScore    = names.GPUHealthScore.Prometheus()
	NodeStatus    = names.GPUNodeStatus.Prometheus()
	Straggler     = names.GPUStraggler.Prometheus()
)

// Labels of those metrics.
const (
	HwState      = "hw_state"
	HealthReason = "gpu_health_reason"
	HealthAction = "gpu_health_action"

	StragglerCause = "gpu_straggler_cause"
)

// BoardStates asks for the states that boards are in, BoardReasons for the reasons that
// are active against boards, and against nodes where they name no device; both as of no
// longer ago than a time.
func BoardStates(s Selector, maxAge time.Duration) string {
	return "max" + by(Cluster, Device, HwState) + "(" + within(of(BoardStatus, s), maxAge) + " == 1)"
}
func BoardReasons(s Selector, maxAge time.Duration) string {
	return "max" + by(Cluster, Node, Host, Device, HealthReason, HwState, HealthAction) + "(" + within(of(BoardReason, s), maxAge) + " == 1)"
}

// Stragglers asks which boards are slow among their peers, and why.
func Stragglers(s Selector, maxAge time.Duration) string {
	return "max" + by(Cluster, Device, StragglerCause) + "(" + within(of(Straggler, s), maxAge) + " == 1)"
}

// NodeStates asks for the states that nodes are in.
func NodeStates(s Selector, maxAge time.Duration) string {
	return "max" + by(Cluster, Node, Host, HwState) + "(" + within(of(NodeStatus, s), maxAge) + " == 1)"
}

// BoardsWatched asks when the health of boards was first known within a time: at most a
// step of the store's memory later than it was.
func BoardsWatched(s Selector, within time.Duration) string {
	first := func(within, step time.Duration) string {
		return "min" + deviceIdentity + "(min_over_time(timestamp(" + of(BoardStatus, Is(HwState, "ok"), s) + ")[" + duration(within) + ":" + duration(step) + "]))"
	}
	old, young := first(within, rememberedStep), first(rememberedStep, 10*time.Second)
	return "(" + old + " < " + young + ") or " + young + " or " + old
}

// BoardsEver asks how many boards had a state within a time.
func BoardsEver(s Selector, within time.Duration) string {
	return "count(count" + deviceIdentity + "(" + remembered(of(BoardStatus, Is(HwState, "ok"), s), within) + "))"
}

// CorrectedRise asks how many corrected errors were counted within a time.
func CorrectedRise(s Selector, within time.Duration) string {
	return rise(of(HwErrors, Is(ErrorType, "corrected"), s), deviceIdentity, within)
}

// Remapped asks how many memory rows of devices are remapped, RemappedRise how many were
// within a time.
func Remapped(s Selector) string {
	return "sum" + deviceIdentity + "(max" + remappedIdentity + "(" + of(RemappedRows, s) + "))"
}
func RemappedRise(s Selector, within time.Duration) string {
	return "sum" + deviceIdentity + "(" + rise(of(RemappedRows, s), remappedIdentity, within) + ")"
}

// remappedIdentity names a count of remapped rows.
var remappedIdentity = by(Cluster, Device, ErrorType)

// BoardInputs asks which of the metrics that reasons are judged by boards had within a
// time.
func BoardInputs(s Selector, within time.Duration) string {
	metrics := slices.Sorted(maps.Values(names.HealthMetrics()))
	return "count" + by(model.MetricNameLabel, Cluster, Device) + "(last_over_time(" + anyOf(metrics, s) + "[" + duration(within) + "]))"
}
