// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package foreignpage

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/seriesend"
)

// split takes a page apart: one resource for the live points of each device,
// and one for each further identity that markers end.
type split struct {
	page    *page
	tracker *seriesend.Tracker
	src     pmetric.ResourceMetrics
	out     pmetric.ResourceMetricsSlice
	groups  []group
	byOwner map[ownedDevice]int // index in groups

	// Where the walk over the page is.
	scopeAt, metricAt, pointAt int
	scope                      pmetric.ScopeMetrics
	metric                     pmetric.Metric

	// The series with a live point, kept only where a point may have to give
	// way to one: the series of a shared device come once for each owner, and
	// a marker must not end what lives.
	live map[liveSeries]struct{}
}

// ownedDevice is a device under one owner.
type ownedDevice struct {
	device int
	owner  owner.Owner
}

type liveSeries struct {
	device int
	key    uint64
	ts     pcommon.Timestamp
}

// group is one of the new resources. Its scope and metric take the points of
// the page's scope scopeAt and metric metricAt.
type group struct {
	device            int
	owner             owner.Owner
	rm                pmetric.ResourceMetrics
	scopeAt, metricAt int
	scope             pmetric.ScopeMetrics
	metric            pmetric.Metric
}

// run moves the points that are about a device from rm into resources of their
// own, at the end of out. Points without a device stay in rm as they are.
func (s *split) run(p *page, t *seriesend.Tracker, rm pmetric.ResourceMetrics, out pmetric.ResourceMetricsSlice) {
	if s.live == nil {
		s.live, s.byOwner = map[liveSeries]struct{}{}, map[ownedDevice]int{}
	}
	clear(s.live)
	clear(s.byOwner)
	clear(s.groups) // lets go of the last page's data
	s.page, s.tracker, s.src, s.out, s.groups = p, t, rm, out, s.groups[:0]

	s.walk(s.takeLive)
	if p.markers {
		// Only now is it known what lives.
		p.keepMarkers()
		s.walk(s.takeMarker)
	}
	points.RemoveEmpty(rm)
}

func (s *split) walk(where points.Destination) {
	s.pointAt = 0
	scopes := s.src.ScopeMetrics()
	for s.scopeAt = range scopes.Len() {
		s.scope = scopes.At(s.scopeAt)
		metrics := s.scope.Metrics()
		for s.metricAt = range metrics.Len() {
			s.metric = metrics.At(s.metricAt)
			points.Move(s.metric, where)
		}
	}
}

func (s *split) takeLive(attrs pcommon.Map, ts pcommon.Timestamp, marker bool) (pmetric.Metric, points.Fate) {
	at := s.page.points[s.pointAt]
	s.pointAt++
	if at.device < 0 || marker {
		return pmetric.Metric{}, points.Stay
	}
	d := &s.page.devices[at.device]
	rewrite(attrs, d.id)
	if s.page.markers || d.source == identity.SourceShared {
		series := liveSeries{device: at.device, key: points.Key(s.metric.Name(), attrs), ts: ts}
		if _, twice := s.live[series]; twice && d.source == identity.SourceShared {
			return pmetric.Metric{}, points.Dropped
		}
		s.live[series] = struct{}{}
	}
	if d.group == 0 {
		g := s.add(at.device, d.owner)
		s.describe(d, g.rm.Resource().Attributes())
		identity.Put(g.rm.Resource().Attributes(), d.owner, d.uid, d.service)
		d.group = len(s.groups)
	}
	return s.metricOf(&s.groups[d.group-1]), points.Moved
}

// takeMarker gives a marker to the identity of the series that it ends: the one
// that its labels name, or, without such labels, the one under which the series
// was last passed on.
func (s *split) takeMarker(attrs pcommon.Map, ts pcommon.Timestamp, _ bool) (pmetric.Metric, points.Fate) {
	at := s.page.points[s.pointAt]
	s.pointAt++
	if at.device < 0 {
		return pmetric.Metric{}, points.Stay
	}
	d := &s.page.devices[at.device]
	c := &d.claims[at.claim]
	rewrite(attrs, d.id)
	key := points.Key(s.metric.Name(), attrs)
	who := c.owner
	if c.source != identity.SourceLabels || d.fact != nil {
		if last, ok := s.tracker.LastOwner(d.id, key, ts); ok {
			who = last
		}
	}
	if _, lives := s.live[liveSeries{device: at.device, key: key, ts: ts}]; lives && who == d.owner {
		return pmetric.Metric{}, points.Dropped
	}
	g := s.find(at.device, who)
	if g == nil {
		g = s.add(at.device, who)
		s.former(d, c, who, g.rm.Resource().Attributes())
	}
	s.tracker.Forget(d.id, who, key)
	g.metricAt = -1 // each marker has a metric of its own, see tracker.end
	return s.metricOf(g), points.Moved
}

func (s *split) find(device int, who owner.Owner) *group {
	if i, ok := s.byOwner[ownedDevice{device, who}]; ok {
		return &s.groups[i]
	}
	return nil
}

func (s *split) add(device int, who owner.Owner) *group {
	rm := s.out.AppendEmpty()
	rm.SetSchemaUrl(s.src.SchemaUrl())
	s.byOwner[ownedDevice{device, who}] = len(s.groups)
	s.groups = append(s.groups, group{device: device, owner: who, rm: rm, scopeAt: -1, metricAt: -1})
	return &s.groups[len(s.groups)-1]
}

// metricOf is the metric of g that takes points of the page's current metric.
func (s *split) metricOf(g *group) pmetric.Metric {
	if g.scopeAt != s.scopeAt {
		g.scopeAt, g.metricAt = s.scopeAt, -1
		g.scope = g.rm.ScopeMetrics().AppendEmpty()
		g.scope.SetSchemaUrl(s.scope.SchemaUrl())
		s.scope.Scope().CopyTo(g.scope.Scope())
	}
	if g.metricAt != s.metricAt {
		g.metricAt = s.metricAt
		g.metric = g.scope.Metrics().AppendEmpty()
		points.Describe(s.metric, g.metric)
	}
	return g.metric
}

// describe writes the resource of a device without its owner.
func (s *split) describe(d *pageDevice, attrs pcommon.Map) {
	for k, v := range s.src.Resource().Attributes().All() {
		if keptOnDevice(k) && !identity.Consumed(k) {
			v.CopyTo(attrs.PutEmpty(k))
		}
	}
	attrs.PutStr(names.HwID, d.id)
	attrs.PutStr(names.HwType, names.HwTypeGPU)
	if parent := deviceid.Parent(d.id); parent != "" {
		attrs.PutStr(names.HwParent, parent)
	}
}

// former writes the resource of a device under an identity that it does not
// have on this page: as it was passed on, where that is known.
func (s *split) former(d *pageDevice, c *claim, who owner.Owner, attrs pcommon.Map) {
	if s.tracker.CopyLast(d.id, who, attrs) {
		return
	}
	s.describe(d, attrs)
	identity.Put(attrs, who, c.uid, c.service)
}

// rewrite makes a scraped point's attributes those of the device id: the
// owner's labels go, for they are on the resource.
func rewrite(attrs pcommon.Map, id string) {
	attrs.RemoveIf(func(key string, _ pcommon.Value) bool { return identity.Consumed(key) })
	if points.Str(attrs, names.HwID) != id {
		attrs.PutStr(names.HwID, id)
	}
}
