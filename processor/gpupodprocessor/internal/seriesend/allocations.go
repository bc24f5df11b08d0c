// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package seriesend

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// Allocations remembers the series of gpu.allocation that one pipeline passed on, so
// that those that a newer complete snapshot of their node no longer has can be ended.
// Who owns a device is what the ownership.Memory knows, which several pipelines share.
//
// The series of a device or replica that one owner hands to another end with the first
// part of the snapshot with the change, those that are merely gone once all parts had
// the time to arrive.
type Allocations struct {
	tracker *Tracker // counts the series, and has the limit
	maxAge  time.Duration
	nodes   map[ownership.Reporter]*nodeAllocations
}

type nodeAllocations struct {
	ownership.Newest
	last    time.Time // something of the newest snapshot arrived
	series  map[allocationKey]*allocationSeries
	current int // series of the newest snapshot
}

type allocationKey struct {
	owner owner.Owner
	hash  uint64 // of the point's attributes
}

type allocationSeries struct {
	series
	resource pcommon.Map // shared by the series of one resource
	device   string
	replica  string // hw.id of a replica; "" for a device
	t        pcommon.Timestamp
	snapshot int  // number of the newest that has it
	whole    bool // the device is owned whole, or free
}

// NewAllocations returns Allocations that count against the limit of the Tracker. maxAge
// is for how long a snapshot counts.
func NewAllocations(t *Tracker, maxAge time.Duration) *Allocations {
	return &Allocations{tracker: t, maxAge: maxAge, nodes: map[ownership.Reporter]*nodeAllocations{}}
}

// Nodes is the number of nodes, counted by manager, and Series that of the series of one.
func (t *Allocations) Nodes() int { return len(t.nodes) }

func (t *Allocations) Series(n ownership.Reporter) int { return len(t.nodes[n].series) }

// Observe takes note of the points of gpu.allocation in a batch, and appends to out the
// ends of series that continue under another service. untracked are the points of
// series for which there is no room.
func (t *Allocations) Observe(all []ownership.Allocation, now time.Time, out pmetric.ResourceMetricsSlice) (untracked int) {
	// Markers first, so that what they end is not ended once more.
	for i := range all {
		if a := &all[i]; a.Stale && a.Node.Name != "" {
			t.ended(a, now)
		}
	}
	r := recorder{allocations: t, now: now}
	for i := range all {
		if a := &all[i]; !a.Stale && a.Node.Name != "" && a.Point.Timestamp() != 0 {
			r.record(a)
		}
	}
	w := allocationEnds{out: out}
	for _, s := range r.renamed {
		w.add(s, s.t+pcommon.Timestamp(time.Millisecond))
	}
	return r.untracked
}

func keyOf(a *ownership.Allocation) allocationKey {
	return allocationKey{owner: a.Owner, hash: points.Key("", a.Point.Attributes())}
}

// ended takes note of a marker.
func (t *Allocations) ended(a *ownership.Allocation, now time.Time) {
	n := t.nodes[a.Reporter()]
	if n == nil {
		return
	}
	if a.ID == "" {
		if n.turn(a, now, t.maxAge) {
			n.Whole = n.Number // there are no parts to come
		}
		return
	}
	key := keyOf(a)
	if s := n.series[key]; s != nil && s.t < a.Point.Timestamp() {
		t.rename(s, a.Resource)
		t.forget(n, key)
	}
}

// rename gives a resource that only ends series the service.name that they had.
func (t *Allocations) rename(s *allocationSeries, rm pmetric.ResourceMetrics) {
	service, attrs := points.Str(s.resource, names.ServiceName), rm.Resource().Attributes()
	switch {
	case !t.tracker.renames, service == points.Str(attrs, names.ServiceName), points.ContentsOf(rm).Live:
	case service == "":
		attrs.Remove(names.ServiceName)
	default:
		attrs.PutStr(names.ServiceName, service)
	}
}

// turn makes the snapshot of the point the newest, and reports whether it is.
func (n *nodeAllocations) turn(a *ownership.Allocation, now time.Time, maxAge time.Duration) bool {
	ok, turned := n.Turn(a.Point.Timestamp(), now, maxAge)
	if turned {
		n.current = 0
	}
	if ok {
		n.last = now
	}
	return ok
}

func (t *Allocations) forget(n *nodeAllocations, key allocationKey) {
	if n.series[key].snapshot == n.Number {
		n.current--
	}
	delete(n.series, key)
	t.tracker.tracked--
}

// forgetSilent forgets the series of which no end came.
func (t *Allocations) forgetSilent(n *nodeAllocations) {
	for key, s := range n.series {
		if n.Time > s.t+pcommon.Timestamp(ownership.MaxSilence) {
			t.forget(n, key)
		}
	}
}

// recorder remembers the series of one batch. Points of one resource, and of one metric,
// follow each other and share what is remembered of it.
type recorder struct {
	allocations *Allocations
	now         time.Time

	of       pmetric.ResourceMetrics
	resource pcommon.Map // a copy of the attributes of of
	metric   pmetric.Metric
	family   *family // of metric

	renamed   []*allocationSeries // go on under another service
	untracked int
}

