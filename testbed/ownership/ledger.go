// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Ledger is the truth over time: who held each device, from when to when. It
// is given what is true and may be queried about every moment since. Devices are named
// as on the wire (hw.id); a replica is a device.
//
// A change is seen between two looks at the truth. The ledger lets the new
// state begin with the first of them and the former end with the second, so
// that nothing is blamed for what the ledger does not know exactly.
type Ledger struct {
	mu      sync.Mutex
	devices map[string][]span // in the order of time; the last may be open
	aliases map[string]string
	looked  time.Time
	changed time.Time

	undecided []undecided
}

// undecided is a time in which devices of a node that are free may not be reported so.
type undecided struct {
	node     string
	from, to time.Time
}

// State is what is true of a device.
type State struct {
	Node   string
	Owners []Owner // none: it is free, or only its replicas are held
	// Share is what each owner has of it, as gpu.allocation reports: 1, or 1/n.
	Share float64
	// Divided devices are held through their replicas or MIG instances, if at
	// all: nothing can report them as free.
	Divided bool
}

func (s State) equal(o State) bool {
	return s.Node == o.Node && s.Share == o.Share && s.Divided == o.Divided && slices.Equal(s.Owners, o.Owners)
}

type span struct {
	from, to time.Time // to zero: it still holds
	state    State
}

func (s *span) touches(from, to time.Time) bool {
	return !s.from.After(to) && (s.to.IsZero() || !s.to.Before(from))
}

// NewLedger is a ledger that knows no device.
func NewLedger() *Ledger {
	return &Ledger{devices: map[string][]span{}, aliases: map[string]string{}}
}

// Observe records what was true of all devices at a moment between before and
// after. Devices that are not in it do not exist any more.
func (l *Ledger) Observe(before, after time.Time, devices map[string]State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.looked // a change may be as old as the look before
	if from.IsZero() {
		from = before
	}
	l.looked = before
	for id, state := range devices {
		spans := l.devices[id]
		if n := len(spans); n > 0 && spans[n-1].to.IsZero() {
			if spans[n-1].state.equal(state) {
				continue
			}
			spans[n-1].to = after
			if former := spans[n-1].state; len(former.Owners) > 0 && len(state.Owners) > 0 {
				// Given back before it was given away again.
				free := state
				free.Owners = nil
				spans = append(spans, span{from: from, to: after, state: free})
			}
		}
		l.changed = after
		state.Owners = slices.Clone(state.Owners)
		l.devices[id] = append(spans, span{from: from, state: state})
	}
	for id, spans := range l.devices {
		if _, there := devices[id]; !there && len(spans) > 0 && spans[len(spans)-1].to.IsZero() {
			spans[len(spans)-1].to = after
			l.changed = after
		}
	}
}

// Changed is when the last change was seen.
func (l *Ledger) Changed() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Alias gives a device one more name on the wire, such as the one that
// gpu.allocation has for a device that it cannot resolve.
func (l *Ledger) Alias(alias, device string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aliases[alias] = device
}

// Undecided records a time in which what is free on a node may be unknown: a claim names
// it, and it is not read yet whether the claim holds it.
func (l *Ledger) Undecided(node string, from, to time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.undecided = append(l.undecided, undecided{node, from, to})
}

// wasUndecided reports whether that touches a time.
func (l *Ledger) wasUndecided(node string, from, to time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.undecided, func(u undecided) bool {
		return u.node == node && !u.from.After(to) && !u.to.Before(from)
	})
}

// Now are the devices that exist.
func (l *Ledger) Now() map[string]State {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]State{}
	for id, spans := range l.devices {
		if n := len(spans); n > 0 && spans[n-1].to.IsZero() {
			out[id] = spans[n-1].state
		}
	}
	return out
}

// Aliases are the further names of devices.
func (l *Ledger) Aliases() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.aliases)
}

// between are the states of a device that held at some moment of a time, and
// those that had ended before it. known is false for a device that never was.
func (l *Ledger) between(device string, from, to time.Time) (now, former []State, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name, ok := l.aliases[device]; ok {
		device = name
	}
	spans, known := l.devices[device]
	for i := range spans {
		switch {
		case spans[i].touches(from, to):
			now = append(now, spans[i].state)
		case spans[i].from.Before(from):
			former = append(former, spans[i].state)
		}
	}
	return now, former, known
}

// lost reports whether a device was for a moment of a time not h's; of no one:
// not free.
func (l *Ledger) lost(device string, h Owner, from, to time.Time) bool {
	now, _, _ := l.between(device, from, to)
	return slices.ContainsFunc(now, func(s State) bool {
		if (h == Owner{}) {
			return !s.free() || l.wasUndecided(s.Node, from, to)
		}
		return !h.In(s)
	})
}

// Placement is the moment at which a container got a device.
type Placement struct {
	Device string
	Node   string
	Owner  Owner
	At     time.Time
}

// Placements are all of them, in the order of devices and time.
func (l *Ledger) Placements() []Placement {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Placement
	for _, id := range slices.Sorted(maps.Keys(l.devices)) {
		var before []Owner
		for _, s := range l.devices[id] {
			for _, h := range s.state.Owners {
				if !slices.Contains(before, h) {
					out = append(out, Placement{id, s.state.Node, h, s.from})
				}
			}
			before = s.state.Owners
		}
	}
	return out
}
