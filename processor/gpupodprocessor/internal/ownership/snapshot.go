// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// maxClaims bounds what is remembered of one device: it has one owner, or as many as
// it has replicas.
const maxClaims = 1024

// listed is what the points of one snapshot state of one device.
type listed struct {
	deviceid.Hint
	resolved        bool
	counted         bool // AMD's: the exporter names owners of each partition
	parent, profile string
	claims          []claim
	all             map[claim]struct{} // the claims, once they are many
}

func newListed(hint deviceid.Hint, resolved bool, attrs pcommon.Map) *listed {
	l := &listed{
		resolved: resolved,
		parent:   strings.Clone(points.Str(attrs, names.HwParent)),
		profile:  strings.Clone(migprofile.Normal(points.Str(attrs, names.GPUMIGProfile))),
	}
	resource := points.Str(attrs, names.K8sResourceName)
	l.counted = !resolved && (strings.HasPrefix(resource, "amd.com/") || resource == "gpu.amd.com")
	l.Device, l.Index, l.Instance = strings.Clone(hint.Device), strings.Clone(hint.Index), strings.Clone(hint.Instance)
	l.MIGUUID, l.Slurm = strings.Clone(hint.MIGUUID), strings.Clone(hint.Slurm)
	if uuid := points.Str(attrs, names.GPUMIGUUID); uuid != "" {
		l.MIGUUID = strings.Clone(uuid)
	}
	return l
}

// fewClaims is how many claims are looked through one by one.
const fewClaims = 8

// add takes note of c, and reports whether there was room.
func (l *listed) add(c claim) bool {
	if _, known := l.all[c]; known || len(l.claims) <= fewClaims && slices.Contains(l.claims, c) {
		return true
	}
	if len(l.claims) >= maxClaims {
		return false
	}
	c.owner = c.owner.Clone()
	c.replica = strings.Clone(c.replica)
	l.claims = append(l.claims, c)
	if len(l.claims) > fewClaims {
		if l.all == nil {
			l.all = map[claim]struct{}{}
			for _, old := range l.claims {
				l.all[old] = struct{}{}
			}
		}
		l.all[c] = struct{}{}
	}
	return true
}

// claimOf is the claim of one point on a device, or on one replica of it.
func claimOf(a *Allocation, replica string) claim {
	return claim{
		owner: a.Owner, share: points.Value(a.Point), replica: replica, shared: a.shared(),
		dra: a.Source == names.SourceDRA,
	}
}

// hintOf is what the id of a point contains about its device, and whether it is the device's
// own. Without the attribute for that, the form of an unresolved id decides.
func hintOf(n Node, a *Allocation) (hint deviceid.Hint, resolved bool) {
	resolved = !strings.HasPrefix(a.ID, n.Name+"/")
	if v, ok := a.Point.Attributes().Get(names.GPUAllocationResolved); ok && v.Type() == pcommon.ValueTypeBool {
		resolved = v.Bool()
	}
	if !resolved {
		return deviceid.ParseUnresolved(n.Name, a.ID), false
	}
	hint.Device, hint.Replica = deviceid.CutReplica(a.ID)
	return hint, true
}

// build decides about each device of the snapshot at of n, and with pods which of them
// each pod has.
func (n *node) build(j *joiner, at Newest, fresh time.Duration, pods bool) *view {
	v := &view{at: at.Time, arrived: at.Arrived, fresh: fresh, nested: n.nested, facts: make(map[string]*Fact, len(n.listed))}
	claims := make(map[string][]claim, len(n.listed))
	take := func(l *listed, real string) {
		id := l.Device
		if real != "" {
			if v.joined == nil {
				v.joined = map[string]string{}
			}
			v.joined[l.Device], id = real, real
		}
		claims[id] = append(claims[id], l.claims...)
	}
	var unjoined []*listed
	for _, l := range n.listed {
		real := ""
		if !l.resolved {
			if real = j.join(l); real == "" {
				unjoined = append(unjoined, l)
				continue
			}
		}
		take(l, real)
	}
	byJob := j.byJob(unjoined, claims)
	v.unjoined = len(byJob) < len(unjoined)
	for _, l := range unjoined {
		take(l, byJob[l])
	}
	for id, c := range claims {
		v.facts[id] = decide(slices.Clip(c))
		v.facts[id].date(n.view.Load().previous[id], at.Time)
	}
	for _, l := range n.listed {
		// A log may name the instance by its own id.
		if l.MIGUUID != "" && v.facts[l.MIGUUID] == nil {
			v.facts[l.MIGUUID] = v.facts[v.idOf(l)]
		}
	}
	for _, s := range j.seen {
		if f := v.facts[s.MIGUUID]; s.MIGUUID != "" && f == nil && v.facts[s.ID] != nil {
			v.facts[s.MIGUUID] = v.facts[s.ID]
		}
	}
	v.parents(n.listed)
	if v.unjoined && !n.cut {
		v.doubted = j.doubted(v)
	}
	if pods && !n.cut && n.key.Manager == Kubelet {
		v.pods = v.podDevices(n.listed)
		for pod, d := range v.pods {
			d.describe(n.view.Load().previousPods[pod], at.Time, j.all)
		}
	}
	return v
}

// idOf is the hw.id of a device of the snapshot, the unresolved one if it is joined to
// no device.
func (v *view) idOf(l *listed) string {
	if real, ok := v.joined[l.Device]; ok {
		return real
	}
	return l.Device
}

// parents makes the GPUs that have instances parents, which have no owner. What is
// owned as well as its instances is contested; what only could be partitioned is not.
func (v *view) parents(all map[string]*listed) {
	for _, l := range all {
		id, parent := v.idOf(l), l.parent
		if l.resolved || v.joined[l.Device] != "" {
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

// byDevice are the nodes that know a device, by hw.id.
type byDevice struct{ index[[]*node] }

// replace notes that n knows the devices of now, and no longer those of before that
// are neither in now nor in its view.
func (x *byDevice) replace(n *node, now, before, longBefore map[string]*Fact) {
	v := n.view.Load()
	var added []string
	for id := range now {
		if !slices.Contains(x.get(id), n) {
			added = append(added, id)
		}
	}
	x.update(added, func(_ string, old []*node) ([]*node, bool) {
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
		x.remove(n, gone)
	}
}

func (x *byDevice) remove(n *node, devices ...map[string]*Fact) {
	var ids []string
	for _, m := range devices {
		for id := range m {
			ids = append(ids, id)
		}
	}
	x.update(ids, func(_ string, old []*node) ([]*node, bool) {
		rest := make([]*node, 0, len(old))
		for _, o := range old {
			if o != n {
				rest = append(rest, o)
			}
		}
		return rest, len(rest) > 0
	})
}
