// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/complete"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubelet"
)

// Shared is what schedulers that share boards wrote on the node's pods.
type Shared struct {
	Reader *sharing.Reader
	Pods   map[types.NamespacedName]sharing.Pod
	Boards map[string]sharing.Boards // of the node, by scheduler
	Memory int64                     // of each of the node's boards in MiB; 0: not known
	// Listed is whether the API ever answered about the node and its boards: what cannot be
	// placed before that is no fault of an annotation.
	Listed bool
	// Fresh is whether Pods are as the API has them, or were until a while ago. Otherwise no board
	// is known to be free: one without a part may have one in a pod that was not read.
	Fresh bool
}

// Unusable is what a scheduler wrote on a pod, and cannot be used.
type Unusable struct {
	Scheduler string
	Pod       types.NamespacedName
	Err       error
}

// part is what one owner has of one board.
type part struct {
	owner        owner.Owner
	scheduler    *sharing.Scheduler
	resource     string
	board        string // hw.id
	share, cores float64
}

// sharedNode is what a snapshot has through schedulers that share boards.
type sharedNode struct {
	parts []part
	// unplaced have a share of a board that is not known, which is empty here.
	unplaced []part
	// boards are those that the schedulers share, with the scheduler and the resource.
	boards map[string]part
	// unknown are the schedulers with an owner that has no board yet, or of which the pods are not
	// known: none of their boards is known to be free.
	unknown map[*sharing.Scheduler]bool
	// taken are the boards of reservation pods, divided those with parts.
	taken, divided map[string]bool
	// plugins are the schedulers with a device plugin of their own. listed are the containers of the
	// kubelet's list, true for those with devices.
	plugins []*sharing.Scheduler
	listed  map[owner.Owner]bool
}

// sharedBy takes of held what schedulers divide in another way than the kubelet lists it,
// and returns the rest.
func (b *Builder) sharedBy(held []entry, listed []kubeletID, a *kubelet.Answer, v View, tl *Tally) ([]entry, *sharedNode) {
	n := &sharedNode{boards: map[string]part{}, unknown: map[*sharing.Scheduler]bool{}, taken: map[string]bool{}, divided: map[string]bool{}, listed: map[owner.Owner]bool{}}
	if v.Shared == nil {
		return held, n
	}
	for _, s := range v.Shared.Reader.Schedulers {
		if s.Parts {
			n.plugins = append(n.plugins, s)
		}
	}
	for _, pod := range a.List.GetPodResources() {
		for _, c := range pod.GetContainers() {
			n.listed[owner.Owner{Namespace: pod.GetNamespace(), Pod: pod.GetName(), Container: c.GetName()}] = false
		}
	}
	for _, e := range held {
		n.listed[e.owner] = true
	}
	rest, groups := n.reservations(held, v.Shared, tl)
	boards := n.boardsOf(v.Shared, rest, listed, groups)
	for _, s := range v.Shared.Reader.Schedulers {
		n.unknown[s] = !v.Shared.Fresh
		if s.Parts {
			rest = n.replaceParts(s, boards[s.Name], rest, v.Shared, tl)
		}
	}
	here := b.Read.Pods(a).Pods
	for _, name := range slices.SortedFunc(maps.Keys(v.Shared.Pods), comparePods) {
		pod := v.Shared.Pods[name]
		if _, listed := here[complete.Pod(name)]; !listed || pod.Ended || pod.Group != "" || v.Shared.Reader.Reserves(name.Namespace) {
			continue
		}
		if pod.Scheduler.Parts {
			n.unlisted(name, pod, boards[pod.Scheduler.Name], tl)
			continue
		}
		n.place(name, pod, boards[pod.Scheduler.Name], tl)
	}
	if !v.Shared.Listed {
		tl.Unusable = nil
	}
	return rest, n
}

// reservations takes the pods that hold boards for others out of held. groups are the
// boards by group. A part of a board that such a pod holds is not divided, and not free.
func (n *sharedNode) reservations(held []entry, shared *Shared, tl *Tally) (rest []entry, groups map[string]string) {
	rest, groups = make([]entry, 0, len(held)), map[string]string{}
	ambiguous := map[string]bool{}
	for _, e := range held {
		if !shared.Reader.Reserves(e.owner.Namespace) {
			rest = append(rest, e)
			continue
		}
		parsed := deviceid.ParseKubelet(e.resource, e.id)
		if !deviceid.IsGPU(parsed.ID) {
			tl.blocked[e.kubeletID] = true
			continue
		}
		n.taken[parsed.ID] = true
		pod, ok := shared.Pods[types.NamespacedName{Namespace: e.owner.Namespace, Name: e.owner.Pod}]
		if !ok || pod.Group == "" {
			continue
		}
		if other, found := groups[pod.Group]; found && other != parsed.ID || pod.ReservedID != "" && pod.ReservedID != parsed.ID {
			ambiguous[pod.Group] = true
		}
		groups[pod.Group] = parsed.ID
	}
	for group := range ambiguous {
		delete(groups, group)
	}
	return rest, groups
}

