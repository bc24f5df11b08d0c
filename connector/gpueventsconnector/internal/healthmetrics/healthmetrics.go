// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package healthmetrics writes the health of boards and nodes as metrics. It takes what is
// known of one of them at one time, and keeps which series it has, so that every series
// ends when it is not written any more.
package healthmetrics

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Status is the health of a board or of a node.
type Status struct {
	At      pcommon.Timestamp // as of when
	Known   bool              // without it all series end
	State   health.State
	Reasons []Reason
	// Coverage is the fraction of the reasons that fit the board of which the inputs are
	// read. A node has none.
	Coverage float64
	Score    float64 // from 0 to 1
}

// Reason is an active reason.
type Reason struct {
	Name   string
	State  health.State
	Action health.Action
}

// Subject is a board or a node.
type Subject struct {
	identify func(pcommon.Map) // writes the resource
	key, id  string            // the attribute of every point
	node     bool
}

// Board is a device as a Subject.
func Board(d *subject.Device) Subject {
	return Subject{identify: d.Identify, key: names.HwID, id: d.ID.ID}
}

// Node is a node as a Subject.
func Node(n subject.Node) Subject {
	return Subject{identify: n.Identify, key: names.K8sNodeName, id: n.Name, node: true}
}

// Published are the series of a subject as they were written last.
type Published struct {
	live    bool
	reasons []Reason
}

// Restored are the series that a collector before this one wrote: those of reasons, of which
// the ones that are over have to end. What else there was, every status has again.
func Restored(reasons []Reason) Published { return Published{reasons: reasons} }

// Live reports whether the subject has series.
func (p *Published) Live() bool { return p.live }

// Writer collects the metrics of several subjects.
type Writer struct {
	Scope, Version string // of the instrumentation scope
	Score          bool   // whether scores are written
	metrics        pmetric.Metrics
}

// Metrics returns what was written; false: nothing was.
func (w *Writer) Metrics() (pmetric.Metrics, bool) {
	return w.metrics, w.metrics != (pmetric.Metrics{})
}

// Append appends a resource, which identify fills, and returns its metrics.
func (w *Writer) Append(identify func(pcommon.Map)) pmetric.MetricSlice {
	if w.metrics == (pmetric.Metrics{}) {
		w.metrics = pmetric.NewMetrics()
	}
	rm := w.metrics.ResourceMetrics().AppendEmpty()
	identify(rm.Resource().Attributes())
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(w.Scope)
	sm.Scope().SetVersion(w.Version)
	return sm.Metrics()
}

// Write writes the status of a subject, and the ends of the series that it had before and
// has no more.
func (w *Writer) Write(p *Published, of Subject, s *Status) {
	if !s.Known && !p.live {
		return
	}
	before := p.series(&of, w.Score)
	*p = Published{live: s.Known}
	if s.Known {
		p.reasons = slices.Clone(s.Reasons)
	}
	now := p.series(&of, w.Score)

	metrics := w.Append(of.identify)
	for _, one := range before {
		if !slices.Contains(now, one) {
			// In a metric of its own: the stock prometheus exporter stops reading a
			// metric at the first end in it.
			dp := one.point(&of, one.metric.Init(metrics.AppendEmpty()), s.At)
			dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}
	}
	var points pmetric.NumberDataPointSlice
	for i, one := range now {
		if i == 0 || now[i-1].metric != one.metric {
			points = one.metric.Init(metrics.AppendEmpty())
		}
		s.value(one, one.point(&of, points, s.At))
	}
}

// series is the identity of a series among those of its subject.
type series struct {
	metric                *names.Metric
	state, reason, action string
}

// series returns all series, those of one metric one after the other.
func (p *Published) series(of *Subject, score bool) (all []series) {
	status := &names.HwStatus
	if of.node {
		status = &names.GPUNodeStatus
	}
	for _, state := range health.States() {
		if p.live {
			all = append(all, series{metric: status, state: state.String()})
		}
	}
	for _, r := range p.reasons {
		all = append(all, series{&names.GPUHealthReason, r.State.String(), r.Name, r.Action.String()})
	}
	if p.live && !of.node {
		all = append(all, series{metric: &names.GPUHealthCoverage})
	}
	if p.live && score {
		all = append(all, series{metric: &names.GPUHealthScore})
	}
	return all
}

// point adds a point without a value.
func (s *series) point(of *Subject, to pmetric.NumberDataPointSlice, at pcommon.Timestamp) pmetric.NumberDataPoint {
	dp := to.AppendEmpty()
	dp.SetTimestamp(at)
	attrs := dp.Attributes()
	attrs.PutStr(of.key, of.id)
	if s.metric == &names.HwStatus {
		attrs.PutStr(names.HwType, names.HwTypeGPU)
	}
	if s.reason != "" {
		attrs.PutStr(names.GPUHealthReason.Name, s.reason)
		attrs.PutStr(names.GPUHealthAction, s.action)
	}
	if s.state != "" {
		attrs.PutStr(names.HwState, s.state)
	}
	return dp
}

// value sets the value of a live point.
func (s *Status) value(of series, dp pmetric.NumberDataPoint) {
	switch of.metric {
	case &names.HwStatus, &names.GPUNodeStatus:
		dp.SetIntValue(0)
		if of.state == s.State.String() {
			dp.SetIntValue(1)
		}
	case &names.GPUHealthReason:
		dp.SetIntValue(1)
	case &names.GPUHealthCoverage:
		dp.SetDoubleValue(s.Coverage)
	case &names.GPUHealthScore:
		dp.SetDoubleValue(s.Score)
	}
}
