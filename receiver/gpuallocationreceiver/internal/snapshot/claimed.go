// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
)

// claimed is a device that the kubelet lists for a container because of a
// ResourceClaim. It may be looked at only, or be no GPU.
type claimed struct {
	owner  owner.Owner
	Device dra.Device
	claim  dra.ClaimID
	share  string // of a device of which several claims may have a part; else ""
}

func (c claimed) compare(o claimed) int {
	return cmp.Or(
		cmp.Compare(c.Device.Driver, o.Device.Driver), cmp.Compare(c.Device.Name, o.Device.Name), cmp.Compare(c.Device.Device, o.Device.Device),
		cmp.Compare(c.claim.Namespace, o.claim.Namespace), cmp.Compare(c.claim.Name, o.claim.Name),
		cmp.Compare(c.share, o.share), c.owner.Compare(o.owner),
	)
}

// slot is who has a numbered part of a shared device.
type slot struct {
	Device dra.Device
	claim  types.NamespacedName
	share  string
	owner  owner.Owner
}

func (c claimed) slot() slot { return slot{c.Device, c.claim.NamespacedName, c.share, c.owner} }

// claims takes the devices of GPU drivers out of a container's claims.
func (r *Reader) claims(resources []*podresources.DynamicResource, h owner.Owner, tl *Tally) {
	for _, dynamic := range resources {
		var found []claimed
		var identity []string
		for _, c := range dynamic.GetClaimResources() {
			if !r.Drivers[c.GetDriverName()] {
				continue
			}
			d := dra.Device{Pool: dra.Pool{Driver: c.GetDriverName(), Name: c.GetPoolName()}, Device: c.GetDeviceName()}
			switch {
			case !dra.IsID(d.Name) || !dra.IsID(d.Device) || len(c.GetShareId()) > dra.MaxID:
				tl.Refused[BadID]++
				continue
			case !valid(h) || !isName(dynamic.GetClaimNamespace()) || !isName(dynamic.GetClaimName()):
				tl.Refused[BadOwner]++
				tl.blockedDevices[d] = true
				continue
			}
			identity = append(identity, d.String()+"/"+c.GetShareId())
			// A CDI name may have the claim's UID in it. The kubelet repeats the
			// names of one device with the next.
			for _, cdi := range c.GetCdiDevices() {
				identity = append(identity, cdi.GetName())
			}
			found = append(found, claimed{owner: h, Device: d, share: c.GetShareId()})
		}
		if len(found) == 0 {
			continue
		}
		id := dra.ClaimID{
			NamespacedName: types.NamespacedName{Namespace: dynamic.GetClaimNamespace(), Name: dynamic.GetClaimName()},
			Allocation:     digest(identity),
		}
		for _, c := range found {
			c.claim = id
			tl.claimed = append(tl.claimed, c)
		}
	}
}

func digest(texts []string) [32]byte {
	slices.Sort(texts)
	hash := sha256.New()
	for _, t := range slices.Compact(texts) {
		hash.Write([]byte(t))
		hash.Write([]byte{0})
	}
	return [32]byte(hash.Sum(nil))
}

// Wanted are the claims to read, each with one of its devices.
func (t *Tally) Wanted() map[dra.ClaimID]dra.Device {
	out := make(map[dra.ClaimID]dra.Device, len(t.claimed))
	for _, c := range t.claimed { // sorted: always the same device
		if _, ok := out[c.claim]; !ok {
			out[c.claim] = c.Device
		}
	}
	return out
}

// occupied is what DRA reports about devices that are not free.
type occupied struct {
	devices  map[dra.Device]bool
	physical map[string]bool // hw.id of GPUs that are held, in part or whole
	whole    map[string]bool // and of those that are held whole
	counters map[dra.Pool]map[string]bool
}

func (o *occupied) add(d dra.Device, known dra.Described) {
	o.devices[d] = true
	if gpu := known.Physical(); gpu != "" {
		o.physical[gpu] = true
		if known.Parent == "" {
			o.whole[gpu] = true
		}
	}
	for _, set := range known.Counters {
		if o.counters[d.Pool] == nil {
			o.counters[d.Pool] = map[string]bool{}
		}
		o.counters[d.Pool][set] = true
	}
}

// addClaimed adds the devices that containers hold through claims. all is sorted
// by device.
func (b *Builder) addClaimed(s *Snapshot, all []claimed, local *ids, v View, old *Snapshot, tl *Tally) *occupied {
	o := &occupied{devices: map[dra.Device]bool{}, physical: map[string]bool{}, whole: map[string]bool{}, counters: map[dra.Pool]map[string]bool{}}
	known := func(d dra.Device) dra.Described { return local.described(d, v.Pools) }
	for d := range tl.blockedDevices {
		o.add(d, known(d))
	}
	for len(all) > 0 {
		d := all[0].Device
		n := 1
		for n < len(all) && all[n].Device == d {
			n++
		}
		group := all[:n]
		all = all[n:]
		unread := 0
		var held []claimed
		for _, c := range group {
			read, ok := v.Claims[c.claim]
			switch {
			case !ok:
				unread++
			case read.Held[d]:
				held = append(held, c)
			}
		}
		if unread > 0 || len(held) > 0 && v.Pools == nil {
			s.States.UnresolvedDRA++
			o.add(d, known(d))
		}
		if len(held) == 0 || v.Pools == nil {
			continue // no owner, or it is not known whether it is a GPU
		}
		o.add(d, known(d))
		if known(d).Kind != dra.KindVFIO {
			b.addDevice(s, held, known(d).Attributes, old, unread)
		}
	}
	return o
}

