// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/holders"
)

// partsTogether is how long the parts of one snapshot may take to arrive.
const partsTogether = time.Second

// allocations remembers the series of gpu.allocation, so that those that a newer
// complete snapshot of their node no longer has can be ended. The series of a
// device or replica that one container hands to another end with the first part that says
// so, those that are merely gone once all parts had the time to arrive.
type allocations struct {
	tracker *tracker // counts the series, and has the limit
	maxAge  time.Duration
	nodes   map[holders.Node]*nodeAllocations
}

type nodeAllocations struct {
	t       pcommon.Timestamp // of the newest snapshot
	arrived time.Time         // its first part
	heard   time.Time
	number  int // of the newest snapshot
	whole   int // of the newest of those before it whose parts had the time to arrive
	series  map[allocationKey]*allocationSeries
	current int // series of the newest snapshot
}

type allocationKey struct {
	holder owner.Owner
	hash   uint64 // of the point's attributes
}

type allocationSeries struct {
	series
	resource pcommon.Map // shared by the series of one resource
	device   string
	replica  string // hw.id of a replica; "" where it is none
	t        pcommon.Timestamp
	snapshot int  // number of the newest that has it
	alone    bool // the device is held whole, or free
}

// resolve gives the points in all the hw.id of the device that they are joined
// to, and returns the unresolved ids that they had.
func (p *gpuPod) resolve(all pmetric.ResourceMetricsSlice) (former map[string]bool) {
	eachAllocation(all, func(a allocation) {
		if a.point.Flags().NoRecordedValue() {
			return
		}
		attrs := a.point.Attributes()
		resolved, ok := attrs.Get(names.GPUAllocationResolved)
		if !ok || resolved.Type() != pcommon.ValueTypeBool || resolved.Bool() {
			return
		}
		if id, joined := p.know.Resolve(a.node, str(attrs, names.HwID)); joined {
			if former == nil {
				former = map[string]bool{}
			}
			device, _ := deviceid.CutReplica(str(attrs, names.HwID))
			former[device] = true
			resolved.SetBool(true)
			attrs.PutStr(names.HwID, id)
		}
	})
	return former
}

// observe takes note of the points of gpu.allocation in all.
func (t *allocations) observe(all pmetric.ResourceMetricsSlice, now time.Time) (untracked int) {
	var resource pcommon.Map
	var of pmetric.ResourceMetrics
	var metric pmetric.Metric
	var fam *family
	var former []*allocationSeries
	eachAllocation(all, func(a allocation) {
		n := t.nodes[a.node]
		marker := a.point.Flags().NoRecordedValue()
		key := allocationKey{holder: a.holder, hash: seriesKey("", a.point.Attributes())}
		if marker {
			if n != nil && str(a.point.Attributes(), names.HwID) == "" {
				if n.turnTo(a.point.Timestamp(), now, t.maxAge) {
					n.whole = n.number // there are no parts to come
				}
				return
			}
			if n != nil && n.series[key] != nil && n.series[key].t < a.point.Timestamp() {
				t.rename(n.series[key], a.rm)
				t.forget(n, key)
			}
			return
		}
		if a.point.Timestamp() == 0 {
			return // not believed either
		}
		if n == nil {
			if t.tracker.tracked >= t.tracker.maxSeries {
				untracked++
				return
			}
			n = &nodeAllocations{series: map[allocationKey]*allocationSeries{}}
			t.nodes[a.node] = n
		}
		if !n.turnTo(a.point.Timestamp(), now, t.maxAge) {
			return
		}
		s := n.series[key]
		if s != nil && s.snapshot != n.number && str(s.resource, names.ServiceName) != str(a.rm.Resource().Attributes(), names.ServiceName) {
			former = append(former, s) // it goes on under another service
			t.forget(n, key)
			s = nil
		}
		if s == nil {
			if t.tracker.tracked >= t.tracker.maxSeries {
				untracked++
				return
			}
			if of != a.rm {
				of, resource = a.rm, pcommon.NewMap()
				a.rm.Resource().Attributes().CopyTo(resource)
			}
			if metric != a.metric {
				metric, fam = a.metric, newFamily(a.sm, a.metric)
			}
			s = &allocationSeries{resource: resource}
			s.family, s.attrs, s.number = fam, pcommon.NewMap(), t.tracker.added
			a.point.Attributes().CopyTo(s.attrs)
			id := str(s.attrs, names.HwID)
			device, replica := deviceid.CutReplica(id)
			if s.device = device; replica != "" {
				s.replica = id
			}
			n.series[key] = s
			t.tracker.tracked++
			t.tracker.added++
		} else if s.snapshot == n.number {
			return // a point that came twice
		}
		s.t, s.snapshot, s.alone = n.t, n.number, alone(a.point)
		n.current++
	})
	w := allocationEnds{out: all}
	for _, s := range former {
		w.add(s, s.t+pcommon.Timestamp(time.Millisecond))
	}
	return untracked
}

// rename gives a resource that only ends series the service.name that they had.
func (t *allocations) rename(s *allocationSeries, rm pmetric.ResourceMetrics) {
	service, attrs := str(s.resource, names.ServiceName), rm.Resource().Attributes()
	switch {
	case !t.tracker.renames, service == str(attrs, names.ServiceName), contentsOf(rm).live:
	case service == "":
		attrs.Remove(names.ServiceName)
	default:
		attrs.PutStr(names.ServiceName, service)
	}
}