// boardsOf are the boards of each scheduler by the keys of its grants.
func (n *sharedNode) boardsOf(shared *Shared, held []entry, listed []kubeletID, groups map[string]string) map[string]sharing.Boards {
	boards := map[string]sharing.Boards{}
	for _, s := range shared.Reader.Schedulers {
		own := maps.Clone(shared.Boards[s.Name])
		if own == nil {
			own = sharing.Boards{}
		}
		resources := map[string]string{} // by board
		add := func(id kubeletID) {
			// The node's object may lack the board of a part that the kubelet lists.
			if gpu := n.partOf(s, id); gpu != "" {
				resources[gpu] = id.resource
				if _, ok := own[gpu]; !ok {
					own[gpu] = sharing.Board{ID: gpu, Memory: shared.Memory}
				}
			}
		}
		for _, id := range listed {
			add(id)
		}
		for _, e := range held {
			add(e.kubeletID)
		}
		for _, board := range own {
			n.boards[board.ID] = part{scheduler: s, resource: cmp.Or(resources[board.ID], s.Resource), board: board.ID}
		}
		boards[s.Name] = own
	}
	for group, id := range groups {
		own := boards[names.SharingKAI]
		own[group] = sharing.Board{ID: id, Memory: shared.Memory}
		s := sharing.Named(names.SharingKAI)
		n.boards[id] = part{scheduler: s, resource: s.Resource, board: id}
	}
	return boards
}

// place adds what a pod has of boards for which the kubelet lists nothing.
func (n *sharedNode) place(name types.NamespacedName, pod sharing.Pod, boards sharing.Boards, tl *Tally) {
	s := pod.Scheduler
	if pod.Err != nil {
		n.unknown[s] = true
		tl.Unusable = append(tl.Unusable, Unusable{s.Name, name, pod.Err})
		return
	}
	var failed error
	for _, g := range pod.Grants {
		o := owner.Owner{Namespace: name.Namespace, Pod: name.Name, Container: g.Container}
		id, share, err := boards.Find(g)
		if err == nil {
			n.parts = append(n.parts, part{o, s, s.Resource, id, share, g.Cores})
			continue
		}
		failed = err
		if share > 0 {
			n.unplaced = append(n.unplaced, part{o, s, s.Resource, "", share, g.Cores})
		}
	}
	if failed != nil {
		n.unknown[s] = true
		tl.Unusable = append(tl.Unusable, Unusable{s.Name, name, failed})
	}
}

// addShared adds the parts of boards. Those of one board are numbered; a board that one
// owner has whole is not divided.
func (b *Builder) addShared(s *Snapshot, n *sharedNode, old *Snapshot, o *occupied, tl *Tally) {
	for id := range n.taken {
		o.physical[id] = true
	}
	slices.SortFunc(n.parts, part.compare)
	all := mergeParts(n.parts)
	for len(all) > 0 {
		count := 1
		for count < len(all) && all[count].board == all[0].board {
			count++
		}
		own := all[:count]
		all = all[count:]
		o.physical[own[0].board], n.divided[own[0].board] = true, true
		if len(own) == 1 && own[0].share == 1 {
			b.addPart(s, own[0], own[0].board, true, tl)
			continue
		}
		slots := make([]claimed, len(own))
		for i, p := range own {
			slots[i] = claimed{owner: p.owner, Device: dra.Device{Device: p.board}}
		}
		for i, number := range numbers(slots, old) {
			s.slots[slots[i].slot()] = number
			b.addPart(s, own[i], deviceid.Replica(own[i].board, number), true, tl)
		}
	}
	for i, p := range n.unplaced {
		id := strings.Join([]string{p.scheduler.Name, p.owner.Namespace, p.owner.Pod, strconv.Itoa(i)}, "/")
		b.addPart(s, p, deviceid.Unresolved(b.Node, id), false, tl)
	}
}

func (b *Builder) addPart(s *Snapshot, p part, hwID string, resolved bool, tl *Tally) {
	if len(s.allocations) >= b.MaxDevices {
		tl.Refused[DevicesLimit]++
		return
	}
	if resolved {
		s.States.Held++
	} else {
		s.States.Unresolved++
	}
	s.allocations = append(s.allocations, allocation{
		owner: p.owner, resource: p.resource, hwID: hwID, share: p.share, source: names.SourceAnnotation,
		sharing: p.scheduler.Name, resolved: resolved, part: p.share, cores: p.cores,
	})
}

// addFreeShared adds the boards that no owner has a part of: not through a scheduler, not
// through the device plugin, which has the boards in plugin, and not through a claim. It adds
// them to plugin.
func (b *Builder) addFreeShared(s *Snapshot, n *sharedNode, o *occupied, plugin map[string]bool, tl *Tally) {
	for _, id := range slices.Sorted(maps.Keys(n.boards)) {
		board := n.boards[id]
		switch {
		case n.divided[id], n.unknown[board.scheduler], (o.physical[id] || plugin[id]) && !n.taken[id]:
			continue
		case len(s.allocations) >= b.MaxDevices:
			tl.Refused[DevicesLimit]++
			continue
		}
		plugin[id] = true
		s.States.Free++
		s.allocations = append(s.allocations, allocation{
			resource: board.resource, hwID: id, source: names.SourceAnnotation, sharing: board.scheduler.Name, resolved: true,
		})
	}
}

// hides reports whether an id is a part of a board that a scheduler shares: which parts are
// free depends on what the scheduler wrote. So does a whole board that an owner without a board
// may have.
func (n *sharedNode) hides(id kubeletID, gpu string) bool {
	if board, ok := n.boards[gpu]; ok && n.unknown[board.scheduler] {
		return true
	}
	return slices.ContainsFunc(n.plugins, func(s *sharing.Scheduler) bool { return n.partOf(s, id) != "" })
}

func (p part) compare(o part) int {
	return cmp.Or(cmp.Compare(p.board, o.board), p.owner.Compare(o.owner))
}

// mergeParts adds up what an owner has of a board; parts are sorted.
func mergeParts(parts []part) []part {
	var out []part
	for _, p := range parts {
		if last := len(out) - 1; last >= 0 && out[last].board == p.board && out[last].owner == p.owner && out[last].scheduler == p.scheduler {
			out[last].share = min(1, out[last].share+p.share)
			out[last].cores = min(1, out[last].cores+p.cores)
			continue
		}
		out = append(out, p)
	}
	return out
}

func comparePods(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
