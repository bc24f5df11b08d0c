// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/pages"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// Kind is a kind of fault of an engine.
type Kind string

// The kinds of faults.
const (
	Restart   Kind = "engine_restart" // the engine is gone, and comes back with counters at 0
	ModelSwap Kind = "model_swap"     // the same process serves Model from then on
	Upgrade   Kind = "engine_upgrade" // a restart after which the page is that of Engine
	PageRace  Kind = "page_race"      // a bucket of the page falls: it was read while it was written
	Sleep     Kind = "sleep"          // the engine is put to sleep, and wakes up at the end
	SlowPage  Kind = "slow_page"      // the page takes its time
	PageFails Kind = "page_fails"     // the page is an error 500
)

// Kinds are all of them.
var Kinds = []Kind{Restart, ModelSwap, Upgrade, PageRace, Sleep, SlowPage, PageFails}

// Fault is one of an engine, from a time since the start of the fleet. Until is
// negative while it has no end.
type Fault struct {
	ID          string // of those of one engine, none has another's
	Kind        Kind
	From, Until time.Duration
	Engine      string // Upgrade
	Model       string // ModelSwap
}

// Holds reports whether the fault is there at a time.
func (f *Fault) Holds(at time.Duration) bool { return at >= f.From && (f.Until < 0 || at < f.Until) }

// turn is something that happens to an engine at a time: a fault begins or ends.
type turn struct {
	at  time.Duration
	do  func()
	key turnKey
}

type turnKey struct {
	fault string
	ends  bool
}

// Advance brings the engine to a time, with what its faults do on the way. Faults are
// all that it ever had: what each of them did is not done again.
func (e *Engine) Advance(to time.Duration, faults []Fault) {
	var turns []turn
	add := func(at time.Duration, do func(), key turnKey) {
		if at >= e.begin && at <= to && !e.done[key] {
			turns = append(turns, turn{at, do, key})
		}
	}
	for i := range faults {
		f := &faults[i]
		begin, end := e.turns(f)
		add(f.From, begin, turnKey{f.ID, false})
		if f.Until >= 0 {
			add(f.Until, end, turnKey{f.ID, true})
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	for _, t := range turns {
		e.advance(t.at)
		t.do()
		e.done[t.key] = true
	}
	e.advance(to)
}

func (e *Engine) advance(to time.Duration) {
	if to < e.now {
		return
	}
	e.now = to
	for _, p := range e.processes {
		p.Advance(to)
	}
}

// turns are what a fault does when it begins and when it ends.
func (e *Engine) turns(f *Fault) (begin, end func()) {
	nothing := func() {}
	switch f.Kind {
	case Restart:
		return e.stop, e.start
	case Upgrade:
		return func() {
			e.stop()
			if page, err := pages.Find(f.Engine); err == nil { // checked when the fault was made
				e.page = page
			}
		}, e.start
	case ModelSwap:
		return func() {
			for _, p := range e.processes {
				p.Swap(f.Model)
			}
		}, nothing
	case Sleep:
		return func() { e.sleep(true) }, func() { e.sleep(false) }
	default:
		return nothing, nothing
	}
}

func (e *Engine) stop() {
	e.stopped = true
	for _, p := range e.processes {
		p.Stop()
	}
}

// start begins to count from zero. A gateway remembers what the engines had counted.
func (e *Engine) start() {
	e.stopped, e.up = false, e.now
	for _, p := range e.processes {
		p.Start()
	}
	e.before = nil
	for _, s := range e.seen() {
		if e.before == nil {
			e.before = map[key]requests.State{}
		}
		e.before[key{s.Name, s.Model}] = s
	}
}

func (e *Engine) sleep(asleep bool) {
	for _, p := range e.processes {
		p.Sleep(asleep)
	}
}
