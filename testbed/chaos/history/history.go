// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package history records what was done to a fleet and which pods lived in it, for the
// judges: where something was wrong, and when. It has no clock.
package history

import (
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// Span is a time in which something was wrong; To is zero while it lasts.
type Span struct {
	What     string // a node, gateway, api, or machine
	From, To time.Time
}

func (s *Span) touches(from, to time.Time) bool {
	return !s.From.After(to) && (s.To.IsZero() || !s.To.Before(from))
}

// Life is a pod's.
type Life struct {
	Node, Service, UID string
	Devices            []string  // as telemetry has their values: of a share, the GPU
	Shared             bool      // it holds replicas of GPUs that others hold too
	Started            time.Time // as the API server has it
	From, To           time.Time // on its node; To is zero while it is there
}

// Places of disturbances that are no nodes.
const (
	Gateway = "gateway"
	API     = "api"
	Machine = "machine" // it stood still, or had no time for a collector
)

// History is what was done to a fleet. Its methods may be called concurrently.
type History struct {
	mu        sync.Mutex
	disturbed []Span // from the first fault of a round to the fleet being whole
	silent    []Span // nodes of which nothing can be known, for sure
	deaf      []Span // nodes with a kubelet that does not answer, for sure
	frozen    []Span // nodes with an exporter that serves frozen pages, for sure
	lives     []Life
	stalled   time.Duration // in sum
	whole     []time.Time   // when the fleet was found to be whole
}

// forget is how long after its end a disturbance can matter: points may wait for
// that long in a queue.
const forget = 5 * time.Minute

func begin(list *[]Span, what string, at time.Time) {
	for i := range *list {
		if s := &(*list)[i]; s.What == what && s.To.IsZero() {
			return // it lasts already
		}
	}
	kept := (*list)[:0]
	for _, s := range *list {
		if s.To.IsZero() || at.Sub(s.To) < forget {
			kept = append(kept, s)
		}
	}
	*list = append(kept, Span{What: what, From: at})
}

func end(list []Span, what string, at time.Time) {
	for i := range list {
		if s := &list[i]; s.To.IsZero() && (s.What == what || what == "") {
			s.To = at
		}
	}
}

// Disturb records that a place is not as it should be from a moment on, until all is.
func (h *History) Disturb(place string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	begin(&h.disturbed, place, at)
}

// Recovered records that everything is as it should be.
func (h *History) Recovered(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end(h.disturbed, "", at)
	for len(h.whole) > 0 && at.Sub(h.whole[0]) > forget {
		h.whole = h.whole[1:]
	}
	h.whole = append(h.whole, at)
}

// WholeBefore is when the fleet was last found to be whole before a time.
func (h *History) WholeBefore(at time.Time) (last time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.whole {
		if !t.After(at) {
			last = t
		}
	}
	return last
}

// Silence records that nothing can be known of a node from a moment on, or again.
func (h *History) Silence(node string, on bool, at time.Time) { h.set(&h.silent, node, on, at) }

// Deafen records that a node's kubelet does not answer from a moment on, or does again.
func (h *History) Deafen(node string, on bool, at time.Time) { h.set(&h.deaf, node, on, at) }

// Freeze records that the pages of a node's exporter are frozen from a moment on, or
// change again.
func (h *History) Freeze(node string, on bool, at time.Time) { h.set(&h.frozen, node, on, at) }

func (h *History) set(list *[]Span, node string, on bool, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if on {
		begin(list, node, at)
	} else {
		end(*list, node, at)
	}
}

// FrozenAt is the time around a moment in which a node's pages stood still.
func (h *History) FrozenAt(node string, at time.Time) (s Span, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.frozen {
		if s.What == node && s.touches(at, at) {
			return s, true
		}
	}
	return Span{}, false
}

// Stall records that the machine was overloaded from one moment to another.
func (h *History) Stall(from, to time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.disturbed); n > 0 && h.disturbed[n-1].What == Machine && !h.disturbed[n-1].To.Before(from) {
		// It goes on.
		h.stalled += max(0, to.Sub(h.disturbed[n-1].To))
		h.disturbed[n-1].To = to
		return
	}
	h.stalled += to.Sub(from)
	h.disturbed = append(h.disturbed, Span{Machine, from, to})
}

// Stalled is for how long the machine stood still in all.
func (h *History) Stalled() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stalled
}

// WasDisturbed reports whether a place was at some moment of a time, or the
// machine, which is every place.
func (h *History) WasDisturbed(place string, from, to time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.disturbed {
		s := &h.disturbed[i]
		if (s.What == place || s.What == Machine) && s.touches(from, to) {
			return true
		}
	}
	return false
}

// WasSilent reports whether nothing could be known of a node all through a time.
func (h *History) WasSilent(node string, from, to time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.silent {
		if s := &h.silent[i]; s.What == node && !s.From.After(from) && (s.To.IsZero() || s.To.After(to)) {
			return true
		}
	}
	return false
}

// Silences are the disturbances as the judge of owners takes them: a disturbed node
// may not know an owner, and, if deaf is wanted, a node without answers from the
// kubelet must not name one.
func (h *History) Silences(nodes []string, deaf bool, now time.Time) (out []ownership.Silence) {
	h.mu.Lock()
	defer h.mu.Unlock()
	never := now.Add(time.Hour)
	for _, s := range h.disturbed {
		for _, node := range nodes {
			if s.What != node && s.What != Machine {
				continue
			}
			until := s.To
			if s.What == Machine {
				until = until.Add(2 * pace.Interval)
			}
			out = append(out, ownership.Silence{Node: node, From: s.From.Add(-pace.Interval), Unknown: never, Until: until})
		}
	}
	for _, s := range h.deaf {
		if !deaf {
			break
		}
		out = append(out, ownership.Silence{Node: s.What, From: s.From, Unknown: s.From.Add(3*pace.Interval + pace.MaxAge + 4*pace.Interval), Until: s.To})
	}
	return out
}

// Born records a pod that is on its node from its From on.
func (h *History) Born(born Life) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.lives[:0]
	for _, l := range h.lives {
		if l.To.IsZero() || born.From.Sub(l.To) < forget {
			kept = append(kept, l)
		}
	}
	h.lives = append(kept, born)
}

// Gone records that a pod left its node.
func (h *History) Gone(uid string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.lives {
		if l := &h.lives[i]; l.UID == uid && l.To.IsZero() {
			l.To = at
		}
	}
}

// Of are the pods of a service that lived at some moment of a time.
func (h *History) Of(service string, from, to time.Time) (out []Life) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lives {
		if l.Service == service && !l.From.After(to) && (l.To.IsZero() || !l.To.Before(from)) {
			out = append(out, l)
		}
	}
	return out
}

// Services are those that have pods now, with how many.
func (h *History) Services() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]int{}
	for _, l := range h.lives {
		if l.To.IsZero() {
			out[l.Service]++
		}
	}
	return out
}
