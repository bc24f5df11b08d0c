// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package holders

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
)

// maxClaims bounds what is remembered of one device: it has one holder, or as
// many as it has replicas.
const maxClaims = 1024

type publishedView = atomic.Pointer[view]

// told is what the points of one snapshot say of one device.
type told struct {
	deviceid.Hint
	resolved        bool
	parent, profile string
	claims          []claim
	all             map[claim]struct{} // the claims, once they are many
}

// fewClaims is how many claims are looked through one by one.
const fewClaims = 8

// add takes note of c, and reports whether there was room.
func (t *told) add(c claim) bool {
	if _, known := t.all[c]; known || len(t.claims) <= fewClaims && slices.Contains(t.claims, c) {
		return true
	}
	if len(t.claims) >= maxClaims {
		return false
	}
	c.holder = c.holder.Clone()
	c.replica = strings.Clone(c.replica)
	t.claims = append(t.claims, c)
	if len(t.claims) > fewClaims {
		if t.all == nil {
			t.all = map[claim]struct{}{}
			for _, old := range t.claims {
				t.all[old] = struct{}{}
			}
		}
		t.all[c] = struct{}{}
	}
	return true
}

// Learned is what became of the points of a batch.
type Learned struct {
	Any     bool       // there were some
	Nodes   []Snapshot // those with points of their newest snapshot
	Late    int        // points of a snapshot older than the newest
	Invalid int        // points that say nothing that can be believed
	Limited int        // points refused by a limit
	// Slow is the longest interval of which three are more than the maxAge of New.
	Slow time.Duration
}

// Snapshot is the newest one of a node.
type Snapshot struct {
	Node     Node
	Time     pcommon.Timestamp
	Believed time.Duration // how long it is believed
}

// Learn takes in the points of gpu.allocation in md, which it leaves as it is.
func (k *Knowledge) Learn(md pmetric.Metrics, now time.Time) (l Learned) {
	var changed []*node
	locked := false
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != names.GPUAllocation.Name {
					continue
				}
				l.Any = true
				if !locked {
					k.mu.Lock()
					defer k.mu.Unlock()
					locked = true
				}
				changed = k.learnMetric(rm.Resource().Attributes(), m, now, changed, &l)
			}
		}
	}
	for _, n := range changed {
		l.Nodes = append(l.Nodes, Snapshot{n.key, n.t, k.believed(n)})
		k.publish(n, now)
	}
	return l
}

func (k *Knowledge) learnMetric(resource pcommon.Map, m pmetric.Metric, now time.Time, changed []*node, l *Learned) []*node {
	points := numbers(m)
	if points == (pmetric.NumberDataPointSlice{}) {
		return changed
	}
	every := interval(m)
	if 3*every > k.maxAge {
		l.Slow = max(l.Slow, every)
	}
	own := Node{Cluster: str(resource, names.K8sClusterName), Name: str(resource, names.K8sNodeName)}
	who := owner.Of(resource)
	for _, p := range points.All() {
		key := own
		if key.Name == "" {
			key.Name = str(p.Attributes(), names.K8sNodeName)
		}
		id, share := str(p.Attributes(), names.HwID), value(p)
		if p.Flags().NoRecordedValue() {
			// Without a device it says that the node has none any more.
			if n := k.nodes.get(key.id()); n != nil && id == "" && k.turnTo(n, p.Timestamp(), now) && !n.dirty {
				n.dirty = true
				changed = append(changed, n)
			}
			continue
		}
		// Without a time nobody can tell one snapshot from the next.
		if key.Name == "" || id == "" || p.Timestamp() == 0 || !believable(who, share) {
			l.Invalid++
			continue
		}
		n := k.nodes.get(key.id())
		if n == nil {
			if k.devices >= k.maxDevices {
				l.Limited++
				continue
			}
			n = k.addNode(key)
		}
		if !k.turnTo(n, p.Timestamp(), now) {
			l.Late++
			continue
		}
		n.every = every
		if !k.tell(n, id, who, share, p.Attributes()) {
			l.Limited++
		}
		if !n.dirty {
			n.dirty = true
			changed = append(changed, n)
		}
	}
	return changed
}

