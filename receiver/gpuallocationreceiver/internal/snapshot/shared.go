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
	// plugins are the schedulers with a device plugin of their own.
	plugins []*sharing.Scheduler
}

// sharedBy takes of held what schedulers divide in another way than the kubelet lists it,
// and returns the rest.
func (b *Builder) sharedBy(held []entry, listed []kubeletID, a *kubelet.Answer, v View, tl *Tally) ([]entry, *sharedNode) {
	n := &sharedNode{boards: map[string]part{}, unknown: map[*sharing.Scheduler]bool{}, taken: map[string]bool{}, divided: map[string]bool{}}
	if v.Shared == nil {
		return held, n
	}
	rest, groups := n.reservations(held, v.Shared, tl)
	boards := n.boardsOf(v.Shared, rest, listed, groups)
	for _, s := range v.Shared.Reader.Schedulers {
		n.unknown[s] = !v.Shared.Fresh
		if s.Parts {
			n.plugins = append(n.plugins, s)
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
			n.start(pod, boards[pod.Scheduler.Name])
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
		if s.Parts {
			for _, id := range listed {
				n.addPart(own, s, id, shared.Memory)
			}
			for _, e := range held {
				n.addPart(own, s, e.kubeletID, shared.Memory)
			}
		}
		for _, board := range own {
			n.boards[board.ID] = part{scheduler: s, resource: s.Resource, board: board.ID}
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

// addPart adds the board of a part that the kubelet lists, where the node's object does
// not have it.
func (n *sharedNode) addPart(own sharing.Boards, s *sharing.Scheduler, id kubeletID, memory int64) {
	if gpu := partOf(s, id); gpu != "" {
		if _, ok := own[gpu]; !ok {
			own[gpu] = sharing.Board{ID: gpu, Memory: memory}
		}
	}
}

// partOf is the board in an id of the scheduler's device plugin; empty: it is another one's.
func partOf(s *sharing.Scheduler, id kubeletID) string {
	if parsed := deviceid.ParseKubelet(id.resource, id.id); id.resource == s.Resource && !parsed.Resolved && parsed.Shared && deviceid.IsGPU(parsed.Device) {
		return parsed.Device
	}
	return ""
}

// replaceParts replaces what the kubelet lists for the containers of a scheduler by what
// the scheduler wrote. Where that cannot be used, held stays as it is.
func (n *sharedNode) replaceParts(s *sharing.Scheduler, boards sharing.Boards, held []entry, shared *Shared, tl *Tally) []entry {
	rest := make([]entry, 0, len(held))
	for len(held) > 0 {
		count := 1
		for count < len(held) && held[count].owner == held[0].owner {
			count++
		}
		own := held[:count]
		held = held[count:]
		isPart := func(e entry) bool { return partOf(s, e.kubeletID) != "" }
		if !slices.ContainsFunc(own, isPart) {
			rest = append(rest, own...)
			continue
		}
		name := types.NamespacedName{Namespace: own[0].owner.Namespace, Name: own[0].owner.Pod}
		pod := shared.Pods[name]
		if pod.Ended && pod.Scheduler == s {
			// Kubelets before 1.34 list it until it is deleted.
			rest = append(rest, slices.DeleteFunc(slices.Clone(own), isPart)...)
			continue
		}
		placed, err := partsFor(own[0].owner, s, pod, boards)
		if err != nil || len(placed) == 0 {
			n.unknown[s] = true
			rest = append(rest, own...)
			if err != nil {
				tl.Unusable = append(tl.Unusable, Unusable{s.Name, name, err})
			}
			continue
		}
		n.parts = append(n.parts, placed...)
		rest = append(rest, slices.DeleteFunc(slices.Clone(own), isPart)...)
	}
	return rest
}

// partsFor are the parts of boards that a container has; none: nothing was written for it.
func partsFor(o owner.Owner, s *sharing.Scheduler, pod sharing.Pod, boards sharing.Boards) ([]part, error) {
	if pod.Scheduler != s {
		return nil, nil
	}
	if pod.Err != nil {
		return nil, pod.Err
	}
	var all []part
	for _, g := range pod.Grants {
		if g.Container != o.Container {
			continue
		}
		id, share, err := boards.Find(g)
		if err != nil {
			return nil, err
		}
		all = append(all, part{o, s, s.Resource, id, share, g.Cores})
	}
	return all, nil
}

// start notes the boards that init containers of a pod may use: they are not free.
func (n *sharedNode) start(pod sharing.Pod, boards sharing.Boards) {
	if !pod.Starting {
		return
	}
	for _, g := range pod.Grants {
		id, _, err := boards.Find(g)
		if id == "" {
			n.unknown[pod.Scheduler] = n.unknown[pod.Scheduler] || err != nil
			continue
		}
		n.divided[id] = true
	}
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
	return slices.ContainsFunc(n.plugins, func(s *sharing.Scheduler) bool { return partOf(s, id) != "" })
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
