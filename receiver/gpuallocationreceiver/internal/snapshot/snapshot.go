// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package snapshot decides who owns which device of a node, from an answer of its kubelet
// and from what the Kubernetes API has, and writes it as gpu.allocation.
package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/miglayout"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubelet"
)

// allocation is one point: a device that a container holds, or that is free.
type allocation struct {
	owner    owner.Owner
	resource string
	hwID     string
	share    float64 // of the device, 0..1; 0 is free
	source   string  // gpu.attribution.source
	sharing  string  // gpu.sharing
	resolved bool
	// What is known of a MIG device that is not resolved; each may be "".
	MIG, Parent, Profile string
	// Partition is the mode of a partition that is not resolved, cpx_nps4.
	Partition string
	// part and cores are what a scheduler that shares boards granted of memory and compute;
	// 0: it granted nothing, or does not limit compute.
	part, cores float64
}

// Snapshot is the content of one answer of the kubelet. It is immutable.
type Snapshot struct {
	At          time.Time
	allocations []allocation // sorted: the free ones, then by owner
	States      States

	// replicas is into how many parts a device is shared. It outlives an answer
	// that does not list them, as when a plugin reports the device as unhealthy
	// while containers still hold it.
	replicas map[device]int
	// slots are the numbers of the parts of devices that claims share.
	slots map[slot]int
}

// States counts devices by state.
type States struct {
	Held, Free, Unresolved, Contested, UnresolvedDRA int
}

// device is what ids share: deviceid.Kubelet's Device, of one resource, since
// ids are unique only among those of one device plugin. A device that is held
// whole since before it was shared is another than its replicas.
type device struct {
	resource, name string
	shared         bool
}

func (id kubeletID) device() device {
	parsed := deviceid.ParseKubelet(id.resource, id.id)
	return device{id.resource, parsed.Device, parsed.Shared}
}

// kubeletID is an id as the kubelet has it.
type kubeletID struct{ resource, id string }

// entry is an id that a container holds.
type entry struct {
	owner owner.Owner
	kubeletID
}

func (e entry) compare(o entry) int {
	return cmp.Or(e.owner.Compare(o.owner), cmp.Compare(e.resource, o.resource), cmp.Compare(e.id, o.id))
}

// View is what the Kubernetes API has, as far as snapshots need it.
type View struct {
	DRA    bool                      // the API is asked about DRA
	Claims map[dra.ClaimID]dra.Claim // those that were read
	Pools  *dra.Pools                // nil: never listed
	Fresh  bool                      // Pools are as the API has them, or were until a while ago
	Node   *Node                     // nil: not known
	Shared *Shared                   // nil: annotations of pods are not read
	Sysfs  *gpusysfs.Snapshot        // nil: not read, or older than what the kubelet lists
	MIG    *miglayout.Layout         // nil: not known to this process
}

// Builder makes snapshots of answers. It is not safe for concurrent use.
type Builder struct {
	Node                      string // part of the hw.id of devices that are not resolved
	MaxContainers, MaxDevices int
	Read                      Reader
}

// Build returns the snapshot of an answer with a successful List. v is what the
// Kubernetes API reported, old the last snapshot, or nil.
func (b *Builder) Build(a kubelet.Answer, v View, old *Snapshot) (*Snapshot, Tally) {
	held, tl := b.Read.list(a.List)
	var listed []kubeletID
	if a.Allocatable != nil {
		listed = b.Read.allocatable(a.Allocatable, &tl)
	}
	locate(held, listed, &tl, v.MIG)
	held = b.limit(held, &tl)
	held, shared := b.sharedBy(held, listed, &a, v, &tl)
	var before map[device]int
	if old != nil {
		before = old.replicas
	}
	s := &Snapshot{At: a.At, replicas: map[device]int{}, slots: map[slot]int{}}
	if a.Allocatable == nil {
		maps.Copy(s.replicas, before)
	} else {
		for _, id := range listed {
			s.replicas[id.device()]++
		}
	}
	if v.Pools != nil {
		tl.Refused[DevicesLimit] += v.Pools.Refused
	}
	parts := shares(s.replicas, before, held, &tl)
	s.allocations = make([]allocation, 0, min(b.MaxDevices, max(len(held), len(listed))+len(tl.claimed)))
	known := newIDs(b.Node, held, listed, v, old)
	b.addHeld(s, held, parts, known, v)
	o := b.addClaimed(s, tl.claimed, known, v, old, &tl)
	b.addShared(s, shared, old, o, &tl)
	if !tl.incomplete {
		taken := b.addFree(s, held, listed, known, v, o, shared, &tl)
		if a.Allocatable != nil {
			b.addFreeShared(s, shared, o, taken, &tl)
		}
		b.addFreeClaimable(s, known, v, o, taken, &tl)
	}
	slices.SortFunc(s.allocations, func(x, y allocation) int {
		return cmp.Or(x.owner.Compare(y.owner), cmp.Compare(x.resource, y.resource), cmp.Compare(x.hwID, y.hwID))
	})
	return s, tl
}

// SameAs reports whether both have the same allocations.
func (s *Snapshot) SameAs(o *Snapshot) bool { return slices.Equal(s.allocations, o.allocations) }

// Empty reports whether the node has no devices.
func (s *Snapshot) Empty() bool { return len(s.allocations) == 0 }

