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
	Ambiguous          Verdict = "ambiguous"             // Prometheus' name and labels are those of a series that was written otherwise
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
}

// New returns a guard that has seen nothing.
func New(limits Limits) *Guard {
	return &Guard{limits: limits, senders: map[string]*Sender{}, rest: &Sender{}}
}

// Sender is what is known of one sender. It is good until the next call of
// Guard.Sender.
type Sender struct {
	guard *Guard
	// recent has the series of the running half of the window and older those of the
	// half before it that came not again since, by fingerprint.
	recent, older map[uint64]kept
	series        int
	minute        int64
	items         int
}

// kept is what is known of a point's series.
type kept struct {
	written uint64 // how name and labels were written
	series  int
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
}

func (g *Guard) age(s *Sender, both bool) {
	drop := func(gone map[uint64]kept) {
		for _, k := range gone {
			s.series -= k.series
			g.series -= k.series
		}
	}
	drop(s.older)
	s.older, s.recent = s.recent, nil
	if both {
		drop(s.older)
		s.older = nil
	}
}

// Item judges one item that has no series: a log record or a span.
func (s *Sender) Item() Verdict {
	if s.items >= s.guard.limits.ItemsPerMinute {
		return OverRate
	}
	s.items++
	return Admitted
}

// Point judges a point: its fingerprint, of name and labels as Prometheus has them,
// stands for n series. A series of this sender that was written in another way
// would be a duplicate there, which fails a scrape or fills the log.
func (s *Sender) Point(fingerprint, written uint64, n int) Verdict {
	if v := s.Item(); v != Admitted {
		return v
	}
	had, known := s.recent[fingerprint]
	if !known {
		if had, known = s.older[fingerprint]; known && had.written == written {
			delete(s.older, fingerprint)
			s.keep(fingerprint, had)
		}
	}
	switch {
	case known && had.written == written:
		return Admitted
	case known:
		return Ambiguous
	case s.series+n > s.guard.limits.SeriesPerSender:
		return OverSeriesOfSender
	case s.guard.series+n > s.guard.limits.Series:
		return OverSeries
	}
	s.series += n
	s.guard.series += n
	s.keep(fingerprint, kept{written, n})
	return Admitted
}

func (s *Sender) keep(fingerprint uint64, k kept) {
	if s.recent == nil {
		s.recent = map[uint64]kept{}
	}
	s.recent[fingerprint] = k
}

// Series is how many series count now, and Senders how many senders are known.
func (g *Guard) Series() int  { return g.series }
func (g *Guard) Senders() int { return len(g.senders) }
