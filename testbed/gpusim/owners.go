// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// slotRef is a device or a MIG instance of a node: position -1 is the whole
// device, else the place in its layout.
type slotRef struct{ device, position int }

// heldSlot is what a pod holds: all of a device or instance (replica -1), or
// one of its replicas.
type heldSlot struct {
	slotRef
	replica int
}

type heldPod struct {
	pod   Pod
	slots []heldSlot
}

// holding is one pod's part of a device or instance during one second.
type holding struct {
	pod     *Pod
	replica int // -1 holds it alone
	used    int // MiB
	activity
}

// maxReplica is the highest replica number that makes sense.
const maxReplica = 999

// parseSlot reads "<index>" or "<index>:<position>".
func parseSlot(s string) (slotRef, error) {
	dev, pos, mig := strings.Cut(s, ":")
	ref := slotRef{position: -1}
	var err error
	if ref.device, err = strconv.Atoi(dev); err != nil || ref.device < 0 {
		return ref, fmt.Errorf("device %q: write \"<index>\" or \"<index>:<position in the MIG layout>\"", s)
	}
	if mig {
		if ref.position, err = strconv.Atoi(pos); err != nil || ref.position < 0 {
			return ref, fmt.Errorf("device %q: write \"<index>\" or \"<index>:<position in the MIG layout>\"", s)
		}
	}
	return ref, nil
}

// parseHeld reads what parseSlot does, with "::<replica>" or without.
func parseHeld(s string) (heldSlot, error) {
	base, number, shared := strings.Cut(s, "::")
	ref, err := parseSlot(base)
	out := heldSlot{ref, -1}
	if err != nil || !shared {
		return out, err
	}
	if out.replica, err = strconv.Atoi(number); err != nil || out.replica < 0 || out.replica > maxReplica {
		return out, fmt.Errorf("device %q: after \"::\" comes the number of a replica, 0 to %d", s, maxReplica)
	}
	return out, nil
}

// resolve checks the pods of a node and finds what they hold.
func (n *node) resolve(pods []Pod) ([]heldPod, error) {
	var out []heldPod
	taken := map[slotRef]map[int]string{}
	for i := range pods {
		p := pods[i]
		slots, err := n.podSlots(&p)
		if err != nil {
			return nil, fmt.Errorf("pods[%d]: %w", i, err)
		}
		for _, s := range slots {
			by := taken[s.slotRef]
			if by == nil {
				by = map[int]string{}
				taken[s.slotRef] = by
			}
			for replica, other := range by {
				if replica == s.replica || replica < 0 || s.replica < 0 {
					return nil, fmt.Errorf("pods[%d]: device %d of pod %s is held by %s already; \"::<n>\" is a replica for each that shares it", i, s.device, p.Name, other)
				}
			}
			by[s.replica] = p.Name
		}
		out = append(out, heldPod{p, slots})
	}
	return out, nil
}