// limit cuts what goes beyond the limits off: always the same, since the kubelet
// lists in a random order.
func (b *Builder) limit(held []entry, tl *Tally) []entry {
	slices.SortFunc(held, entry.compare)
	held = b.limitHeld(held, tl)
	owners := map[owner.Owner]bool{}
	for _, e := range held {
		owners[e.owner] = true
	}
	for i, c := range tl.claimed {
		over := ContainersLimit
		if room := owners[c.owner] || len(owners) < b.MaxContainers; room {
			owners[c.owner] = true
			if len(held)+i < b.MaxDevices {
				continue
			}
			over = DevicesLimit
		}
		tl.incomplete = true
		tl.Refused[over] += len(tl.claimed) - i
		tl.claimed = tl.claimed[:i]
		break
	}
	return held
}

func (b *Builder) limitHeld(held []entry, tl *Tally) []entry {
	containers := 0
	for i, e := range held {
		if i == 0 || e.owner != held[i-1].owner {
			containers++
		}
		switch {
		case containers > b.MaxContainers:
			tl.incomplete = true
			tl.Refused[ContainersLimit] += distinctOwners(held[i:])
			return held[:i]
		case i >= b.MaxDevices:
			tl.incomplete = true
			tl.Refused[DevicesLimit] += len(held) - i
			return held[:i]
		}
	}
	return held
}

func distinctOwners(held []entry) int {
	n := 0
	for i, e := range held {
		if i == 0 || e.owner != held[i-1].owner {
			n++
		}
	}
	return n
}

// shares gives the number of parts of each held device, and remembers in replicas
// those that this answer did not list and that an earlier one did.
func shares(replicas, known map[device]int, held []entry, tl *Tally) map[device]int {
	ids := map[device]map[string]bool{}
	for _, e := range held {
		d := e.device()
		if ids[d] == nil {
			ids[d] = map[string]bool{}
		}
		ids[d][e.id] = true
	}
	parts := make(map[device]int, len(ids))
	for d, distinct := range ids {
		switch {
		case replicas[d] > 0:
		case known[d] > 0:
			replicas[d] = known[d]
		default:
			parts[d] = len(distinct)
			if d.shared {
				tl.SharesAssumed++
			}
			continue
		}
		// A plugin that shares by fewer now does not take parts away.
		parts[d] = max(replicas[d], len(distinct))
	}
	return parts
}

// addHeld adds the devices that containers hold to a snapshot that has none yet;
// held is sorted.
func (b *Builder) addHeld(s *Snapshot, held []entry, parts map[device]int, known *ids, v View) {
	type key struct {
		owner          owner.Owner
		resource, hwID string
	}
	at := make(map[key]int, len(held)) // compute instances share an hw.id
	count := make([]int, 0, len(held))
	owners := map[kubeletID]int{}
	for _, e := range held {
		owners[e.kubeletID]++
		parsed := known.parse(e.kubeletID)
		k := key{e.owner, e.resource, known.hwID(parsed)}
		i, ok := at[k]
		if !ok {
			i = len(s.allocations)
			at[k] = i
			count = append(count, 0)
			s.allocations = append(s.allocations, known.allocation(e.owner, e.resource, parsed, v))
		}
		count[i]++
		s.allocations[i].share = min(1, float64(count[i])/float64(parts[e.device()]))
	}
	for id, n := range owners {
		switch {
		case n > 1:
			s.States.Contested++
		case known.parse(id).Resolved:
			s.States.Held++
		default:
			s.States.Unresolved++
		}
	}
}

// addFree adds the devices that the kubelet has and that have no owner, as far as
// max_devices allows. It gives the GPUs that the device plugin has, which are
// not DRA's to give.
func (b *Builder) addFree(s *Snapshot, held []entry, listed []kubeletID, known *ids, v View, o *occupied, shared *sharedNode, tl *Tally) map[string]bool {
	type key struct{ resource, hwID string }
	taken := make(map[key]bool, len(held)+len(listed))
	gpus := map[string]bool{}
	for _, e := range held {
		parsed := known.parse(e.kubeletID)
		taken[key{e.resource, known.hwID(parsed)}] = true
		gpus[gpuOf(parsed, v)] = true
	}
	slices.SortFunc(listed, func(x, y kubeletID) int {
		return cmp.Or(cmp.Compare(x.resource, y.resource), cmp.Compare(x.id, y.id))
	})
	for _, id := range listed {
		parsed := known.parse(id)
		gpu := gpuOf(parsed, v)
		gpus[gpu] = true
		k := key{id.resource, known.hwID(parsed)}
		switch {
		case taken[k], tl.blocked[id], o.physical[gpu], shared.hides(id, gpu):
			continue
		case len(s.allocations) >= b.MaxDevices:
			tl.Refused[DevicesLimit]++
			continue
		}
		taken[k] = true
		s.States.Free++
		s.allocations = append(s.allocations, known.allocation(owner.Owner{}, id.resource, parsed, v))
	}
	delete(gpus, "")
	return gpus
}

// gpuOf is the physical GPU of a kubelet's id, "" where it is not known.
func gpuOf(k deviceid.Kubelet, v View) string {
	switch {
	case k.MIG != "" && v.Pools != nil:
		return v.Pools.MIG[k.MIG].Parent
	case !k.Resolved:
		return ""
	}
	if gpu := deviceid.Parent(k.Device); gpu != "" {
		return gpu
	}
	return k.Device
}

// allocation is that of a device of the device plugin, its share yet unknown.
func (r *ids) allocation(h owner.Owner, resource string, k deviceid.Kubelet, v View) allocation {
	a := allocation{
		owner: h, resource: resource, hwID: r.hwID(k), resolved: k.Resolved,
		source: names.SourcePodResources, sharing: names.SharingNone,
	}
	if k.Shared {
		a.sharing = v.Node.Sharing()
	}
	if k.MIG != "" {
		a.MIG = k.MIG
		if v.Pools != nil {
			a.Parent, a.Profile = v.Pools.MIG[k.MIG].Parent, v.Pools.MIG[k.MIG].Profile
		}
	}
	return a
}
