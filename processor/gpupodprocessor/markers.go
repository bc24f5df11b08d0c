// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/exporters"
)

// placeMarkers gives each marker in the resource of the device id, held by who, a
// metric of its own (see tracker.end). Where the resource names no holder, a marker goes to
// the resource under which its series was last passed on, in out; so does one that names
// another service than the series had.
func placeMarkers(t *tracker, id string, who owner.Owner, rm pmetric.ResourceMetrics, out pmetric.ResourceMetricsSlice) {
	var former pmetric.ResourceMetrics
	var formerly *identity
	for _, sm := range rm.ScopeMetrics().All() {
		var formerScope pmetric.ScopeMetrics
		for i := range sm.Metrics().Len() {
			m := sm.Metrics().At(i)
			movePoints(m, func(attrs pcommon.Map, ts pcommon.Timestamp, marker bool) (pmetric.Metric, fate) {
				if !marker {
					return pmetric.Metric{}, stay
				}
				key := seriesKey(m.Name(), attrs)
				last, of, tracked := t.lastIdentity(id, key, ts)
				renamed := t.renames && tracked && of == who && str(last.attrs, names.ServiceName) != str(rm.Resource().Attributes(), names.ServiceName)
				if (!who.IsZero() || !tracked || of == who) && !renamed {
					t.forget(id, who, key)
					own := sm.Metrics().AppendEmpty()
					describe(m, own)
					return own, moved
				}
				t.forget(id, of, key)
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
				describe(m, own)
				return own, moved
			})
		}
	}
	removeEmpty(rm)
}

// identity is a resource that series of a device were passed on with, and the
// exporter that printed them, if known. What describes a device may change while
// the device stays the same: the exporter's pod, the index, the profile of a MIG
// instance. A series that goes on with another description is another series to
// every store, so the former one is ended, and only that: the same device may
// come by two ways, under other names and with other descriptions.
//
// An output may leave out the attribute that changed, and then the series that
// ends there is the one that goes on. So the end stands before the data, and is a
// millisecond older.
type identity struct {
	attrs pcommon.Map
	by    *exporters.Exporter
}

func (i *identity) is(attrs pcommon.Map, by *exporters.Exporter) bool {
	return i != nil && i.by == by && i.attrs.Equal(attrs)
}

// describe notes the resource that the device is passed on with now.
func (d *device) describe(attrs pcommon.Map, by *exporters.Exporter) {
	if by == nil && d.identity != nil {
		by = d.identity.by
	}
	switch {
	case d.identity.is(attrs, by):
		return
	case d.former.is(attrs, by): // two ways take turns
		d.identity, d.former = d.former, d.identity
		return
	}
	now := &identity{attrs: pcommon.NewMap(), by: by}
	attrs.CopyTo(now.attrs)
	d.identity, d.former = now, d.identity
}

// supersede ends a series that d has under another description, unless both are
// of one scrape.
func (t *tracker) supersede(d *device, s *series) {
	if !s.identity.attrs.Equal(d.identity.attrs) {
		if s.scrape == d.scrape {
			return // which of the two is newer is unknown
		}
		t.superseded.add(s)
	}
	s.identity = d.identity
}

// replaceDescribed ends the series that a new one of d continues: that differs
// from it in labels which describe the device. Families that keep their DCGM
// names have them on their points.
func (t *tracker) replaceDescribed(d *device, key uint64, metric string, attrs pcommon.Map) {
	left, ok := undescribed(metric, attrs)
	if !ok {
		return
	}
	if d.described == nil {
		d.described = map[uint64]uint64{}
	}
	old := d.described[left]
	if s := d.series[old]; s != nil && s.scrape != d.scrape {
		t.superseded.add(s)
		d.drop(old)
		t.tracked--
	}
	d.described[left] = key
}

// undescribed is the key of a series without the labels that describe its device,
// if it has any.
func undescribed(metric string, attrs pcommon.Map) (key uint64, any bool) {
	key = seriesKey(metric, pcommon.NewMap())
	for k, v := range attrs.All() {
		switch exporterlabels.Classify(k) {
		case exporterlabels.Index, exporterlabels.PCIAddress, exporterlabels.Device, exporterlabels.Model,
			exporterlabels.Host, exporterlabels.MIGProfile, exporterlabels.Field:
			any = true
		default:
			key += hashAttribute(k, v)
		}
	}
	return key, any
}

// leaveOut takes the points out of rm, which the exporter printed of a device, that
// another exporter printed before and still prints. It returns how many there were
// and who decides.
func (t *tracker) leaveOut(id string, by *exporters.Exporter, rm pmetric.ResourceMetrics, now time.Time) (int, *exporters.Exporter) {
	if by == nil {
		return 0, nil
	}
	d := t.devices[id]
	if d == nil || d.identity.by == by && !d.contested {
		return 0, nil
	}
	d.contested = false
	for _, s := range d.series {
		if d.contested = s.decided(by, now); d.contested {
			return d.leaveOut(by, rm, now)
		}
	}
	return 0, nil
}

func (d *device) leaveOut(by *exporters.Exporter, rm pmetric.ResourceMetrics, now time.Time) (n int, owner *exporters.Exporter) {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			movePoints(m, func(attrs pcommon.Map, _ pcommon.Timestamp, marker bool) (pmetric.Metric, fate) {
				s := d.series[seriesKey(m.Name(), attrs)]
				if s == nil && !marker {
					if left, ok := undescribed(m.Name(), attrs); ok {
						s = d.series[d.described[left]]
					}
				}
				if s == nil || !s.decided(by, now) {
					return pmetric.Metric{}, stay
				}
				n, owner = n+1, s.identity.by
				return pmetric.Metric{}, dropped
			})
		}
	}
	removeEmpty(rm)
	return n, owner
}

// decided reports whether another exporter than by decides the series.
func (s *series) decided(by *exporters.Exporter, now time.Time) bool {
	return s.identity.by != nil && s.identity.by != by && s.identity.by.Decides(by, s.heard, now)
}

// before is the time of a marker that ends a series whose last point is of time
// last, and which goes on with a point of time ts. again says that ts is of the
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
	identity *identity
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
	appendMarker(m, s.attrs, e.at)
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
