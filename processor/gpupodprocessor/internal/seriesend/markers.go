// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package seriesend

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// PlaceMarkers gives each marker in the resource of the device id, held by who, a
// metric of its own (see Tracker.end). Where the resource names no owner, a marker goes to
// the resource under which its series was last passed on, in out; so does one that names
// another service than the series had.
func PlaceMarkers(t *Tracker, id string, who owner.Owner, rm pmetric.ResourceMetrics, out pmetric.ResourceMetricsSlice) {
	var former pmetric.ResourceMetrics
	var formerly *described
	for _, sm := range rm.ScopeMetrics().All() {
		var formerScope pmetric.ScopeMetrics
		for i := range sm.Metrics().Len() {
			m := sm.Metrics().At(i)
			points.Move(m, func(attrs pcommon.Map, ts pcommon.Timestamp, marker bool) (pmetric.Metric, points.Fate) {
				if !marker {
					return pmetric.Metric{}, points.Stay
				}
				key := points.Key(m.Name(), attrs)
				last, of, tracked := t.lastDescribed(id, key, ts)
				renamed := t.renames && tracked && of == who && points.Str(last.attrs, names.ServiceName) != points.Str(rm.Resource().Attributes(), names.ServiceName)
				if (!who.IsZero() || !tracked || of == who) && !renamed {
					t.Forget(id, who, key)
					own := sm.Metrics().AppendEmpty()
					points.Describe(m, own)
					return own, points.Moved
				}
				t.Forget(id, of, key)
				if former == (pmetric.ResourceMetrics{}) || formerly != last {
					former, formerly, formerScope = out.AppendEmpty(), last, pmetric.ScopeMetrics{}
					former.SetSchemaUrl(rm.SchemaUrl())
					last.attrs.CopyTo(former.Resource().Attributes())
				}
				if formerScope == (pmetric.ScopeMetrics{}) {
					formerScope = former.ScopeMetrics().AppendEmpty()
					formerScope.SetSchemaUrl(sm.SchemaUrl())
					sm.Scope().CopyTo(formerScope.Scope())
				}
				own := formerScope.Metrics().AppendEmpty()
				points.Describe(m, own)
				return own, points.Moved
			})
		}
	}
	points.RemoveEmpty(rm)
}

// before is the time of a marker that ends a series with its last point at time
// last, and which goes on with a point of time ts. again: ts is of the
// scrape of last.
func before(last, ts pcommon.Timestamp, again bool) pcommon.Timestamp {
	if at := ts - pcommon.Timestamp(time.Millisecond); again || at > last {
		return at
	}
	return endOf(last, ts)
}

// endWriter writes markers of one time into resources of their own at the end of out,
// each in a metric of its own. The stock prometheus exporter stops reading a metric
// at the first marker in it: what follows there, live point or marker, would be
// lost.
type endWriter struct {
	out      pmetric.ResourceMetricsSlice
	at       pcommon.Timestamp
	n        int // markers written
	resource pmetric.ResourceMetrics
	identity *described
	scope    pmetric.ScopeMetrics
	scopeOf  *family

	live  pmetric.ResourceMetrics   // in which the series go on, see putBefore
	lives []pmetric.ResourceMetrics // that of each resource in out
}

func (e *endWriter) add(s *series) {
	if e.identity != s.identity || e.lives[len(e.lives)-1] != e.live {
		e.resource, e.identity, e.scopeOf = e.out.AppendEmpty(), s.identity, nil
		e.lives = append(e.lives, e.live)
		s.identity.attrs.CopyTo(e.resource.Resource().Attributes())
	}
	if e.scopeOf == nil || !e.scopeOf.sameScope(s.family) {
		e.scope, e.scopeOf = e.resource.ScopeMetrics().AppendEmpty(), s.family
		s.family.scope.CopyTo(e.scope.Scope())
		e.scope.SetSchemaUrl(s.family.schemaURL)
	}
	m := e.scope.Metrics().AppendEmpty()
	s.family.metric.CopyTo(m)
	points.AppendMarker(m, s.attrs, e.at, s.family.bounds)
	e.n++
}

// putBefore moves each resource that was written to all, in front of the one in which
// its series go on, and starts over. What all has before that may be an earlier
// scrape.
func (e *endWriter) putBefore(all pmetric.ResourceMetricsSlice) {
	if e.n == 0 {
		e.live = pmetric.ResourceMetrics{} // lets go of the batch
		return
	}
	ends := map[pmetric.ResourceMetrics][]pmetric.ResourceMetrics{}
	for i, live := range e.lives {
		ends[live] = append(ends[live], e.out.At(i))
	}
	ordered := pmetric.NewResourceMetricsSlice()
	for _, rm := range all.All() {
		for _, end := range ends[rm] {
			end.MoveTo(ordered.AppendEmpty())
		}
		rm.MoveTo(ordered.AppendEmpty())
	}
	all.RemoveIf(func(pmetric.ResourceMetrics) bool { return true })
	ordered.MoveAndAppendTo(all)
	*e = endWriter{out: pmetric.NewResourceMetricsSlice()}
}

// endOf is the time of a marker that ends series with their last point at time
// last, when something newer is of time ts. Stores keep milliseconds, and take
// nothing older than the last point: so it lies behind that after a clock was
// set back, too.
func endOf(last, ts pcommon.Timestamp) pcommon.Timestamp {
	if ts > last {
		return ts
	}
	return last + pcommon.Timestamp(time.Millisecond)
}

func newFamily(sm pmetric.ScopeMetrics, m pmetric.Metric) *family {
	f := &family{
		scope:     pcommon.NewInstrumentationScope(),
		schemaURL: sm.SchemaUrl(),
		name:      m.Name(),
		metric:    pmetric.NewMetric(),
		bounds:    points.Bounds(m),
	}
	sm.Scope().CopyTo(f.scope)
	points.Describe(m, f.metric)
	return f
}

func (f *family) sameScope(other *family) bool {
	return f.scope.Name() == other.scope.Name() && f.scope.Version() == other.scope.Version() &&
		f.schemaURL == other.schemaURL && f.scope.Attributes().Equal(other.scope.Attributes())
}