// believable reports whether a share can be true: nobody holds nothing, and what
// is free is held by nobody.
func believable(who owner.Owner, share float64) bool {
	const rounding = 1e-6
	if !who.Valid() {
		return false
	}
	if who.IsZero() {
		return share == 0
	}
	return share > 0 && share <= 1+rounding // NaN is neither
}

func (k *Knowledge) addNode(key Node) *node {
	key = Node{Cluster: strings.Clone(key.Cluster), Name: strings.Clone(key.Name)}
	n := &node{key: key, told: map[string]*told{}}
	n.view.Store(&view{})
	k.nodes.update([]string{key.id()}, func(string, *node) (*node, bool) { return n, true })
	return n
}

// turnTo makes the snapshot of time t the newest one of n, and reports whether
// it is. When the newest has expired any other is newer: a clock was set back.
func (k *Knowledge) turnTo(n *node, t pcommon.Timestamp, now time.Time) bool {
	known := now.Sub(n.arrived) <= k.believed(n)
	switch {
	case n.t == t && !n.arrived.IsZero():
		return true
	case known && t < n.t:
		return false
	}
	v := n.view.Load()
	next := &view{arrived: now, believed: k.believed(n)}
	if known {
		next.previous = v.facts
		if n.dirty {
			next.previous = k.build(n, now).facts
		}
	}
	k.devices -= len(n.told)
	old := maps.Clone(v.previous)
	n.t, n.arrived, n.told = t, now, map[string]*told{}
	n.view.Store(next)
	k.reindex(n, next.previous, v.facts, old)
	return true
}

// tell adds one point to the newest snapshot of n, if there is room.
func (k *Knowledge) tell(n *node, id string, who owner.Owner, share float64, attrs pcommon.Map) bool {
	h, resolved := deviceid.Hint{}, resolved(n.key, id, attrs)
	if resolved {
		h.Device, h.Replica = deviceid.CutReplica(id)
	} else {
		h = parseHint(n.key, id)
	}
	t := n.told[h.Device]
	if t == nil {
		if k.devices >= k.maxDevices {
			return false
		}
		t = &told{
			resolved: resolved,
			parent:   strings.Clone(str(attrs, names.HwParent)),
			profile:  strings.Clone(str(attrs, names.GPUMIGProfile)),
		}
		t.Device, t.Index, t.Instance = strings.Clone(h.Device), strings.Clone(h.Index), strings.Clone(h.Instance)
		t.MIGUUID = strings.Clone(h.MIGUUID)
		if uuid := str(attrs, names.GPUMIGUUID); uuid != "" {
			t.MIGUUID = strings.Clone(uuid)
		}
		n.told[t.Device] = t
		k.devices++
	}
	sharing := str(attrs, names.GPUSharing)
	return t.add(claim{
		holder: who, share: share, replica: h.Replica,
		shared: sharing != "" && sharing != names.SharingNone,
		dra:    str(attrs, names.GPUAttributionSource) == names.SourceDRA,
	})
}

// resolved reports whether id is a device's own. Without a word on it, the form
// of an unresolved id tells.
func resolved(n Node, id string, attrs pcommon.Map) bool {
	if v, ok := attrs.Get(names.GPUAllocationResolved); ok && v.Type() == pcommon.ValueTypeBool {
		return v.Bool()
	}
	return !strings.HasPrefix(id, n.Name+"/")
}

func parseHint(n Node, id string) deviceid.Hint { return deviceid.ParseUnresolved(n.Name, id) }

func numbers(m pmetric.Metric) (none pmetric.NumberDataPointSlice) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints()
	}
	return none
}

// interval is the time between two snapshots, as gpu_allocation says it with them; 0
// where it does not.
func interval(m pmetric.Metric) time.Duration {
	v, ok := m.Metadata().Get(names.GPUAllocationInterval)
	if !ok || v.Type() != pcommon.ValueTypeDouble || !(v.Double() > 0) {
		return 0
	}
	return time.Duration(min(v.Double(), maxSilence.Seconds()) * float64(time.Second))
}

func value(p pmetric.NumberDataPoint) float64 {
	switch p.ValueType() {
	case pmetric.NumberDataPointValueTypeDouble:
		return p.DoubleValue()
	case pmetric.NumberDataPointValueTypeInt:
		return float64(p.IntValue())
	}
	return math.NaN()
}

func str(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok && v.Type() == pcommon.ValueTypeStr {
		return v.Str()
	}
	return ""
}
