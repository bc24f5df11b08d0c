// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"fmt"
	"time"
)

// SetPods replaces the pods of a node, from the second into which now falls:
// what its kubelet decided. A pod that was there (namespace, name, container
// and UID) goes on with the devices that it keeps; whatever else is held starts
// its load now and warms up, whatever its Start. Counters go on. Pods of
// new_pod faults stay. An error changes nothing.
func (fl *Fleet) SetPods(name string, pods []Pod) error {
	return fl.change(name, func(n *node, now time.Duration, settle func()) error {
		held, err := n.resolve(pods)
		if err != nil {
			return err
		}
		settle()
		fl.served.advance(now)
		n.pods = n.pods.arrive(held, Duration(max(now, 1))) // 0 would be a settled pod
		fl.served.advance(now)
		return nil
	})
}

// SetMIG gives a device another MIG layout, from the second into which now
// falls; without profiles MIG is off. The device must be free. All instances
// are created again: their ids and UUIDs are those that the driver gives to such
// instances at such places. Counters of the board go on. An error changes nothing.
func (fl *Fleet) SetMIG(name string, device int, layout []string) error {
	return fl.change(name, func(n *node, now time.Duration, settle func()) error {
		if device < 0 || device >= len(n.boards) {
			return fmt.Errorf("node %s has no device %d: it has %d", name, device, len(n.boards))
		}
		b := n.boards[device]
		instances, err := b.model.layout(layout)
		if err != nil {
			return fmt.Errorf("device %d of node %s: %w", device, name, err)
		}
		k := step(Duration(now))
		for _, position := range b.positions() {
			if held := n.owners(slotRef{device, position}, k); len(held) > 0 {
				return fmt.Errorf("device %d of node %s is held by pod %s/%s: take it away first", device, name, held[0].pod.Namespace, held[0].pod.Name)
			}
		}
		for _, p := range n.pods { // also those that are still to come
			for _, s := range p.slots {
				if s.device == device {
					return fmt.Errorf("device %d of node %s is for pod %s/%s: take it away first", device, name, p.pod.Namespace, p.pod.Name)
				}
			}
		}
		settle()
		for ref := range n.formers {
			if ref.device == device {
				delete(n.formers, ref)
			}
		}
		b.instances, b.migSince = instances, k
		return nil
	})
}

// DriverBoards are the boards of a node at a time, in the order of their places. Those
// that are lost are there still.
func (fl *Fleet) DriverBoards(name string, at time.Time) ([]DriverBoard, error) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	n := fl.node(name)
	if n == nil {
		return nil, fmt.Errorf("unknown node %q", name)
	}
	k := step(Duration(n.at(fl.elapsed(at))))
	out := make([]DriverBoard, 0, len(n.boards))
	for _, b := range n.boards {
		out = append(out, driverBoard(b, k))
	}
	return out, nil
}

// change makes a change to a node now. do calls settle once it is sure, before
// it changes something: what was up to now is added up, and no longer needed.
func (fl *Fleet) change(name string, do func(n *node, now time.Duration, settle func()) error) error {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	n := fl.node(name)
	if n == nil {
		return fmt.Errorf("unknown node %q", name)
	}
	now := n.at(fl.elapsed(fl.clock()))
	return do(n, now, func() {
		for _, f := range n.faults {
			if f.Kind == ExporterFrozen && f.holds(now) && f.frozen == nil {
				f.frozen = n.page(f.start, time.Time{}, n.faults.host(n.cfg.Name, f.start))
			}
		}
		k := step(Duration(now))
		n.remember(k)
		for _, b := range n.boards {
			b.advance(k)
			b.base, b.refreshed = b.state, boardState{}
		}
		n.since = k
	})
}

// heldPods are the pods of a node.
type heldPods []heldPod

// arrive gives each pod the time since which it has each of its devices: where
// they differ, the pod is in the list once for each.
func (before heldPods) arrive(pods heldPods, now Duration) heldPods {
	var out heldPods
	for _, p := range pods {
		var starts []Duration
		bySince := map[Duration][]heldSlot{}
		for _, s := range p.slots {
			since, ok := before.heldSince(&p.pod, s)
			if !ok {
				since = now
			}
			if bySince[since] == nil {
				starts = append(starts, since)
			}
			bySince[since] = append(bySince[since], s)
		}
		if len(p.slots) == 0 { // a gateway
			since, ok := before.since(&p.pod)
			if !ok {
				since = now
			}
			starts = append(starts, since)
		}
		for _, since := range starts {
			part := heldPod{p.pod, bySince[since]}
			part.pod.Start = since
			out = append(out, part)
		}
	}
	return out
}

// same reports whether two are one pod.
func (p *Pod) same(q *Pod) bool {
	return q.Namespace == p.Namespace && q.Name == p.Name && q.Container == p.Container && q.UID == p.UID
}

// since is when a pod came.
func (before heldPods) since(p *Pod) (Duration, bool) {
	for _, known := range before {
		if known.pod.same(p) {
			return known.pod.Start, true
		}
	}
	return 0, false
}

func (before heldPods) heldSince(p *Pod, s heldSlot) (Duration, bool) {
	for _, known := range before {
		if !known.pod.same(p) {
			continue
		}
		for _, had := range known.slots {
			if had == s {
				return known.pod.Start, true
			}
		}
	}
	return 0, false
}