// endGone appends the ends of series that the newest snapshots do not have to
// out. The devices in renamed got another id.
func (t *allocations) endGone(renamed map[string]bool, now time.Time, out pmetric.ResourceMetricsSlice) (ended int) {
	for key, n := range t.nodes {
		if n.current < len(n.series) {
			ended += t.end(n, now.Sub(n.arrived) >= partsTogether, renamed, out)
		}
		if now.Sub(n.heard) > maxSilence {
			t.tracker.tracked -= len(n.series)
			delete(t.nodes, key)
		}
	}
	return ended
}

// turnTo makes the snapshot of time ts the newest, and reports whether it is.
func (n *nodeAllocations) turnTo(ts pcommon.Timestamp, now time.Time, maxAge time.Duration) bool {
	switch {
	case ts < n.t && now.Sub(n.arrived) <= maxAge:
		return false
	case ts != n.t || n.arrived.IsZero():
		if now.Sub(n.arrived) >= partsTogether {
			n.whole = n.number
		}
		n.number++
		n.t, n.arrived, n.current = ts, now, 0
	}
	n.heard = now
	return true
}

func (t *allocations) forget(n *nodeAllocations, key allocationKey) {
	if n.series[key].snapshot == n.number {
		n.current--
	}
	delete(n.series, key)
	t.tracker.tracked--
}

// end ends the series that the newest snapshot of n does not have: all if it is
// complete, else those that the last complete one did not have either, and those
// of devices that the newest gives whole to somebody else, of replicas that it
// gives to somebody else, or that have another id now.
func (t *allocations) end(n *nodeAllocations, complete bool, renamed map[string]bool, out pmetric.ResourceMetricsSlice) int {
	var handed map[string]bool
	var replicas map[string]int // holders of each, one as a rule
	if !complete {
		handed, replicas = map[string]bool{}, map[string]int{}
		for _, s := range n.series {
			if s.snapshot == n.number {
				if s.replica != "" {
					replicas[s.replica]++
				}
				if _, twice := handed[s.device]; twice {
					handed[s.device] = false
				} else {
					handed[s.device] = s.alone
				}
			}
		}
	}
	var over []allocationKey
	for key, s := range n.series {
		if s.snapshot != n.number && (complete || s.snapshot < n.whole || renamed[s.device] ||
			s.alone && handed[s.device] || replicas[s.replica] == 1) {
			over = append(over, key)
		}
	}
	slices.SortFunc(over, func(a, b allocationKey) int { return n.series[a].number - n.series[b].number })
	w := allocationEnds{out: out}
	for _, key := range over {
		s := n.series[key]
		w.add(s, endOf(s.t, n.t))
		t.forget(n, key)
	}
	return len(over)
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
	appendMarker(m, s.attrs, at)
}

// alone reports whether a point gives the device to one container whole, or to
// nobody.
func alone(p pmetric.NumberDataPoint) bool {
	share := p.DoubleValue()
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		share = float64(p.IntValue())
	}
	sharing := str(p.Attributes(), names.GPUSharing)
	return (share == 0 || share == 1) && (sharing == "" || sharing == names.SharingNone)
}

// allocation is one point of gpu.allocation and where it is.
type allocation struct {
	node   holders.Node
	holder owner.Owner
	rm     pmetric.ResourceMetrics
	sm     pmetric.ScopeMetrics
	metric pmetric.Metric
	point  pmetric.NumberDataPoint
}

// eachAllocation calls f with the points of gpu.allocation in all that have a
// node: markers first, so that what they end is not ended once more.
func eachAllocation(all pmetric.ResourceMetricsSlice, f func(allocation)) {
	markers := false
	visit := func(want bool) {
		for i := range all.Len() {
			rm := all.At(i)
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if m.Name() != names.GPUAllocation.Name ||
						m.Type() != pmetric.MetricTypeGauge && m.Type() != pmetric.MetricTypeSum {
						continue
					}
					attrs := rm.Resource().Attributes()
					a := allocation{
						node:   holders.Node{Cluster: str(attrs, names.K8sClusterName), Name: str(attrs, names.K8sNodeName)},
						holder: owner.Of(attrs), rm: rm, sm: sm, metric: m,
					}
					eachNumber(m, func(p pmetric.NumberDataPoint) {
						markers = markers || p.Flags().NoRecordedValue()
						if p.Flags().NoRecordedValue() != want {
							return
						}
						own := a
						own.point = p
						if own.node.Name == "" {
							own.node.Name = str(p.Attributes(), names.K8sNodeName)
						}
						if own.node.Name != "" {
							f(own)
						}
					})
				}
			}
		}
	}
	visit(true)
	visit(false)
}

func eachNumber(m pmetric.Metric, f func(pmetric.NumberDataPoint)) {
	points := m.Gauge().DataPoints
	if m.Type() == pmetric.MetricTypeSum {
		points = m.Sum().DataPoints
	}
	for _, p := range points().All() {
		f(p)
	}
}
