// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"slices"
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
	var by [managers]answer
	nested := false
	for _, n := range m.holding.get(id) {
		v := n.view.Load()
		by[n.key.Manager].add(v.fact(id, now), v.expired(now))
		nested = nested || v.nested
	}
	found := both(by[Kubelet].fact(), by[Slurm].fact(), nested)
	switch found.State {
	case Unknown, Free, Expired:
	default:
		return found
	}
	// The tiles of a GPU of Intel are given with it.
	if s := m.seen.get(id); s != nil && m.seen.fresh(&s.lastChild, now) && deviceid.MakeOf(id) != deviceid.MakeIntelGPU {
		return migParent
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

// nodeOf is the node that a resource names, or the only one that is known; alone is whether
// nothing else reports devices.
func (m *Memory) nodeOf(named Node) (n *node, alone bool) {
	if n := m.only[Kubelet].Load(); n != nil {
		alone = m.known[Slurm].Load() == 0
		named.Name = cmp.Or(named.Name, n.key.Name)
		if !named.may(n.key.Node) {
			return nil, alone
		}
		return n, alone
	}
	return m.nodes.get(named.id()), false
}

// Unjoined reports whether the node has allocations that are joined to no
// device: a device of it without owner may be one of them.
func (m *Memory) Unjoined(node Node, now time.Time) bool {
	for by := range managers {
		if n := m.reporter(node, by); n != nil {
			if v := n.view.Load(); v.unjoined && !v.expired(now) {
				return true
			}
		}
	}
	return false
}

// Knows reports whether a manager reports devices of any node.
func (m *Memory) Knows(by Manager) bool { return m.known[by].Load() > 0 }

// reporter is the manager of a node, nil where it is not known. Telemetry of a machine by
// itself does not name its node.
func (m *Memory) reporter(node Node, by Manager) *node {
	if m.known[by].Load() == 0 {
		return nil
	}
	if n := m.only[by].Load(); by == Slurm && node.Name == "" && n != nil {
		return n
	}
	return m.nodes.get(Reporter{node, by}.id())
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

// Checked is what remains of the owner that the exporter's labels name. On a device of AMD it
// is compared with how many devices of the node the kubelet has given to its containers: the
// owner, its pod alone, or none. A job is none where Slurm reports the node's jobs, since the
// label of one that ended may remain.
func (m *Memory) Checked(d *Device, label owner.Owner, now time.Time) owner.Owner {
	if label.IsJob() {
		if n := m.reporter(d.Node, Slurm); n != nil && !n.view.Load().expired(now) {
			return owner.Owner{}
		}
		return label
	}
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
		if id, joined := m.resolve(a.Reporter(), a.ID); joined {
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

// resolve is the hw.id of a device that its manager could not name, replica included,
// if it is joined to one.
func (m *Memory) resolve(node Reporter, hwID string) (string, bool) {
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

// Devices calls f with the hw.id of every device in the newest snapshot of a manager, and of
// those that only the one before has: they are gone, unless a further part of the newest has
// them, or the node's other manager.
func (m *Memory) Devices(key Reporter, f func(id string, gone bool)) {
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
		each(id, fact, v.facts[id] == nil && !m.otherManager(id, n))
	}
}

// otherManager reports whether the newest snapshot of another manager than that of n has the device.
func (m *Memory) otherManager(id string, n *node) bool {
	return slices.ContainsFunc(m.holding.get(id), func(o *node) bool {
		return o.key.Manager != n.key.Manager && o.view.Load().facts[id] != nil
	})
}
