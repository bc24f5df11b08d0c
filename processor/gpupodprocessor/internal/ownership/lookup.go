// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
)

// Lookup returns who owns the device or replica id at the time now. The answer is
// never nil.
func (m *Memory) Lookup(id string, now time.Time) *Fact {
	device, replica := deviceid.CutReplica(id)
	f := m.device(device, now)
	if replica == "" || f.State != Shared {
		return f
	}
	for i := range f.Replicas {
		if r := &f.Replicas[i]; r.Suffix == replica {
			return &Fact{State: Owned, Owner: r.Owner, Since: r.Since}
		}
	}
	return f
}

func (m *Memory) device(id string, now time.Time) *Fact {
	found, stale := unknown, false
	for _, n := range m.holding.get(id) {
		v := n.view.Load()
		f := v.fact(id, now)
		switch {
		case f == nil:
		case v.expired(now):
			stale = true
		case found == unknown:
			found = f
		case !found.agrees(f):
			// Two nodes list one device, as after a machine got a new name.
			found = contested
		}
	}
	if found != unknown && found.State != Free {
		return found
	}
	// The tiles of a GPU of Intel are given with it.
	if s := m.seen.get(id); s != nil && m.seen.fresh(&s.lastChild, now) && deviceid.MakeOf(id) != deviceid.MakeIntelGPU {
		return migParent
	}
	if found == unknown && stale {
		return expired
	}
	return found
}

// DevicesOf returns the devices of a pod at the time now, nil where they are not known
// or it has none. The newest snapshot of the pod's node has to be of the pod's lifetime:
// one of before the pod started is about another pod of that name.
func (m *Memory) DevicesOf(p *Pod, now time.Time) *Devices {
	n, alone := m.nodeOf(p.Node)
	if n == nil {
		return nil
	}
	v := n.view.Load()
	if v.expired(now) || p.Started > v.at || v.parts && now.Sub(v.arrived) < Together {
		return nil
	}
	d := v.pods[owner.Owner{Namespace: p.Namespace, Pod: p.Name}]
	if d == nil || len(d.IDs) == 0 {
		return nil
	}
	for _, id := range d.IDs {
		if alone {
			break // no other node can list it too
		}
		if s := m.Lookup(id, now).State; s != Owned && s != Shared {
			return nil
		}
	}
	return d
}

// nodeOf is the node that a resource names, and whether no other one is known: then the
// resource need not name it.
func (m *Memory) nodeOf(named Node) (n *node, alone bool) {
	if n := m.only.Load(); n != nil {
		named.Name = cmp.Or(named.Name, n.key.Name)
		if !named.may(n.key) {
			return nil, true
		}
		return n, true
	}
	return m.nodes.get(named.id()), false
}

// Unjoined reports whether the node has allocations that are joined to no
// device: a device of it without owner may be one of them.
func (m *Memory) Unjoined(node Node, now time.Time) bool {
	n := m.nodes.get(node.id())
	if n == nil {
		return false
	}
	v := n.view.Load()
	return v.unjoined && !v.expired(now)
}

// OfWhole reports whether a device is a tile of a GPU of Intel, which device plugins give as a
// whole, and that the newest snapshot has.
func (m *Memory) OfWhole(id string, now time.Time) bool {
	parent := deviceid.Parent(id)
	if parent == "" || deviceid.MakeOf(id) != deviceid.MakeIntelGPU {
		return false
	}
	switch m.Lookup(parent, now).State {
	case Owned, Free, Shared:
		return true
	}
	return false
}

// Checked is what remains of the owner that the exporter's labels name on a device of AMD,
// after a comparison with how many devices of the node the kubelet has given to its
// containers: the owner, its pod alone, or none.
func (m *Memory) Checked(d *Device, label owner.Owner, now time.Time) owner.Owner {
	n := m.nodes.get(d.Node.id())
	if n == nil {
		return label
	}
	v := n.view.Load()
	if len(v.doubted) == 0 || v.expired(now) || v.parts && now.Sub(v.arrived) < Together || deviceid.MakeOf(d.ID) != deviceid.MakeAMD {
		return label
	}
	switch pod := label.Whole(); {
	case v.doubted[pod]:
		return owner.Owner{}
	case v.doubted[label]:
		return pod
	}
	return label
}

// Resolve gives the points that are joined to a device its hw.id, and returns the ids
// of the devices that they had before.
func (m *Memory) Resolve(all []Allocation) (former map[string]bool) {
	for i := range all {
		a := &all[i]
		if a.Stale || a.Node.Name == "" {
			continue
		}
		attrs := a.Point.Attributes()
		resolved, ok := attrs.Get(names.GPUAllocationResolved)
		if !ok || resolved.Type() != pcommon.ValueTypeBool || resolved.Bool() {
			continue
		}
		if id, joined := m.resolve(a.Node, a.ID); joined {
			if former == nil {
				former = map[string]bool{}
			}
			device, _ := deviceid.CutReplica(a.ID)
			former[device] = true
			resolved.SetBool(true)
			attrs.PutStr(names.HwID, id)
		}
	}
	return former
}

// resolve is the hw.id of a device that the kubelet could not name, replica included,
// if it is joined to one.
func (m *Memory) resolve(node Node, hwID string) (string, bool) {
	n := m.nodes.get(node.id())
	if n == nil {
		return "", false
	}
	v := n.view.Load()
	if len(v.joined) == 0 {
		return "", false
	}
	h := deviceid.ParseUnresolved(node.Name, hwID)
	id, ok := v.joined[h.Device]
	return id + h.Replica, ok
}

// Age is the largest age of what is known of a node, and false if none is.
func (m *Memory) Age(now time.Time) (age time.Duration, known bool) {
	m.nodes.each(func(_ string, n *node) {
		age, known = max(age, now.Sub(n.view.Load().arrived)), true
	})
	return age, known
}

// Devices calls f with the hw.id of every device in the newest snapshot of the node,
// and of those that only the one before has: they are gone, unless a further part of
// the newest has them.
func (m *Memory) Devices(key Node, f func(id string, gone bool)) {
	n := m.nodes.get(key.id())
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
