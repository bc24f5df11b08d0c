// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// holder is a container, or the pod of several; the zero holder is nobody.
type holder struct {
	namespace, pod, container string
}

func (h holder) compare(o holder) int {
	return cmp.Or(cmp.Compare(h.namespace, o.namespace), cmp.Compare(h.pod, o.pod), cmp.Compare(h.container, o.container))
}

// wholePod is h without the container.
func (h holder) wholePod() holder { return holder{namespace: h.namespace, pod: h.pod} }

// allocation is one point: a device that a container holds, or that is free.
type allocation struct {
	holder   holder
	resource string
	hwID     string
	share    float64 // of the device, 0..1; 0 is free
	source   string  // gpu.attribution.source
	sharing  string  // gpu.sharing
	resolved bool
	// What is known of a MIG device that is not resolved; each may be "".
	mig, parent, profile string
}

// snapshot is what one answer of the kubelet says. It is immutable.
type snapshot struct {
	at          time.Time
	allocations []allocation // sorted: the free ones, then by holder
	states      states

	// replicas is into how many parts a device is shared. It outlives an answer
	// that does not list them, as that of a kubelet whose plugin calls the
	// device unhealthy while containers still hold it.
	replicas map[device]int
	// slots are the numbers of the parts of devices that claims share.
	slots map[slot]int
}

// states counts devices by state.
type states struct {
	held, free, unresolved, contested, unresolvedDRA int
}

// device is what ids share: deviceid.Kubelet's Device, of one resource, since
// ids are unique only among those of one device plugin. A device that is held
// whole since before it was shared is another than its replicas.
type device struct {
	resource, name string
	shared         bool
}

func (id kubeletID) device() device {
	parsed := deviceid.ParseKubelet(id.id)
	return device{id.resource, parsed.Device, parsed.Shared}
}

// kubeletID is an id as the kubelet has it.
type kubeletID struct{ resource, id string }

// entry is an id that a container holds.
type entry struct {
	holder holder
	kubeletID
}

func (e entry) compare(o entry) int {
	return cmp.Or(e.holder.compare(o.holder), cmp.Compare(e.resource, o.resource), cmp.Compare(e.id, o.id))
}

// builder makes snapshots of answers. It is not safe for concurrent use.
type builder struct {
	cfg  *Config
	read reader
}

// build makes a snapshot of an answer whose List succeeded. v is what the
// Kubernetes API said, old the last snapshot, or nil.
func (b *builder) build(a answer, v view, old *snapshot) (*snapshot, tally) {
	held, tl := b.read.list(a.list)
	held = b.limit(held, &tl)
	var known map[device]int
	if old != nil {
		known = old.replicas
	}
	s := &snapshot{at: a.at, replicas: map[device]int{}, slots: map[slot]int{}}
	var listed []kubeletID
	if a.allocatable == nil {
		maps.Copy(s.replicas, known)
	} else {
		listed = b.read.allocatable(a.allocatable, &tl)
		for _, id := range listed {
			s.replicas[id.device()]++
		}
	}
	if v.pools != nil {
		tl.refused[devicesLimit] += v.pools.refused
	}
	parts := shares(s.replicas, known, held, &tl)
	s.allocations = make([]allocation, 0, min(b.cfg.MaxDevices, max(len(held), len(listed))+len(tl.claimed)))
	b.addHeld(s, held, parts, v)
	o := b.addClaimed(s, tl.claimed, v, old, &tl)
	if !tl.incomplete {
		taken := b.addFree(s, held, listed, v, o, &tl)
		b.addFreeClaimable(s, v, o, taken, &tl)
	}
	slices.SortFunc(s.allocations, func(x, y allocation) int {
		return cmp.Or(x.holder.compare(y.holder), cmp.Compare(x.resource, y.resource), cmp.Compare(x.hwID, y.hwID))
	})
	return s, tl
}

// limit cuts what goes beyond the limits off: always the same, since the kubelet
// lists in a random order.
func (b *builder) limit(held []entry, tl *tally) []entry {
	slices.SortFunc(held, entry.compare)
	held = b.limitHeld(held, tl)
	holders := map[holder]bool{}
	for _, e := range held {
		holders[e.holder] = true
	}
	for i, c := range tl.claimed {
		over := containersLimit
		if room := holders[c.holder] || len(holders) < b.cfg.MaxContainers; room {
			holders[c.holder] = true
			if len(held)+i < b.cfg.MaxDevices {
				continue
			}
			over = devicesLimit
		}
		tl.incomplete = true
		tl.refused[over] += len(tl.claimed) - i
		tl.claimed = tl.claimed[:i]
		break
	}
	return held
}

