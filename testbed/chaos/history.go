// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

// span is a time in which something was wrong; to is zero while it lasts.
type span struct {
	what     string // a node, gateway, api, or machine
	from, to time.Time
}

func (s *span) touches(from, to time.Time) bool {
	return !s.from.After(to) && (s.to.IsZero() || !s.to.Before(from))
}

// life is a pod's.
type life struct {
	pod      pod
	node     string
	devices  []string // as telemetry has their values: of a share, the GPU
	from, to time.Time
}

// shared reports whether it holds replicas of GPUs that others hold too.
func (l *life) shared() bool {
	return slices.ContainsFunc(l.pod.ids, func(id string) bool { return strings.Contains(id, "::") })
}

// Places of disturbances that are no nodes.
const (
	gatewayPlace = "gateway"
	apiPlace     = "api"
	machinePlace = "machine" // it stood still, or had no time for a collector
)

// history is what was done to the fleet, for the judges. Its methods may be
// called at the same time.
type history struct {
	mu        sync.Mutex
	disturbed []span // from the first fault of a round to the fleet being whole
	silent    []span // nodes of which nothing can be known, for sure
	deaf      []span // nodes with a kubelet that does not answer, for sure
	frozen    []span // nodes with an exporter that serves frozen pages, for sure
	lives     []life
	stalled   time.Duration // in sum
	whole     []time.Time   // when the fleet was found to be whole
}

// forget is how long after its end a disturbance can matter: points may wait for
// that long in a queue.
const forget = 5 * time.Minute

func begin(list *[]span, what string, at time.Time) {
	for i := range *list {
		if s := &(*list)[i]; s.what == what && s.to.IsZero() {
			return // it lasts already
		}
	}
	kept := (*list)[:0]
	for _, s := range *list {
		if s.to.IsZero() || at.Sub(s.to) < forget {
			kept = append(kept, s)
		}
	}
	*list = append(kept, span{what: what, from: at})
}

func end(list []span, what string, at time.Time) {
	for i := range list {
		if s := &list[i]; s.to.IsZero() && (s.what == what || what == "") {
			s.to = at
		}
	}
}

// disturb records that a place is not as it should be from now on.
func (h *history) disturb(place string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	begin(&h.disturbed, place, time.Now())
}

// recovered records that everything is as it should be.
func (h *history) recovered(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end(h.disturbed, "", at)
	for len(h.whole) > 0 && at.Sub(h.whole[0]) > forget {
		h.whole = h.whole[1:]
	}
	h.whole = append(h.whole, at)
}

// wholeBefore is when the fleet was last found to be whole before a time.
func (h *history) wholeBefore(at time.Time) (last time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.whole {
		if !t.After(at) {
			last = t
		}
	}
	return last
}

// silence records that nothing can be known of a node from now on, or again.
func (h *history) silence(node string, on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if on {
		begin(&h.silent, node, time.Now())
		return
	}
	end(h.silent, node, time.Now())
}

// deafen records that a node's kubelet does not answer from now on, or does again.
func (h *history) deafen(node string, on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if on {
		begin(&h.deaf, node, time.Now())
		return
	}
	end(h.deaf, node, time.Now())
}

// freeze records that the pages of a node's exporter are frozen from now on, or change again.
func (h *history) freeze(node string, on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if on {
		begin(&h.frozen, node, time.Now())
		return
	}
	end(h.frozen, node, time.Now())
}

// frozenAt is the time around a moment in which a node's pages stood still.
func (h *history) frozenAt(node string, at time.Time) (s span, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.frozen {
		if s.what == node && s.touches(at, at) {
			return s, true
		}
	}
	return span{}, false
}

// stall records that the machine was overloaded from one moment to another.
func (h *history) stall(from, to time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.disturbed); n > 0 && h.disturbed[n-1].what == machinePlace && !h.disturbed[n-1].to.Before(from) {
		// It goes on.
		h.stalled += max(0, to.Sub(h.disturbed[n-1].to))
		h.disturbed[n-1].to = to
		return
	}
	h.stalled += to.Sub(from)
	h.disturbed = append(h.disturbed, span{machinePlace, from, to})
}

// Stalled is for how long the machine stood still in all.
func (h *history) Stalled() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stalled
}

// wasDisturbed reports whether a place was at some moment of a time, or the
// machine, which is every place.
func (h *history) wasDisturbed(place string, from, to time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.disturbed {
		s := &h.disturbed[i]
		if (s.what == place || s.what == machinePlace) && s.touches(from, to) {
			return true
		}
	}
	return false
}

// wasSilent reports whether nothing could be known of a node all through a time.
func (h *history) wasSilent(node string, from, to time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.silent {
		if s := &h.silent[i]; s.what == node && !s.from.After(from) && (s.to.IsZero() || s.to.After(to)) {
			return true
		}
	}
	return false
}

// silences are the disturbances as the judge of owners takes them: a disturbed node
// may not know an owner, and, if deaf is wanted, a node without answers from the
// kubelet must not name one.
func (h *history) silences(nodes []string, deaf bool) (out []ownership.Silence) {
	h.mu.Lock()
	defer h.mu.Unlock()
	never := time.Now().Add(time.Hour)
	for _, s := range h.disturbed {
		for _, node := range nodes {
			if s.what != node && s.what != machinePlace {
				continue
			}
			until := s.to
			if s.what == machinePlace {
				until = until.Add(2 * interval)
			}
			out = append(out, ownership.Silence{Node: node, From: s.from.Add(-interval), Unknown: never, Until: until})
		}
	}
	for _, s := range h.deaf {
		if !deaf {
			break
		}
		out = append(out, ownership.Silence{Node: s.what, From: s.from, Unknown: s.from.Add(3*interval + maxAge + 4*interval), Until: s.to})
	}
	return out
}

// born and gone keep the census.
func (h *history) born(node string, p pod, devices []string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.lives[:0]
	for _, l := range h.lives {
		if l.to.IsZero() || at.Sub(l.to) < forget {
			kept = append(kept, l)
		}
	}
	h.lives = append(kept, life{pod: p, node: node, devices: devices, from: at})
}

func (h *history) gone(uid string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.lives {
		if l := &h.lives[i]; l.pod.uid == uid && l.to.IsZero() {
			l.to = at
		}
	}
}

// of are the pods of a service that lived at some moment of a time.
func (h *history) of(service string, from, to time.Time) (out []life) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lives {
		if l.pod.service == service && !l.from.After(to) && (l.to.IsZero() || !l.to.Before(from)) {
			out = append(out, l)
		}
	}
	return out
}

// services are those that have pods now, with how many.
func (h *history) services() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]int{}
	for _, l := range h.lives {
		if l.to.IsZero() {
			out[l.pod.service]++
		}
	}
	return out
}
