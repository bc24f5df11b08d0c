// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package holders

import (
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	// together is how long the parts of a snapshot may take to arrive. Until
	// then what the snapshot before said of other devices is still believed.
	together = time.Second

	// maxSilence is how long a silent device or node is remembered.
	maxSilence = 10 * time.Minute

	sweepInterval = time.Minute
)

// Node is a Kubernetes node. The cluster may be unknown.
type Node struct{ Cluster, Name string }

func (n Node) id() string {
	if n.Cluster == "" {
		return n.Name
	}
	return n.Cluster + "\x00" + n.Name
}

// may reports whether both can be the same node.
func (n Node) may(o Node) bool {
	return n.Name == o.Name && (n.Cluster == o.Cluster || n.Cluster == "" || o.Cluster == "")
}

// Knowledge is who holds which device, of all nodes that were heard. All of its
// methods may be called concurrently. Time is measured by arrival, so that a
// node with a wrong clock is no worse off; which of two snapshots of one node is
// newer is said by their own times.
type Knowledge struct {
	maxAge     time.Duration
	maxDevices int

	index index[[]*node] // device -> the nodes that know it
	nodes index[*node]
	seen  index[*seen] // devices of telemetry

	mu         sync.Mutex
	devices    int // told of by allocations
	seenCount  int
	byNode     map[string]map[string]*seen // seen devices by node name
	unresolved map[*node]struct{}          // nodes with devices that the kubelet could not name
	swept      time.Time
}

// New is empty knowledge that believes nothing older than maxAge, and remembers
// at most maxDevices devices.
func New(maxAge time.Duration, maxDevices int) *Knowledge {
	return &Knowledge{
		maxAge: maxAge, maxDevices: maxDevices,
		byNode: map[string]map[string]*seen{}, unresolved: map[*node]struct{}{},
	}
}

// node is what one node told. All but view is only touched under the lock.
type node struct {
	key     Node
	t       pcommon.Timestamp // of the newest snapshot
	arrived time.Time         // its first part
	told    map[string]*told
	dirty   bool          // view is older than told
	every   time.Duration // the interval of its snapshots, where it is known
	view    publishedView
}

// view is what is believed of one node. It is immutable.
type view struct {
	arrived  time.Time
	believed time.Duration     // since arrived
	facts    map[string]*Fact  // by hw.id, and by MIG UUID
	previous map[string]*Fact  // of the snapshot before
	joined   map[string]string // unresolved device -> hw.id
	unjoined bool
}

func (v *view) fact(id string, now time.Time) *Fact {
	if f := v.facts[id]; f != nil {
		return f
	}
	if now.Sub(v.arrived) < together {
		return v.previous[id]
	}
	return nil
}

// believed is for how long a snapshot of n is believed: three of its intervals, where
// those are longer than what is configured for.
func (k *Knowledge) believed(n *node) time.Duration {
	return max(k.maxAge, min(3*n.every, maxSilence))
}

// Age is the largest age of what is known of a node, and false if none is.
func (k *Knowledge) Age(now time.Time) (age time.Duration, known bool) {
	k.nodes.each(func(_ string, n *node) {
		age, known = max(age, now.Sub(n.view.Load().arrived)), true
	})
	return age, known
}

// Devices calls f with the hw.id of every device that the node told of in its
// newest snapshot, and of those that only the one before has: they are gone,
// unless a further part of the newest has them.
func (k *Knowledge) Devices(key Node, f func(id string, gone bool)) {
	n := k.nodes.get(key.id())
	if n == nil {
		return
	}
	v := n.view.Load()
	each := func(id string, fact *Fact, gone bool) {
		f(id, gone)
		for _, r := range fact.Replicas {
			f(id+r.Suffix, gone)
		}
	}
	for id, fact := range v.facts {
		each(id, fact, false)
	}
	for id, fact := range v.previous {
		each(id, fact, v.facts[id] == nil)
	}
}

// Sweep forgets what has been silent for long. A node is kept while telemetry of
// its devices goes on: that its holders are unknown is worth knowing.
func (k *Knowledge) Sweep(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.swept) < sweepInterval {
		return
	}
	k.swept = now

	var silent []string
	k.seen.each(func(id string, s *seen) {
		if now.Sub(s.lastHeard()) > maxSilence {
			silent = append(silent, id)
			k.leave(s)
		}
	})
	k.seenCount -= len(silent)
	k.seen.update(silent, func(string, *seen) (*seen, bool) { return nil, false })

	var gone []string
	k.nodes.each(func(id string, n *node) {
		if now.Sub(n.arrived) <= maxSilence {
			return
		}
		v := n.view.Load()
		for device := range v.facts {
			if k.seen.get(device) != nil {
				return
			}
		}
		gone = append(gone, id)
		k.devices -= len(n.told)
		k.unindex(n, v.facts, v.previous)
		delete(k.unresolved, n)
	})
	k.nodes.update(gone, func(string, *node) (*node, bool) { return nil, false })
}
