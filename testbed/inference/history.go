// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"math"
	"slices"
	"time"
)

// history is what a series must have been until now.
type history struct {
	layout string
	start  time.Time
	single int       // the source that it is of, while it is of one
	prev   []*amount // of each source on the last page; nil: not there
	gone   []amount  // of sources that began again, as they were last
	folded bool
	// value and increase are of the points: the last one, and what a store would add up.
	value, increase float64
	began           time.Time
	// lives is what the requests were, life by life, as they were last read; known is
	// whether the pages have each begin, so that a store adds up the same.
	lives, life float64
	known       bool
	refused     bool // the last page had it and was not sound
	forgotten   bool // the collector restarted
	added       bool // it was a sum of sources before that
}

// clone is a copy that can be changed without the other.
func (h *history) clone() *history {
	c := *h
	c.prev, c.gone = slices.Clone(h.prev), slices.Clone(h.gone)
	return &c
}

// next is what the series must be on a page that was read at a time: its amount, and its
// start. known is the start that the page has, if any.
func (h *history) next(parts []amount, bounds []float64, known, at time.Time) (amount, time.Time) {
	if h.forgotten {
		h.again(parts, bounds, known)
	}
	fresh := h.prev == nil
	h.known = !known.IsZero()
	if fresh {
		h.prev = make([]*amount, len(parts))
	}
	there := 0
	for i := range parts {
		if parts[i].count != absent {
			there++
			if !h.folded && there == 1 && h.prev[i] == nil {
				h.single = i
			}
		}
	}
	begun := at
	if !known.IsZero() {
		begun = known
	}
	switch {
	case fresh:
		h.start = begun
	case !known.IsZero():
		h.start = known
	}
	if there > 1 && !h.folded {
		h.folded = true
		h.gone = nil
		goesOn := slices.ContainsFunc(parts, func(p amount) bool { return p.count != absent }) && !fresh
		for i, was := range h.prev {
			goesOn = goesOn && (was == nil || parts[i].count >= was.count && parts[i].sum >= was.sum)
		}
		if !goesOn {
			h.start = begun
		}
		clear(h.prev)
	}
	if h.folded && !fresh && !h.goesOn(parts, bounds) && slices.ContainsFunc(h.prev, func(was *amount) bool { return was != nil }) {
		h.gone, h.start = nil, begun
		clear(h.prev)
	}
	for i := range parts {
		was := h.prev[i]
		switch {
		case parts[i].count == absent && h.folded:
			continue // it goes on where it was when it is there again
		case parts[i].count == absent:
			h.prev[i] = nil
			continue
		case was == nil && !fresh && !h.folded && known.IsZero():
			h.start = at // another source
		case was != nil && h.folded && fell(was, &parts[i], bounds, true):
			h.gone = append(h.gone, *was)
		case was != nil && !h.folded && known.IsZero() && fell(was, &parts[i], bounds, false):
			h.start = at
		}
		h.prev[i] = &parts[i]
	}
	var all []amount
	if !fresh && h.start.Sub(h.began) > time.Millisecond { // a page's times are not exact
		h.lives, h.life = h.lives+h.life, 0
	}
	all = append(all, h.gone...)
	for _, p := range h.prev {
		if p != nil {
			all = append(all, *p)
		}
	}
	out := sum(all)
	h.life = out.count
	return out, h.start
}

// again is a series that is made of the page alone: what its sources had counted before
// they were gone or began again is of earlier lives.
func (h *history) again(parts []amount, bounds []float64, known time.Time) {
	if !known.IsZero() && known.Sub(h.began) > time.Millisecond {
		h.lives += h.life
	} else {
		for _, was := range h.gone {
			h.lives += was.count
		}
		for i, was := range h.prev {
			if was != nil && (parts[i].count == absent || fell(was, &parts[i], bounds, true)) {
				h.lives += was.count
			}
		}
	}
	h.added = h.folded
	h.prev, h.gone, h.folded = nil, nil, false
}

// goesOn reports whether one of several sources counts on from where it was.
func (h *history) goesOn(parts []amount, bounds []float64) bool {
	for i, was := range h.prev {
		if was != nil && parts[i].count != absent && !fell(was, &parts[i], bounds, true) {
			return true
		}
	}
	return false
}

func sum(all []amount) amount {
	out := amount{below: func(b float64) float64 {
		n := 0.0
		for _, a := range all {
			n += a.below(b)
		}
		return n
	}}
	for _, a := range all {
		out.count += a.count
		out.sum += a.sum
	}
	return out
}

// fell reports whether something that a source counts became less.
func fell(was, is *amount, bounds []float64, buckets bool) bool {
	if is.count < was.count || is.sum < was.sum {
		return true
	}
	last := [2]float64{}
	for _, b := range bounds {
		now := [2]float64{was.below(b), is.below(b)}
		if buckets && now[1]-last[1] < now[0]-last[0] {
			return true
		}
		last = now
	}
	return buckets && len(bounds) > 0 && is.count-last[1] < was.count-last[0]
}

// observe adds a point as a store does, and returns false if the series falls without a
// later start.
func (h *history) observe(p *point, first bool) bool {
	ok := true
	switch {
	case h.forgotten && !first:
		// It goes on. Where the page does not have its start, that is the time of the
		// restart, and there is no more than a fall of the value to begin again by.
		if p.value < h.value || h.known && p.start.Sub(h.began) > time.Millisecond {
			ok = p.start.After(h.began)
			if h.added && p.value < h.value {
				h.lives += p.value // the processor's README: what sources that are gone had counted is gone too
			}
			h.increase += p.value
		} else {
			h.increase += p.value - h.value
		}
		h.forgotten = false
	case first:
		if p.start.Before(h.began) || p.value < 0 {
			ok = false
		}
		h.increase = p.value
	case p.start.After(h.began):
		h.increase += p.value
	default:
		ok = p.value >= h.value && !p.start.Before(h.began)
		h.increase += p.value - h.value
	}
	h.value, h.began = p.value, p.start
	return ok
}

// near is equality of numbers that were added up in another order or printed.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 2e-5*max(math.Abs(a), math.Abs(b))+2e-6
}
