// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package ownership knows who owns which device. It learns from gpu.allocation
// points, joins the devices that the kubelet could not name with those seen in
// telemetry, and answers from immutable snapshots: Lookup takes no lock and
// allocates nothing.
package ownership

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
)

const sweepInterval = time.Minute

// Config of a Memory.
type Config struct {
	MaxAge     time.Duration // for how long a snapshot counts, or longer as Newest has it
	MaxDevices int           // that are remembered, of allocations and of telemetry each
	PodDevices bool          // DevicesOf knows the devices of a pod
	SlurmIndex IndexOrder
}

// Memory is who owns which device, of all nodes that were seen. All of its methods
// may be called concurrently.
type Memory struct {
	Config

	nodes   index[*node]
	only    [managers]atomic.Pointer[node] // the node of a manager, while there is only one
	known   [managers]atomic.Int32         // nodes of a manager
	holding byDevice                       // the nodes that know a device
	seen    sightings

	mu         sync.Mutex         // of the writers
	devices    int                // in snapshots of gpu.allocation
	unresolved map[*node]struct{} // nodes with devices that the kubelet could not name
	swept      time.Time
}

// New is an empty Memory.
func New(cfg Config) *Memory {
	return &Memory{
		Config:     cfg,
		seen:       sightings{maxAge: cfg.MaxAge, limit: cfg.MaxDevices, byNode: map[string]map[string]*sighting{}},
		unresolved: map[*node]struct{}{},
	}
}

// node is the newest snapshot of one manager of a node. All but view is only touched under the
// lock of the Memory.
type node struct {
	key Reporter
	Newest
	listed map[string]*listed
	nested bool // Slurm's daemon runs in a pod
	cut    bool // listed lacks what was beyond a limit
	dirty  bool // view is older than listed
	view   atomic.Pointer[view]
}

// view is what counts of one node. It is immutable.
type view struct {
	arrived  time.Time
	fresh    time.Duration // since arrived
	nested   bool
	facts    map[string]*Fact  // by hw.id, and by MIG UUID
	previous map[string]*Fact  // of the snapshot before
	joined   map[string]string // unresolved device -> hw.id
	unjoined bool
	doubted  map[owner.Owner]bool // see joiner.doubted

	at           pcommon.Timestamp
	pods         map[owner.Owner]*Devices // by pod; nil where they are not wanted, or cut
	previousPods map[owner.Owner]*Devices // of the snapshot before
	parts        bool                     // a further part may arrive: it lacks a device of the one before, or is the first
}

func (v *view) fact(id string, now time.Time) *Fact {
	if f := v.facts[id]; f != nil {
		return f
	}
	if now.Sub(v.arrived) < Together {
		return v.previous[id]
	}
	return nil
}

func (v *view) expired(now time.Time) bool { return now.Sub(v.arrived) > v.fresh }

// Learned is what became of the points of a batch.
type Learned struct {
	Nodes   []Snapshot // those with points of their newest snapshot
	Late    int        // points of a snapshot older than the newest
	Invalid int        // points that cannot be true
	Limited int        // points refused by a limit
	// Slow is the longest interval of which three are more than the maxAge of New.
	Slow time.Duration
}

// Snapshot is the newest one of a node.
type Snapshot struct {
	Reporter
	Newest
	Fresh time.Duration // since it arrived, for how long it counts
}

