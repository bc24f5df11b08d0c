// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package servicerules has the rules about services and nodes: one file for each event.
// They are values and pure functions; what happens over time and is stored is the
// engine's.
package servicerules

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
)

// Rule is a rule that is judged from one evaluation of one service. An evaluation is
// about a span of time already: no such rule has a duration of its own.
type Rule struct {
	rule.Rule
	condition.Spec
	Judge func(*Evaluation) condition.Verdict
	// WithNode is whether a service raises nothing while all its nodes are lost, or silent
	// and about to be: it is listed in their event.
	WithNode bool
	// Is completes "the service is …"; State names the condition as something that it
	// has.
	Is, State string
	// Extent completes a sentence from a colon on, with its full stop; Put writes the
	// attributes.
	Extent func(*Details) string
	Put    func(*Details, pcommon.Map)
}

// Rules are the rules about services, in the order of their events.
var Rules = []*Rule{&Partial, &NoData, &IdleHeld}

// Evaluation is what the rules read of one evaluation of one service.
type Evaluation struct {
	Partial, Idle float64 // NaN: absent
	Settled       int64   // pods; -1: absent
	Reporting     int64   // and degraded: pods with data; -1: absent
	states        uint8   // of settled pods that there were points of
}

// NewEvaluation returns an evaluation without a point.
func NewEvaluation() Evaluation {
	return Evaluation{Partial: math.NaN(), Idle: math.NaN(), Settled: -1, Reporting: -1}
}

const (
	missing = 1 << iota
	reporting
	degraded
	allStates = missing | reporting | degraded
)

// CountPods adds the pods in one state. Settled pods are missing, reporting or degraded.
func (ev *Evaluation) CountPods(state string, pods int64) {
	switch state {
	case "missing":
		ev.states |= missing
	case "reporting":
		ev.Reporting = max(ev.Reporting, 0) + pods
		ev.states |= reporting
	case "degraded":
		ev.Reporting = max(ev.Reporting, 0) + pods
		ev.states |= degraded
	default:
		return
	}
	ev.Settled = max(ev.Settled, 0) + pods
}

// above judges a value that is the condition where it is above 0.
func above(v float64) condition.Verdict {
	if math.IsNaN(v) {
		return condition.Verdict{}
	}
	return condition.Holds(v > 0)
}

// Describe completes an event about a service with the details of its evaluation.
func (r *Rule) Describe(s subject.Service, d *Details, ev *event.Event) {
	d.units = s.Units()
	switch {
	case !ev.Cleared():
		ev.Body = s.String() + " is " + r.Is + r.Extent(d)
	case ev.Ended == event.NotSeen:
		ev.Body = s.String() + " was not seen since the restart, and is no longer " + r.Is + "."
	case ev.Ended == event.SubjectGone:
		ev.Body = s.String() + " is gone, and " + r.State + " with it."
	default:
		ev.Body = s.String() + " is no longer " + r.Is + r.Extent(d)
	}
	ev.Add(func(attrs pcommon.Map) { r.Put(d, attrs) })
}

const perService = "cluster/namespace/service"