// podSlots checks a pod and resolves the devices that it holds.
func (n *node) podSlots(p *Pod) ([]heldSlot, error) {
	if p.Name == "" || p.Namespace == "" {
		return nil, errors.New("a pod needs namespace and name")
	}
	if err := checkEngine(p); err != nil {
		return nil, fmt.Errorf("pod %s: %w", p.Name, err)
	}
	if _, ok := profiles[p.Load]; !ok {
		return nil, fmt.Errorf("pod %s: load %q is not inference, training or idle", p.Name, p.Load)
	}
	if len(p.Devices) == 0 && p.Engine == "" {
		return nil, fmt.Errorf("pod %s: devices must not be empty", p.Name)
	}
	if p.Start < 0 || p.Warmup < 0 {
		return nil, fmt.Errorf("pod %s: start and warmup cannot be negative", p.Name)
	}
	var out []heldSlot
	for _, d := range p.Devices {
		s, err := parseHeld(d)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", p.Name, err)
		}
		if err := n.check(s.slotRef, false); err != nil {
			return nil, fmt.Errorf("pod %s: %w", p.Name, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// check reports whether a device or instance exists. A device in MIG mode can
// have faults but is not held whole.
func (n *node) check(ref slotRef, whole bool) error {
	if ref.device >= len(n.boards) {
		return fmt.Errorf("node %s has no device %d: it has %d", n.cfg.Name, ref.device, len(n.boards))
	}
	have := len(n.boards[ref.device].instances)
	if ref.position >= have {
		return fmt.Errorf("device %d of node %s has no MIG instance at position %d: it has %d", ref.device, n.cfg.Name, ref.position, have)
	}
	if ref.position < 0 && have > 0 && !whole {
		return fmt.Errorf("device %d of node %s is in MIG mode: name an instance, as %d:0", ref.device, n.cfg.Name, ref.device)
	}
	return nil
}

// owners are the pods that hold a device or instance at second k, of those
// that have come and not gone: the one that came last, or those that share it.
func (n *node) owners(ref slotRef, k int64) []holding {
	var out []holding
	consider := func(p *Pod, slots []heldSlot) {
		for _, s := range slots {
			if s.slotRef != ref || k < step(p.Start) || n.faults.gone(p, k) {
				continue
			}
			together := s.replica >= 0 && len(out) > 0 && out[0].replica >= 0
			later := slices.ContainsFunc(out, func(h holding) bool { return h.pod.Start > p.Start })
			if !together && later {
				continue
			}
			if !together {
				out = out[:0]
			}
			out = append(out, holding{pod: p, replica: s.replica})
		}
	}
	for i := range n.pods {
		consider(&n.pods[i].pod, n.pods[i].slots)
	}
	for _, f := range n.faults {
		if f.Kind == NewPod && f.holdsStep(k) {
			consider(f.Pod, f.slots)
		}
	}
	slices.SortStableFunc(out, func(a, b holding) int { return cmp.Compare(a.replica, b.replica) })
	return out
}

// slot is the activity of one row at second k and the pods that hold it, each
// with its part of that activity.
func (b *board) slot(position int, k int64) (activity, []holding) {
	held := b.node.owners(slotRef{b.index, position}, k)
	for i := range held {
		h := &held[i]
		h.activity = b.work(position, h.replica, h.pod, k)
	}
	switch {
	case len(held) == 0:
		return activity{}, nil
	case held[0].replica < 0:
		return held[0].activity, held
	}
	return share(held), held
}

// work is what a pod does on a row at second k when it is alone there.
func (b *board) work(position, replica int, pod *Pod, k int64) activity {
	slot := b.seed + uint64(position+2)<<40 + uint64(replica+1)<<50
	warm := 1.0
	if pod.Start > 0 {
		warm = min(1, max(float64(k-step(pod.Start))/pod.warmup(), 0))
	}
	fleet := b.node.fleet.cfg.Seed
	service := random.Stream(fleet, "service/"+pod.Namespace+"/"+pod.Service())
	name := random.Stream(fleet, "pod/"+pod.Namespace+"/"+pod.Name)
	return activityOf(pod.Load, loadOf(pod.Load, service, name, slot, k), warm, slot, k)
}

// share lets pods share a device in time: together they cannot do more than one
// could, and each has a small part of the memory. It returns the sum.
func share(held []holding) activity {
	const places = 4 // room is left for so many
	weight := func(h *holding) float64 {
		same := 0
		for i := range held {
			if o := held[i].pod; o.Namespace == h.pod.Namespace && o.Name == h.pod.Name && o.Container == h.pod.Container {
				same++
			}
		}
		return 1 / float64(same) // of a pod with two replicas, each does half the work
	}
	var wanted, link float64
	for i := range held {
		w := weight(&held[i])
		wanted += w * held[i].util
		link += w * held[i].pcieRx
	}
	crowd := max(1, wanted, link)
	var sum activity
	for i := range held {
		h := &held[i]
		w := weight(h)
		memory := h.memory * w / float64(max(places, len(held)))
		h.activity = h.scaled(w / crowd)
		h.memory = memory
		sum = sum.plus(h.activity)
	}
	return sum
}

// part is an owner's part of what its device does, 0 to 1: by utilization, or
// the same for all when none computes.
func (h *holding) part(r *reading) float64 {
	switch {
	case len(r.owners) == 1:
		return 1
	case r.util > 0:
		return h.util / r.util
	}
	return 1 / float64(len(r.owners))
}

// UsageTruth is how long an owner had a device in some time. Without a pod, the device had
// no owner.
type UsageTruth struct {
	Node      string `json:"node"`
	Board     string `json:"board"` // the UUID of its board
	Device    string `json:"device"`
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Service   string `json:"service,omitempty"`
	Seconds   int64  `json:"seconds"`
	// BoardMilliJoules is what the board burnt in that time, whatever else was on it.
	BoardMilliJoules float64 `json:"board_millijoules"`
}

// addUsage adds second k of the board.
func (b *board) addUsage(sums map[UsageTruth]*UsageTruth, k int64) {
	work := b.whole(k)
	watts := b.watts(work, b.node.faults.throttled(b.index, k), k)
	uuid := b.current(b.node.faults.harm(b, k, work.util > .5).boards)
	add := func(key UsageTruth) {
		if sums[key] == nil {
			sums[key] = &UsageTruth{Node: key.Node, Board: key.Board, Device: key.Device, Namespace: key.Namespace, Pod: key.Pod, Service: key.Service}
		}
		sums[key].Seconds++
		sums[key].BoardMilliJoules += watts * 1e3
	}
	for _, position := range b.positions() {
		key := UsageTruth{Node: b.node.cfg.Name, Board: uuid, Device: uuid}
		if position >= 0 {
			key.Device = fmt.Sprintf("%s/%d", uuid, b.instances[position].id)
		}
		held := b.node.owners(slotRef{b.index, position}, k)
		if len(held) == 0 {
			add(key)
		}
		for i := range held {
			p := held[i].pod
			key.Namespace, key.Pod, key.Service = p.Namespace, p.Name, p.Service()
			add(key)
		}
	}
}
