// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
)

// HealthReason is a reason against the health of a board, which gpu_events judges.
type HealthReason struct {
	Name string // value of gpu.health.reason
	// State and Action are hw.state and gpu.health.action, where a finding has no
	// others.
	State, Action string
	// Metrics are the names of the metrics that are read for it. A reason without any
	// is decided by an event, or by the readings of another one, and is no check of its
	// own.
	Metrics []string
	// Needs are the smallest sets of these metrics of which one suffices to judge it.
	Needs [][]string
	// Of are the features of the boards that it fits; 0: it fits all of them. It fits those
	// of which an input was read, too.
	Of health.Kind
	// Only are the features of the boards that it is about; 0: it is about all.
	Only health.Kind
	// Vital reasons are those of which one must be read for a board to be ok.
	Vital bool
	// Means is what it means for the board, in whole sentences.
	Means string
}

// HealthReasons returns the reasons against a board, in the order of gpu_events.
func HealthReasons() []HealthReason { return healthReasons }

// HealthReasonNamed returns the reason with this value of gpu.health.reason.
func HealthReasonNamed(name string) (HealthReason, bool) {
	i := slices.IndexFunc(healthReasons, func(r HealthReason) bool { return r.Name == name })
	if i < 0 {
		return HealthReason{}, false
	}
	return healthReasons[i], true
}

// HealthMetrics are the metrics that the reasons read, by their name, as Prometheus
// names them.
func HealthMetrics() map[string]string { return healthMetrics }

// Check reports whether the reason has inputs of its own: those are the checks that
// gpu.health.coverage counts.
func (r HealthReason) Check() bool { return len(r.Needs) > 0 }

// Judged reports whether the reason can be judged with the metrics that there are.
func (r HealthReason) Judged(there func(metric string) bool) bool {
	return slices.ContainsFunc(r.Needs, func(set []string) bool {
		return !slices.ContainsFunc(set, func(metric string) bool { return !there(metric) })
	})
}

// Fits reports whether the reason is a check of a board with these features, of which it
// can be judged or not.
func (r HealthReason) Fits(kind health.Kind, judged bool) bool {
	return r.Check() && kind&r.Only == r.Only && (judged || kind&r.Of == r.Of)
}

// Runbook is the file of the reason's runbook, below docs/runbooks.
func (r HealthReason) Runbook() string { return HealthRunbook(r.Name) }

// HealthRunbook is the file of the runbook of a value of gpu.health.reason.
func HealthRunbook(reason string) string {
	return "health-" + strings.ReplaceAll(reason, "_", "-") + ".md"
}