func (r *recorder) record(a *ownership.Allocation) {
	t := r.allocations
	n := t.nodes[a.Reporter()]
	if n == nil {
		if t.tracker.full() {
			r.untracked++
			return
		}
		n = &nodeAllocations{series: map[allocationKey]*allocationSeries{}}
		t.nodes[a.Reporter()] = n
	}
	if !n.turn(a, r.now, t.maxAge) {
		return
	}
	n.Every = a.Interval
	key := keyOf(a)
	s := n.series[key]
	// The same snapshot may be sent again when the service's name is known.
	if s != nil && (s.snapshot != n.Number || t.tracker.renames) &&
		points.Str(s.resource, names.ServiceName) != points.Str(a.Resource.Resource().Attributes(), names.ServiceName) {
		r.renamed = append(r.renamed, s)
		t.forget(n, key)
		s = nil
	}
	switch {
	case s != nil && s.snapshot == n.Number:
		return // a duplicate
	case s == nil && t.tracker.full():
		r.untracked++
		return
	case s == nil:
		s = r.start(a)
		n.series[key] = s
		t.tracker.tracked++
		t.tracker.added++
	}
	s.t, s.snapshot, s.whole = n.Time, n.Number, a.Whole()
	n.current++
}

func (r *recorder) start(a *ownership.Allocation) *allocationSeries {
	if r.of != a.Resource {
		r.of, r.resource = a.Resource, pcommon.NewMap()
		a.Resource.Resource().Attributes().CopyTo(r.resource)
	}
	if r.metric != a.Metric {
		r.metric, r.family = a.Metric, newFamily(a.Scope, a.Metric)
	}
	s := &allocationSeries{resource: r.resource}
	s.family, s.attrs, s.number = r.family, pcommon.NewMap(), r.allocations.tracker.added
	a.Point.Attributes().CopyTo(s.attrs)
	id := points.Str(s.attrs, names.HwID)
	device, replica := deviceid.CutReplica(id)
	if s.device = device; replica != "" {
		s.replica = id
	}
	return s
}

// EndGone appends the ends of series that the newest snapshots do not have to out.
// The devices in renamed got another id. Where service.name may change between data and
// marker, another Allocations has seen the same snapshots before and ends them: ends of
// both would differ in time, and a series would end twice.
func (t *Allocations) EndGone(renamed map[string]bool, now time.Time, out pmetric.ResourceMetricsSlice) (ended int) {
	for key, n := range t.nodes {
		switch {
		case n.current >= len(n.series):
		case t.tracker.renames:
			t.forgetSilent(n)
		default:
			ended += t.end(n, n.Complete(now), renamed, out)
		}
		if now.Sub(n.last) > ownership.MaxSilence {
			t.tracker.tracked -= len(n.series)
			delete(t.nodes, key)
		}
	}
	return ended
}

// end ends the series that the newest snapshot of n does not have: all if it is
// complete, else those that the last complete one did not have either, and those
// of devices that the newest gives whole to another owner, of replicas that it gives
// to another owner, or that have another id now.
func (t *Allocations) end(n *nodeAllocations, complete bool, renamed map[string]bool, out pmetric.ResourceMetricsSlice) int {
	var handed map[string]bool
	var replicas map[string]int // owners of each, one as a rule
	if !complete {
		handed, replicas = n.handed()
	}
	var over []allocationKey
	for key, s := range n.series {
		if s.snapshot != n.Number && (complete || s.snapshot < n.Whole || renamed[s.device] ||
			s.whole && handed[s.device] || replicas[s.replica] == 1) {
			over = append(over, key)
		}
	}
	slices.SortFunc(over, func(a, b allocationKey) int { return n.series[a].number - n.series[b].number })
	w := allocationEnds{out: out}
	for _, key := range over {
		s := n.series[key]
		w.add(s, endOf(s.t, n.Time))
		t.forget(n, key)
	}
	return len(over)
}

// handed are the devices that the newest snapshot gives whole to one owner, or to none,
// and the number of owners that it gives each replica to.
func (n *nodeAllocations) handed() (devices map[string]bool, replicas map[string]int) {
	devices, replicas = map[string]bool{}, map[string]int{}
	for _, s := range n.series {
		if s.snapshot != n.Number {
			continue
		}
		if s.replica != "" {
			replicas[s.replica]++
		}
		_, twice := devices[s.device]
		devices[s.device] = s.whole && !twice
	}
	return devices, replicas
}

// allocationEnds writes the ends of series of gpu.allocation to out.
type allocationEnds struct {
	out  pmetric.ResourceMetricsSlice
	rm   pmetric.ResourceMetrics
	sm   pmetric.ScopeMetrics
	last *allocationSeries
}

func (w *allocationEnds) add(s *allocationSeries, at pcommon.Timestamp) {
	other := w.last == nil || !w.last.resource.Equal(s.resource)
	if other {
		w.rm = w.out.AppendEmpty()
		s.resource.CopyTo(w.rm.Resource().Attributes())
	}
	if other || !w.last.family.sameScope(s.family) {
		w.sm = w.rm.ScopeMetrics().AppendEmpty()
		s.family.scope.CopyTo(w.sm.Scope())
		w.sm.SetSchemaUrl(s.family.schemaURL)
	}
	w.last = s
	m := w.sm.Metrics().AppendEmpty()
	s.family.metric.CopyTo(m)
	points.AppendMarker(m, s.attrs, at, nil)
}
