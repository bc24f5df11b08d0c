// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package seriesends keeps the ends of series until the next component took them.
//
// A component forgets a series when it writes its end. If the batch with the end is
// refused, nothing sends it again: for as long as stores look back, the series stands
// beside the one that replaced it. So a Sender keeps the ends of a refused batch, and
// puts them in front of the next one.
package seriesends

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// Sender passes batches on. It is safe for concurrent use.
type Sender struct {
	next  consumer.Metrics
	limit int
	also  func(metric string, p pmetric.NumberDataPoint) bool

	mu      sync.Mutex
	sent    int // batches
	kept    []batch
	n       int // ends in kept
	dropped int64
}

// batch is the ends of one that was refused, oldest first.
type batch struct {
	number int
	ends   pmetric.Metrics
	n      int
}

// New returns a Sender to next that keeps at most limit ends; of more, the oldest are
// dropped, which stores forget first. also selects points that report something once and
// are no markers (NoRecordedValue), such as the 0 of a state that was left; it may be nil.
func New(next consumer.Metrics, limit int, also func(metric string, p pmetric.NumberDataPoint) bool) *Sender {
	if also == nil {
		also = func(string, pmetric.NumberDataPoint) bool { return false }
	}
	return &Sender{next: next, limit: limit, also: also}
}

// ConsumeMetrics passes md on, behind the ends that are kept, and returns the next
// component's error. md is not the caller's any more. An end that was kept is dropped
// when the batch that repeats it is refused for good: it may be the cause, and must
// not cost every batch to come.
func (s *Sender) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	own := batch{ends: pmetric.NewMetrics()}
	own.n = s.copyEnds(md, own.ends)

	s.mu.Lock()
	s.sent++
	own.number = s.sent
	owed := s.kept
	s.kept, s.n = nil, 0
	s.mu.Unlock()

	if len(owed) > 0 {
		all := pmetric.NewMetrics()
		for _, b := range owed {
			for _, rm := range b.ends.ResourceMetrics().All() {
				rm.CopyTo(all.ResourceMetrics().AppendEmpty())
			}
		}
		if md.IsReadOnly() { // another component has it too
			for _, rm := range md.ResourceMetrics().All() {
				rm.CopyTo(all.ResourceMetrics().AppendEmpty())
			}
		} else {
			md.ResourceMetrics().MoveAndAppendTo(all.ResourceMetrics())
		}
		md = all
	}
	err := s.next.ConsumeMetrics(ctx, md)
	if err != nil {
		s.keep(owed, own, consumererror.IsPermanent(err))
	}
	return err
}

// Keep keeps the ends in md, which is not passed on.
func (s *Sender) Keep(md pmetric.Metrics) {
	own := batch{ends: pmetric.NewMetrics()}
	if own.n = s.copyEnds(md, own.ends); own.n == 0 {
		return
	}
	s.mu.Lock()
	s.sent++
	own.number = s.sent
	s.mu.Unlock()
	s.keep(nil, own, false)
}

// keep takes back what was refused. Batches may be under way at the same time: they
// are kept in the order in which they were sent.
func (s *Sender) keep(owed []batch, own batch, permanent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if permanent {
		for _, b := range owed {
			s.dropped += int64(b.n)
		}
		owed = nil
	}
	if own.n > 0 {
		owed = append(owed, own)
	}
	s.kept = append(s.kept, owed...)
	slices.SortFunc(s.kept, func(a, b batch) int { return cmp.Compare(a.number, b.number) })
	for _, b := range owed {
		s.n += b.n
	}
	for s.n > s.limit {
		oldest := s.kept[0]
		s.kept, s.n, s.dropped = s.kept[1:], s.n-oldest.n, s.dropped+int64(oldest.n)
	}
}

// Kept returns how many ends wait for the next batch, and how many were ever dropped.
func (s *Sender) Kept() (n int, dropped int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, s.dropped
}

// copyEnds copies the ends in md to ends, each in a metric of its own: the stock
// prometheus exporter stops reading a metric at the first marker in it.
func (s *Sender) copyEnds(md, ends pmetric.Metrics) (n int) {
	for _, rm := range md.ResourceMetrics().All() {
		var to pmetric.ResourceMetrics
		for _, sm := range rm.ScopeMetrics().All() {
			var scope pmetric.ScopeMetrics
			for _, m := range sm.Metrics().All() {
				n += s.ends(m, func() pmetric.Metric {
					if to == (pmetric.ResourceMetrics{}) {
						to = ends.ResourceMetrics().AppendEmpty()
						rm.Resource().CopyTo(to.Resource())
						to.SetSchemaUrl(rm.SchemaUrl())
					}
					if scope == (pmetric.ScopeMetrics{}) {
						scope = to.ScopeMetrics().AppendEmpty()
						sm.Scope().CopyTo(scope.Scope())
						scope.SetSchemaUrl(sm.SchemaUrl())
					}
					return scope.Metrics().AppendEmpty()
				})
			}
		}
	}
	return n
}

// ends copies the ends among the points of m, each to a metric of its own that to makes.
func (s *Sender) ends(m pmetric.Metric, to func() pmetric.Metric) int {
	is := func(p pmetric.NumberDataPoint) bool { return p.Flags().NoRecordedValue() || s.also(m.Name(), p) }
	own := func() pmetric.Metric {
		own := to()
		points.Describe(m, own)
		return own
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return copyIf(m.Gauge().DataPoints(), is, func() pmetric.NumberDataPoint { return own().Gauge().DataPoints().AppendEmpty() })
	case pmetric.MetricTypeSum:
		return copyIf(m.Sum().DataPoints(), is, func() pmetric.NumberDataPoint { return own().Sum().DataPoints().AppendEmpty() })
	case pmetric.MetricTypeHistogram:
		return copyIf(m.Histogram().DataPoints(), marker, func() pmetric.HistogramDataPoint { return own().Histogram().DataPoints().AppendEmpty() })
	case pmetric.MetricTypeExponentialHistogram:
		return copyIf(m.ExponentialHistogram().DataPoints(), marker, func() pmetric.ExponentialHistogramDataPoint {
			return own().ExponentialHistogram().DataPoints().AppendEmpty()
		})
	case pmetric.MetricTypeSummary:
		return copyIf(m.Summary().DataPoints(), marker, func() pmetric.SummaryDataPoint { return own().Summary().DataPoints().AppendEmpty() })
	}
	return 0
}

// point is a data point of any type.
type point[P any] interface {
	Flags() pmetric.DataPointFlags
	CopyTo(P)
}

func marker[P point[P]](p P) bool { return p.Flags().NoRecordedValue() }

func copyIf[P point[P]](all interface {
	Len() int
	At(int) P
}, is func(P) bool, to func() P) (n int) {
	for i := range all.Len() {
		if p := all.At(i); is(p) {
			p.CopyTo(to())
			n++
		}
	}
	return n
}