// Learn takes in the points of gpu.allocation of a batch.
func (m *Memory) Learn(all []Allocation, now time.Time) (l Learned) {
	if len(all) == 0 {
		return l
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var changed []*node
	for i := range all {
		if n := m.learn(&all[i], now, &l); n != nil && !n.dirty {
			n.dirty = true
			changed = append(changed, n)
		}
	}
	for _, n := range changed {
		l.Nodes = append(l.Nodes, Snapshot{n.key, n.Newest, n.Fresh(m.MaxAge)})
		m.publish(n, now)
	}
	return l
}

// learn takes in one point, and returns its node if the point is of the newest
// snapshot.
func (m *Memory) learn(a *Allocation, now time.Time, l *Learned) *node {
	if 3*a.Interval > m.MaxAge {
		l.Slow = max(l.Slow, a.Interval)
	}
	n := m.nodes.get(a.Reporter().id())
	if a.Stale {
		if n != nil && a.ID == "" && m.turn(n, a, now) {
			return n // it has no device left
		}
		return nil
	}
	// Without a time one snapshot cannot be distinguished from the next.
	if a.Node.Name == "" || a.ID == "" || a.Point.Timestamp() == 0 || !a.possible() {
		l.Invalid++
		return nil
	}
	if n == nil {
		if m.devices >= m.MaxDevices {
			l.Limited++
			return nil
		}
		n = m.addNode(a.Reporter())
	}
	if !m.turn(n, a, now) {
		l.Late++
		return nil
	}
	n.Every = a.Interval
	if !m.list(n, a) {
		n.cut = true
		l.Limited++
	}
	return n
}

func (m *Memory) addNode(key Reporter) *node {
	n := &node{key: key.clone(), listed: map[string]*listed{}}
	n.view.Store(&view{})
	m.nodes.update([]string{n.key.id()}, func(string, *node) (*node, bool) { return n, true })
	if m.known[key.Manager].Add(1) == 1 {
		m.only[key.Manager].Store(n)
	} else {
		m.only[key.Manager].Store(nil)
	}
	return n
}

// turn makes the snapshot of the point the newest one of n, and reports whether it is.
func (m *Memory) turn(n *node, a *Allocation, now time.Time) bool {
	fresh := n.Fresh(m.MaxAge)
	before := n.Newest
	ok, turned := n.Turn(a.Point.Timestamp(), now, m.MaxAge)
	if !turned {
		return ok
	}
	v := n.view.Load()
	next := &view{arrived: now, fresh: fresh}
	if now.Sub(before.Arrived) <= fresh {
		newest := v
		if n.dirty {
			newest = n.build(newJoiner(m, n, now), before, fresh, m.PodDevices)
		}
		next.previous, next.previousPods = newest.facts, newest.pods
		next.at, next.pods = newest.at, newest.pods // until it is published
	}
	m.devices -= len(n.listed)
	old := maps.Clone(v.previous)
	n.listed, n.cut, n.nested = map[string]*listed{}, false, false
	n.view.Store(next)
	m.holding.replace(n, next.previous, v.facts, old)
	return true
}

// list adds one point to the newest snapshot of n, if there is room.
func (m *Memory) list(n *node, a *Allocation) bool {
	n.nested = n.nested || a.nested()
	hint, resolved := hintOf(n.key.Node, a)
	device := n.listed[hint.Device]
	if device == nil {
		if m.devices >= m.MaxDevices {
			return false
		}
		device = newListed(hint, resolved, a.Point.Attributes())
		n.listed[device.Device] = device
		m.devices++
	}
	return device.add(claimOf(a, hint.Replica))
}

// publish makes the view of n that of its newest snapshot.
func (m *Memory) publish(n *node, now time.Time) {
	n.dirty = false
	old := n.view.Load()
	v := n.build(newJoiner(m, n, now), n.Newest, n.Fresh(m.MaxAge), m.PodDevices)
	v.previous, v.previousPods = old.previous, old.previousPods
	v.parts = v.previous == nil
	for id := range v.previous {
		v.parts = v.parts || v.facts[id] == nil
	}
	if v.unjoined || len(v.joined) > 0 {
		m.unresolved[n] = struct{}{}
	} else {
		delete(m.unresolved, n)
	}
	n.view.Store(v)
	m.holding.replace(n, v.facts, old.facts, nil)
}

// Sweep forgets what has been silent for long. A node is kept while telemetry of
// its devices goes on: that its owners are unknown is worth knowing.
func (m *Memory) Sweep(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.swept) < sweepInterval {
		return
	}
	m.swept = now
	m.seen.sweep(now)

	var gone []string
	m.nodes.each(func(id string, n *node) {
		if now.Sub(n.Arrived) <= MaxSilence {
			return
		}
		v := n.view.Load()
		for device := range v.facts {
			if m.seen.get(device) != nil {
				return
			}
		}
		gone = append(gone, id)
		m.devices -= len(n.listed)
		m.holding.remove(n, v.facts, v.previous)
		delete(m.unresolved, n)
	})
	m.nodes.update(gone, func(string, *node) (*node, bool) { return nil, false })
	if len(gone) == 0 {
		return
	}
	var left [managers][]*node
	m.nodes.each(func(_ string, n *node) { left[n.key.Manager] = append(left[n.key.Manager], n) })
	for by, nodes := range left {
		m.known[by].Store(int32(len(nodes)))
		if len(nodes) == 1 {
			m.only[by].Store(nodes[0])
		}
	}
}
