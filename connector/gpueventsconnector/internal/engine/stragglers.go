// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/healthmetrics"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules/servicerules"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/state"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/straggler"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
)

// stragglers compares boards with their peers, where that rule runs.
type stragglers struct {
	*ledger
	fleet *straggler.Fleet // nil: it does not
	// reasons are those against a board where this engine judges its health too; of
	// others they arrive as metrics.
	reasons straggler.Reasons
}

func newStragglers(l *ledger, o *Options, in *inputs, d *devices) *stragglers {
	s := &stragglers{ledger: l}
	if !o.settings(&servicerules.Straggler).Enabled() {
		return s
	}
	s.fleet = straggler.NewFleet(l.maxSubjects)
	for metric, read := range straggler.Inputs {
		in.compare(metric, read)
	}
	s.reasons = func(id subject.DeviceID) (names []string) {
		if is := d.all[id]; is != nil {
			for _, r := range is.health.board.Verdict().Reasons {
				names = append(names, r.Reason.Name)
			}
		}
		return names
	}
	return s
}

// advance moves the time on before a batch is read.
func (s *stragglers) advance() {
	if s.fleet != nil {
		s.fleet.Advance(s.now, s.wall)
	}
}

// refuse counts the boards that found no room in a batch.
func (s *stragglers) refuse() {
	if s.fleet == nil {
		return
	}
	for range s.fleet.TakeRefused() {
		s.unwatched("device")
	}
	s.counts.Apart = max(s.counts.Apart, s.fleet.TakeApart())
}

// elapse compares the boards, once a minute.
func (s *stragglers) elapse() {
	if s.fleet == nil {
		return
	}
	for _, b := range s.fleet.Judge(s.now, s.wall, s.reasons) {
		level := 1 - min(1, b.Condition.Level)
		s.move(&b.Condition, &servicerules.StragglerSpec, servicerules.Straggler.Event, level, pcommon.NewTimestampFromTime(s.wall),
			func(ev *event.Event) { servicerules.DescribeStraggler(b, ev) })
	}
}

// publish writes the boards that are slow, and the ends of those that were.
func (s *stragglers) publish(w *healthmetrics.Writer) {
	if s.fleet != nil {
		s.fleet.Publish(w.Append)
	}
}

func (s *stragglers) again() {
	if s.fleet != nil {
		s.fleet.PublishAgain()
	}
}

// save adds what is raised.
func (s *stragglers) save(to *state.State) {
	if s.fleet == nil {
		return
	}
	for b := range s.fleet.Slow() {
		to.Raise(b.Condition.Level, state.Raised{
			Event: servicerules.Straggler.Event, Cluster: b.ID.Cluster, Device: b.ID.ID, Node: b.Facts.Node,
			Namespace: b.Facts.Owner.Namespace, Service: b.Facts.Owner.Service, Reason: string(b.Cause),
		})
	}
}

// restore returns the condition of a board that was slow before a restart; nil where the
// rule does not run.
func (s *stragglers) restore(r *state.Raised) *condition.Condition {
	if s.fleet == nil {
		return nil
	}
	d := subject.Device{ID: subject.DeviceID{Cluster: r.Cluster, ID: r.Device}, Facts: subject.Facts{
		Node: r.Node, Index: -1, Owner: subject.Owner{Namespace: r.Namespace, Service: r.Service},
	}}
	b := s.fleet.Restore(d, straggler.Cause(r.Reason))
	if b == nil {
		return nil
	}
	return &b.Condition
}