func (b *builder) limitHeld(held []entry, tl *tally) []entry {
	containers := 0
	for i, e := range held {
		if i == 0 || e.holder != held[i-1].holder {
			containers++
		}
		switch {
		case containers > b.cfg.MaxContainers:
			tl.incomplete = true
			tl.refused[containersLimit] += distinctHolders(held[i:])
			return held[:i]
		case i >= b.cfg.MaxDevices:
			tl.incomplete = true
			tl.refused[devicesLimit] += len(held) - i
			return held[:i]
		}
	}
	return held
}

func distinctHolders(held []entry) int {
	n := 0
	for i, e := range held {
		if i == 0 || e.holder != held[i-1].holder {
			n++
		}
	}
	return n
}

// shares gives the number of parts of each held device, and remembers in replicas
// those that this answer did not list and that an earlier one did.
func shares(replicas, known map[device]int, held []entry, tl *tally) map[device]int {
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
				tl.sharesAssumed++
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
func (b *builder) addHeld(s *snapshot, held []entry, parts map[device]int, v view) {
	type key struct {
		holder         holder
		resource, hwID string
	}
	at := make(map[key]int, len(held)) // compute instances share an hw.id
	count := make([]int, 0, len(held))
	holders := map[kubeletID]int{}
	for _, e := range held {
		holders[e.kubeletID]++
		parsed := deviceid.ParseKubelet(e.id)
		k := key{e.holder, e.resource, b.hwID(parsed)}
		i, ok := at[k]
		if !ok {
			i = len(s.allocations)
			at[k] = i
			count = append(count, 0)
			s.allocations = append(s.allocations, b.allocation(e.holder, e.resource, parsed, v))
		}
		count[i]++
		s.allocations[i].share = min(1, float64(count[i])/float64(parts[e.device()]))
	}
	for id, n := range holders {
		switch {
		case n > 1:
			s.states.contested++
		case deviceid.ParseKubelet(id.id).Resolved:
			s.states.held++
		default:
			s.states.unresolved++
		}
	}
}

// addFree adds the devices that the kubelet has and nobody holds, as far as
// max_devices allows. It gives the GPUs that the device plugin has, which are
// not DRA's to give.
func (b *builder) addFree(s *snapshot, held []entry, listed []kubeletID, v view, o *occupied, tl *tally) map[string]bool {
	type key struct{ resource, hwID string }
	taken := make(map[key]bool, len(held)+len(listed))
	gpus := map[string]bool{}
	for _, e := range held {
		parsed := deviceid.ParseKubelet(e.id)
		taken[key{e.resource, b.hwID(parsed)}] = true
		gpus[gpuOf(parsed, v)] = true
	}
	slices.SortFunc(listed, func(x, y kubeletID) int {
		return cmp.Or(cmp.Compare(x.resource, y.resource), cmp.Compare(x.id, y.id))
	})
	for _, id := range listed {
		parsed := deviceid.ParseKubelet(id.id)
		gpu := gpuOf(parsed, v)
		gpus[gpu] = true
		k := key{id.resource, b.hwID(parsed)}
		switch {
		case taken[k], tl.blocked[id], o.physical[gpu]:
			continue
		case len(s.allocations) >= b.cfg.MaxDevices:
			tl.refused[devicesLimit]++
			continue
		}
		taken[k] = true
		s.states.free++
		s.allocations = append(s.allocations, b.allocation(holder{}, id.resource, parsed, v))
	}
	delete(gpus, "")
	return gpus
}

// gpuOf is the physical GPU of a kubelet's id, "" where it is not known.
func gpuOf(k deviceid.Kubelet, v view) string {
	switch {
	case k.MIG != "" && v.pools != nil:
		return v.pools.mig[k.MIG].parent
	case !k.Resolved:
		return ""
	}
	if gpu := deviceid.Parent(k.Device); gpu != "" {
		return gpu
	}
	return k.Device
}

// allocation is that of a device of the device plugin, its share yet unknown.
func (b *builder) allocation(h holder, resource string, k deviceid.Kubelet, v view) allocation {
	a := allocation{
		holder: h, resource: resource, hwID: b.hwID(k), resolved: k.Resolved,
		source: names.SourcePodResources, sharing: names.SharingNone,
	}
	if k.Shared {
		a.sharing = v.node.sharing()
	}
	if k.MIG != "" {
		a.mig = k.MIG
		if v.pools != nil {
			a.parent, a.profile = v.pools.mig[k.MIG].parent, v.pools.mig[k.MIG].profile
		}
	}
	return a
}

func (b *builder) hwID(k deviceid.Kubelet) string {
	if k.Resolved {
		return k.ID
	}
	return deviceid.Unresolved(b.cfg.NodeName, k.ID)
}
