// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package guard bounds what senders may send: distinct series over a sliding window
// and items a minute, each of one sender, and series of all. It has no clock and no
// lock; times are passed in.
package guard // import "github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor/internal/guard"

import "time"

const (
	// Window is how long a series counts after its last point, at most; at least it
	// is half as long.
	Window = 10 * time.Minute
	// maxSenders bounds the senders that have limits of their own. Those beyond have
	// the limits of one together.
	maxSenders = 10_000
)

// Verdict is why an item is refused; the zero value admits it.
type Verdict string

const (
	Admitted           Verdict = ""
	OverRate           Verdict = "rate"                  // max_points_per_minute_per_sender
	OverSeries         Verdict = "max_series"            // of all senders
	OverSeriesOfSender Verdict = "max_series_per_sender" // of this one
	Ambiguous          Verdict = "ambiguous"             // in Prometheus it is a series, or of a metric, that is written in another way
)

// Limits of a guard; all are above zero.
type Limits struct {
	Series, SeriesPerSender, ItemsPerMinute int
}

// Guard knows what each sender sent of late.
type Guard struct {
	limits  Limits
	senders map[string]*Sender
	rest    *Sender // of those beyond maxSenders
	series  int
	turned  time.Time
	// How a series is written, and of which type a metric is: of all senders,
	// because in Prometheus they share both.
	written, types halves[uint64]
}

// New returns a guard that has seen nothing.
func New(limits Limits) *Guard {
	return &Guard{limits: limits, senders: map[string]*Sender{}, rest: &Sender{}}
}

// halves has what came in the running half of the window, and what came in the half
// before and not again since.
type halves[V any] struct{ recent, older map[uint64]V }

// get returns what is known of a key, which counts as seen now.
func (h *halves[V]) get(key uint64) (v V, known bool) {
	if v, known = h.recent[key]; known {
		return v, true
	}
	if v, known = h.older[key]; known {
		delete(h.older, key)
		h.set(key, v)
	}
	return v, known
}

// peek is get for a key that was not seen.
func (h *halves[V]) peek(key uint64) (v V, known bool) {
	if v, known = h.recent[key]; !known {
		v, known = h.older[key]
	}
	return v, known
}

func (h *halves[V]) set(key uint64, v V) {
	if h.recent == nil {
		h.recent = map[uint64]V{}
	}
	h.recent[key] = v
}

// turn begins another half and returns what has not come for a whole window.
func (h *halves[V]) turn() (gone map[uint64]V) {
	gone, h.older, h.recent = h.older, h.recent, nil
	return gone
}

// Sender is what is known of one sender. It is good until the next call of
// Guard.Sender.
type Sender struct {
	guard  *Guard
	points halves[point] // by fingerprint
	series int
	minute int64
	items  int
	sent   *Sent // of the batch that is judged
}

// point is what counts of a fingerprint.
type point struct {
	series int32
	ended  bool
}

// Sent is what counts of one batch of a sender, until it is given back.
type Sent struct {
	items int
	ends  []uint64
}

// Sender returns the sender with a name.
func (g *Guard) Sender(name string, now time.Time) *Sender {
	g.turn(now)
	s := g.senders[name]
	switch {
	case s != nil:
	case len(g.senders) >= maxSenders:
		s = g.rest
	default:
		s = &Sender{}
		g.senders[name] = s
	}
	s.guard = g
	if minute := now.Unix() / 60; minute != s.minute {
		s.minute, s.items = minute, 0
	}
	return s
}

// turn begins another half of the window when it is time. A clock that was set back
// begins one too.
func (g *Guard) turn(now time.Time) {
	since := now.Sub(g.turned)
	if since >= 0 && since < Window/2 {
		return
	}
	both := since >= Window || since < 0
	g.turned = now
	for name, s := range g.senders {
		g.age(s, both)
		if s.series == 0 && s.minute < now.Unix()/60-1 {
			delete(g.senders, name)
		}
	}
	g.age(g.rest, both)
	for range turns(both) {
		g.written.turn()
		g.types.turn()
	}
}

func turns(both bool) int {
	if both {
		return 2
	}
	return 1
}

func (g *Guard) age(s *Sender, both bool) {
	for range turns(both) {
		for _, p := range s.points.turn() {
			s.series -= int(p.series)
			g.series -= int(p.series)
		}
	}
}

// Note has everything noted that counts from now on.
func (s *Sender) Note(in *Sent) { s.sent = in }

// GiveBack takes off what counted of a batch of a time: it was refused further on, and comes
// again.
func (g *Guard) GiveBack(name string, sent *Sent, at time.Time) {
	s := g.senders[name]
	if s == nil {
		s = g.rest
	}
	if s.minute == at.Unix()/60 {
		s.items = max(0, s.items-sent.items)
	}
	for _, fingerprint := range sent.ends {
		if p, known := s.points.get(fingerprint); known {
			s.points.set(fingerprint, point{p.series, false})
		}
	}
}

// Item judges one item that has no series: a log record or a span.
func (s *Sender) Item() Verdict {
	if s.items >= s.guard.limits.ItemsPerMinute {
		return OverRate
	}
	s.items++
	if s.sent != nil {
		s.sent.items++
	}
	return Admitted
}

// Type reports whether a metric of Prometheus, by the hash of its name, may be of a
// type: the one that it has had for the window. Two types fail at every scrape.
func (g *Guard) Type(metric, kind uint64) bool {
	had, known := g.types.peek(metric)
	return !known || had == kind
}

// Keep notes that a metric with points of this type was admitted.
func (g *Guard) Keep(metric, kind uint64) {
	if _, known := g.types.get(metric); !known {
		g.types.set(metric, kind)
	}
}

// Point judges a point: its fingerprint, of name and labels as Prometheus has them,
// stands for n series. A series that is written in another way would be a duplicate
// there, which is logged at every scrape.
func (s *Sender) Point(fingerprint, written uint64, n int) Verdict {
	if v := s.Item(); v != Admitted {
		return v
	}
	if way, known := s.guard.written.peek(fingerprint); known && way != written {
		return Ambiguous
	}
	if p, known := s.points.get(fingerprint); known {
		s.guard.written.get(fingerprint)
		if p.ended {
			s.points.set(fingerprint, point{p.series, false})
		}
		return Admitted
	}
	switch {
	case s.series+n > s.guard.limits.SeriesPerSender:
		return OverSeriesOfSender
	case s.guard.series+n > s.guard.limits.Series:
		return OverSeries
	}
	s.series += n
	s.guard.series += n
	s.points.set(fingerprint, point{int32(n), false})
	s.guard.written.set(fingerprint, written)
	return Admitted
}

// End judges the end of a series. Stores would go on with a series that has lost its end, so
// that of a known one counts for nothing, once. Every other end is a point.
func (s *Sender) End(fingerprint, written uint64, n int) Verdict {
	if way, known := s.guard.written.peek(fingerprint); known && way == written {
		if p, known := s.points.get(fingerprint); known && !p.ended {
			s.guard.written.get(fingerprint)
			s.points.set(fingerprint, point{p.series, true})
			if s.sent != nil {
				s.sent.ends = append(s.sent.ends, fingerprint)
			}
			return Admitted
		}
	}
	return s.Point(fingerprint, written, n)
}

// Series is how many series count now, and Senders how many senders are known.
func (g *Guard) Series() int  { return g.series }
func (g *Guard) Senders() int { return len(g.senders) }
