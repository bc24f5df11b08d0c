// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"cmp"
	"crypto/sha256"
	"slices"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// claimed is a device that the kubelet lists for a container because of a
// ResourceClaim. It may be looked at only, or be no GPU.
type claimed struct {
	holder holder
	device poolDevice
	claim  claimID
	share  string // of a device of which several claims may have a part; else ""
}

func (c claimed) compare(o claimed) int {
	return cmp.Or(
		cmp.Compare(c.device.driver, o.device.driver), cmp.Compare(c.device.name, o.device.name), cmp.Compare(c.device.device, o.device.device),
		cmp.Compare(c.claim.namespace, o.claim.namespace), cmp.Compare(c.claim.name, o.claim.name),
		cmp.Compare(c.share, o.share), c.holder.compare(o.holder),
	)
}

// slot is who has a numbered part of a shared device.
type slot struct {
	device poolDevice
	claim  claimName
	share  string
	holder holder
}

func (c claimed) slot() slot { return slot{c.device, c.claim.claimName, c.share, c.holder} }

// claims takes the devices of GPU drivers out of a container's claims.
func (r *reader) claims(resources []*podresources.DynamicResource, h holder, tl *tally) {
	for _, dynamic := range resources {
		var found []claimed
		var identity []string
		for _, c := range dynamic.GetClaimResources() {
			if !r.drivers[c.GetDriverName()] {
				continue
			}
			d := poolDevice{pool{c.GetDriverName(), c.GetPoolName()}, c.GetDeviceName()}
			switch {
			case !isID(d.name) || !isID(d.device) || len(c.GetShareId()) > maxID:
				tl.refused[badID]++
				continue
			case !h.valid() || !isName(dynamic.GetClaimNamespace()) || !isName(dynamic.GetClaimName()):
				tl.refused[badHolder]++
				tl.blockedDevices[d] = true
				continue
			}
			identity = append(identity, d.String()+"/"+c.GetShareId())
			// A CDI name may have the claim's UID in it. The kubelet repeats the
			// names of one device with the next.
			for _, cdi := range c.GetCdiDevices() {
				identity = append(identity, cdi.GetName())
			}
			found = append(found, claimed{holder: h, device: d, share: c.GetShareId()})
		}
		if len(found) == 0 {
			continue
		}
		id := claimID{claimName{dynamic.GetClaimNamespace(), dynamic.GetClaimName()}, digest(identity)}
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

// wanted are the claims to read, each with one of its devices.
func wanted(all []claimed) map[claimID]poolDevice {
	out := make(map[claimID]poolDevice, len(all))
	for _, c := range all { // sorted: always the same device
		if _, ok := out[c.claim]; !ok {
			out[c.claim] = c.device
		}
	}
	return out
}

// occupied is what DRA says about devices that are not free.
type occupied struct {
	devices  map[poolDevice]bool
	physical map[string]bool // hw.id of GPUs that are held, in part or whole
	whole    map[string]bool // and of those that are held whole
	counters map[pool]map[string]bool
}

func (o *occupied) add(d poolDevice, known keptDevice) {
	o.devices[d] = true
	if gpu := known.physical(); gpu != "" {
		o.physical[gpu] = true
		if known.parent == "" {
			o.whole[gpu] = true
		}
	}
	for _, set := range known.counters {
		if o.counters[d.pool] == nil {
			o.counters[d.pool] = map[string]bool{}
		}
		o.counters[d.pool][set] = true
	}
}

// addClaimed adds the devices that containers hold through claims. all is sorted
// by device.
func (b *builder) addClaimed(s *snapshot, all []claimed, v view, old *snapshot, tl *tally) *occupied {
	o := &occupied{devices: map[poolDevice]bool{}, physical: map[string]bool{}, whole: map[string]bool{}, counters: map[pool]map[string]bool{}}
	known := func(d poolDevice) keptDevice {
		if v.pools == nil {
			return keptDevice{}
		}
		return v.pools.devices[d]
	}
	for d := range tl.blockedDevices {
		o.add(d, known(d))
	}
	for len(all) > 0 {
		d := all[0].device
		n := 1
		for n < len(all) && all[n].device == d {
			n++
		}
		group := all[:n]
		all = all[n:]
		unread := 0
		var held []claimed
		for _, c := range group {
			read, ok := v.claims[c.claim]
			switch {
			case !ok:
				unread++
			case read.held[d]:
				held = append(held, c)
			}
		}
		if unread > 0 || len(held) > 0 && v.pools == nil {
			s.states.unresolvedDRA++
			o.add(d, known(d))
		}
		if len(held) == 0 || v.pools == nil {
			continue // nobody, or it is not known whether it is a GPU
		}
		o.add(d, known(d))
		if known(d).kind != kindVFIO {
			b.addDevice(s, held, known(d).attributes, old, unread)
		}
	}
	return o
}

// addDevice adds one device for its holders. It is shared where each of them has
// a share of its own, or all of them have it by one claim; how large a share is
// is not known, so that n holders have 1/n each; those whose claims are unread
// count among them. Where they are all of one pod, it is the pod's, whole. Else, as by the claims of pods that are finished, several
// holders contest the device.
func (b *builder) addDevice(s *snapshot, held []claimed, known attributes, old *snapshot, unread int) {
	d := held[0].device
	template := allocation{
		resource: d.driver, source: names.SourceDRA, sharing: names.SharingNone,
		hwID: known.gpu(), resolved: true, share: 1,
	}
	if template.hwID == "" {
		template.hwID, template.resolved = deviceid.Unresolved(b.cfg.NodeName, d.String()), false
		if known.kind == kindMIG || deviceid.IsMIG(known.uuid) {
			template.mig, template.parent, template.profile = known.uuid, known.parent, known.profile
		}
	}
	holders := slices.CompactFunc(slices.SortedFunc(slices.Values(held), claimed.byHolder), func(x, y claimed) bool { return x.holder == y.holder })
	shares, byOneClaim := true, true
	for _, c := range held {
		shares = shares && c.share != ""
		byOneClaim = byOneClaim && c.claim.claimName == held[0].claim.claimName
	}
	contested, onePod := false, true
	for _, c := range holders {
		onePod = onePod && c.holder.wholePod() == holders[0].holder.wholePod()
	}
	switch {
	case onePod && unread == 0 && len(held) > 1 && (shares || byOneClaim):
		// The pod has it alone, whichever of its containers use it.
		if template.holder = holders[0].holder; len(holders) > 1 {
			template.holder = holders[0].holder.wholePod()
		}
		s.allocations = append(s.allocations, template)
	case shares || byOneClaim && len(holders) > 1:
		template.sharing = names.SharingTimeSlicing
		template.share = 1 / float64(len(held)+unread)
		for i, n := range numbers(held, old) {
			a := template
			a.holder, a.hwID = held[i].holder, deviceid.Replica(template.hwID, n)
			s.slots[held[i].slot()] = n
			s.allocations = append(s.allocations, a)
		}
	default:
		contested = len(holders) > 1
		for _, c := range holders {
			a := template
			a.holder = c.holder
			s.allocations = append(s.allocations, a)
		}
	}
	switch {
	case unread > 0: // counted as unknown
	case contested:
		s.states.contested++
	case template.resolved:
		s.states.held++
	default:
		s.states.unresolved++
	}
}

func (c claimed) byHolder(o claimed) int { return c.holder.compare(o.holder) }

// numbers gives each holder of a part of a device its number: the one that it had,
// else the lowest that nobody has.
func numbers(held []claimed, old *snapshot) []int {
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

// addFreeClaimable adds the devices that a complete, current pool has and nobody
// holds: not through a claim, not through the device plugin, not in part, and not
// a part of them. A MIG device without UUID does not exist yet.
func (b *builder) addFreeClaimable(s *snapshot, v view, o *occupied, taken map[string]bool, tl *tally) {
	if v.pools == nil || !v.fresh {
		return
	}
	for _, id := range v.pools.ordered {
		d := v.pools.devices[id]
		gpu := d.gpu()
		switch {
		case o.devices[id], d.kind == kindVFIO, d.kind == kindMIG && d.uuid == "":
			continue
		case gpu != "" && (o.physical[gpu] || taken[gpu]), d.parent != "" && (o.whole[d.parent] || taken[d.parent]):
			continue
		case slices.ContainsFunc(d.counters, func(set string) bool { return o.counters[id.pool][set] }):
			continue
		case len(s.allocations) >= b.cfg.MaxDevices:
			tl.refused[devicesLimit]++
			continue
		}
		s.states.free++
		a := allocation{resource: id.driver, source: names.SourceDRA, sharing: names.SharingNone, hwID: gpu, resolved: true}
		if gpu == "" {
			a.hwID, a.resolved = deviceid.Unresolved(b.cfg.NodeName, id.String()), false
			if d.kind == kindMIG || deviceid.IsMIG(d.uuid) {
				a.mig, a.parent, a.profile = d.uuid, d.parent, d.profile
			}
		}
		s.allocations = append(s.allocations, a)
	}
}