// addDevice adds one device for its owners. It is shared where each of them has
// a share of its own, or all of them have it by one claim; how large a share is
// is not known, so that n owners have 1/n each; those with unread claims
// are included. If all are of one pod, the pod owns the whole device. Else, as with
// claims of finished pods, several owners contest the device.
func (b *Builder) addDevice(s *Snapshot, held []claimed, known dra.Attributes, old *Snapshot, unread int) {
	d := held[0].Device
	template := allocation{
		resource: d.Driver, source: names.SourceDRA, sharing: names.SharingNone,
		hwID: known.GPU(), resolved: true, share: 1,
	}
	if template.hwID == "" {
		template.hwID, template.resolved = deviceid.Unresolved(b.Node, d.String()), false
		template.describe(known)
	}
	owners := slices.CompactFunc(slices.SortedFunc(slices.Values(held), claimed.byOwner), func(x, y claimed) bool { return x.owner == y.owner })
	shares, byOneClaim := true, true
	for _, c := range held {
		shares = shares && c.share != ""
		byOneClaim = byOneClaim && c.claim.NamespacedName == held[0].claim.NamespacedName
	}
	contested, onePod := false, true
	for _, c := range owners {
		onePod = onePod && c.owner.SamePod(owners[0].owner)
	}
	switch {
	case onePod && unread == 0 && len(held) > 1 && (shares || byOneClaim) && !isMode(d):
		// The pod has it alone, whichever of its containers use it.
		if template.owner = owners[0].owner; len(owners) > 1 {
			template.owner = owners[0].owner.Whole()
		}
		s.allocations = append(s.allocations, template)
	case shares || byOneClaim && len(owners) > 1:
		if !(shares && isMode(d)) { // else each share is a partition of its own
			template.sharing = names.SharingTimeSlicing
			template.share = 1 / float64(len(held)+unread)
		}
		for i, n := range numbers(held, old) {
			a := template
			a.owner, a.hwID = held[i].owner, deviceid.Replica(template.hwID, n)
			s.slots[held[i].slot()] = n
			s.allocations = append(s.allocations, a)
		}
	default:
		contested = len(owners) > 1
		for _, c := range owners {
			a := template
			a.owner = c.owner
			s.allocations = append(s.allocations, a)
		}
	}
	switch {
	case unread > 0: // counted as unknown
	case contested:
		s.States.Contested++
	case template.resolved:
		s.States.Held++
	default:
		s.States.Unresolved++
	}
}

// describe adds what is known of a device that is not resolved.
func (a *allocation) describe(known dra.Attributes) {
	switch {
	case known.Kind == dra.KindMIG || deviceid.IsMIG(known.UUID):
		a.MIG, a.Parent, a.Profile = known.UUID, known.Parent, known.Profile
	case known.Kind == dra.KindPartition:
		a.Parent, a.Partition = known.Parent, known.Profile
	}
}

func (c claimed) byOwner(o claimed) int { return c.owner.Compare(o.owner) }

// numbers gives each owner of a part of a device its number: the one that it had,
// else the lowest free one.
func numbers(held []claimed, old *Snapshot) []int {
	out := make([]int, len(held))
	used := map[int]bool{}
	for i, c := range held {
		out[i] = -1
		if old != nil {
			if n, had := old.slots[c.slot()]; had {
				out[i], used[n] = n, true
			}
		}
	}
	next := 0
	for i := range out {
		if out[i] < 0 {
			for used[next] {
				next++
			}
			out[i], used[next] = next, true
		}
	}
	return out
}

// addFreeClaimable adds the devices that a complete, current pool has and that have no owner
// yet: not through a claim, not through the device plugin, not in part, and not
// a part of them. A MIG device without UUID does not exist yet.
func (b *Builder) addFreeClaimable(s *Snapshot, local *ids, v View, o *occupied, taken map[string]bool, tl *Tally) {
	if v.Pools == nil || !v.Fresh {
		return
	}
	for _, id := range v.Pools.Ordered {
		d := local.described(id, v.Pools)
		gpu := d.GPU()
		switch {
		case o.devices[id], d.Unhealthy, d.Kind == dra.KindVFIO, d.Kind == dra.KindMIG && d.UUID == "":
			continue
		case gpu != "" && (o.physical[gpu] || taken[gpu]), d.Parent != "" && (o.whole[d.Parent] || taken[d.Parent]):
			continue
		case slices.ContainsFunc(d.Counters, func(set string) bool { return o.counters[id.Pool][set] }):
			continue
		case len(s.allocations) >= b.MaxDevices:
			tl.Refused[DevicesLimit]++
			continue
		}
		s.States.Free++
		a := allocation{resource: id.Driver, source: names.SourceDRA, sharing: names.SharingNone, hwID: gpu, resolved: true}
		if gpu == "" {
			a.hwID, a.resolved = deviceid.Unresolved(b.Node, id.String()), false
			a.describe(d.Attributes)
		}
		s.allocations = append(s.allocations, a)
	}
}
