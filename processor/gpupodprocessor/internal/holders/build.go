// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package holders

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
)

// publish makes the view of n that of its newest snapshot.
func (k *Knowledge) publish(n *node, now time.Time) {
	n.dirty = false
	old := n.view.Load()
	v := k.build(n, now)
	v.previous = old.previous
	if v.unjoined || len(v.joined) > 0 {
		k.unresolved[n] = struct{}{}
	} else {
		delete(k.unresolved, n)
	}
	n.view.Store(v)
	k.reindex(n, v.facts, old.facts, nil)
}

// build decides what the newest snapshot of n says of each device.
func (k *Knowledge) build(n *node, now time.Time) *view {
	v := &view{arrived: n.arrived, believed: k.believed(n), facts: make(map[string]*Fact, len(n.told))}
	j := k.joiner(n, now)
	claims := make(map[string][]claim, len(n.told))
	for _, t := range n.told {
		id := t.Device
		if !t.resolved {
			if real := j.join(t); real != "" {
				if v.joined == nil {
					v.joined = map[string]string{}
				}
				v.joined[t.Device], id = real, real
			} else {
				v.unjoined = true
			}
		}
		claims[id] = append(claims[id], t.claims...)
	}
	for id, c := range claims {
		v.facts[id] = decide(slices.Clip(c))
		v.facts[id].date(n.view.Load().previous[id], n.t)
	}
	for _, t := range n.told {
		id := t.Device
		if real, ok := v.joined[id]; ok {
			id = real
		}
		// A log may name the instance by its own id.
		if t.MIGUUID != "" && v.facts[t.MIGUUID] == nil {
			v.facts[t.MIGUUID] = v.facts[id]
		}
	}
	for _, s := range j.seen {
		if f := v.facts[s.MIGUUID]; s.MIGUUID != "" && f == nil && v.facts[s.ID] != nil {
			v.facts[s.MIGUUID] = v.facts[s.ID]
		}
	}
	k.parents(n, v)
	return v
}

// date says since when a Fact of the snapshot at t is known: since the one before it,
// where that says the same.
func (f *Fact) date(before *Fact, t pcommon.Timestamp) {
	if f.State == Held {
		f.Since = t
		if before != nil && before.State == Held && before.Holder == f.Holder {
			f.Since = min(t, before.Since)
		}
	}
	for i := range f.Replicas {
		r := &f.Replicas[i]
		r.Since = t
		if before == nil {
			continue
		}
		for _, old := range before.Replicas {
			if old.Suffix == r.Suffix && old.Holder == r.Holder {
				r.Since = min(t, old.Since)
			}
		}
	}
}

// parents says of the GPUs that have instances that nobody holds them. What is
// held with its instances is contested; what only could be partitioned is not.
func (k *Knowledge) parents(n *node, v *view) {
	for _, t := range n.told {
		id := t.Device
		if real, ok := v.joined[id]; ok {
			id = real
		}
		parent := t.parent
		if t.resolved || v.joined[t.Device] != "" {
			parent = deviceid.Parent(id)
		}
		if parent == "" {
			continue
		}
		child, f := v.facts[id], v.facts[parent]
		switch {
		case f == nil || f.State == Free:
			v.facts[parent] = migParent
		case f != migParent && child.State != Free:
			v.facts[parent] = contested
		}
	}
}

// reindex makes the index say that n knows the devices of now, and no longer
// those of before that are neither in now nor in its view.
func (k *Knowledge) reindex(n *node, now, before, longBefore map[string]*Fact) {
	v := n.view.Load()
	var added []string
	for id := range now {
		if !slices.Contains(k.index.get(id), n) {
			added = append(added, id)
		}
	}
	k.index.update(added, func(_ string, old []*node) ([]*node, bool) {
		return append(slices.Clip(old), n), true
	})
	gone := map[string]*Fact{}
	for _, m := range []map[string]*Fact{before, longBefore} {
		for id := range m {
			if v.facts[id] == nil && v.previous[id] == nil {
				gone[id] = nil
			}
		}
	}
	if len(gone) > 0 {
		k.unindex(n, gone)
	}
}

func (k *Knowledge) unindex(n *node, devices ...map[string]*Fact) {
	var ids []string
	for _, m := range devices {
		for id := range m {
			ids = append(ids, id)
		}
	}
	k.index.update(ids, func(_ string, old []*node) ([]*node, bool) {
		rest := make([]*node, 0, len(old))
		for _, o := range old {
			if o != n {
				rest = append(rest, o)
			}
		}
		return rest, len(rest) > 0
	})
}
