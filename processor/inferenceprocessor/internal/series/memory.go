// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package series remembers what cumulative series need from one page to the next: when
// they began, their last values, and the increments of sources that are added up.
package series // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"time"
	"unique"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// forgetAfter is how long a target without a page is remembered.
const forgetAfter = 10 * time.Minute

// Budget is how many series the memories that share it may have together. Each source of a
// series that has several counts as one more. It is safe for concurrent use.
type Budget struct {
	max  int64
	used atomic.Int64
}

// NewBudget returns a budget of so many series.
func NewBudget(series int) *Budget { return &Budget{max: int64(series)} }

// Used is how many series and sources there are.
func (b *Budget) Used() int { return int(b.used.Load()) }

func (b *Budget) take(n int) bool {
	if b.used.Add(int64(n)) > b.max {
		b.giveBack(n)
		return false
	}
	return true
}

func (b *Budget) giveBack(n int) { b.used.Add(-int64(n)) }

// Memory has the series of targets. It is not safe for concurrent use.
type Memory struct {
	budget  *Budget
	targets map[uint64]*Target
}

// NewMemory returns a memory that takes its series from a budget.
func NewMemory(budget *Budget) *Memory { return &Memory{budget: budget, targets: map[uint64]*Target{}} }

// Target has the series of one target, which is a page.
type Target struct {
	// Engines are the names of those that its last page was of.
	Engines []string

	budget *Budget
	series map[uint64]*entry
	words  map[uint64]map[string]time.Time
	page   uint32
	seen   time.Time
}

// entry is a series. Key and base are the same but for histograms, of which the key
// contains the layout.
type entry struct {
	base   uint64
	source uint64 // where it has had only one
	value  float64
	sum    float64
	start  pcommon.Timestamp
	at     pcommon.Timestamp // of the last reading
	layout uint32
	page   uint32
	fell   bool // on the last page, which was refused
	fold   *fold
	bounds Bounds
}

// Bounds are those under which a histogram is written, which its end has to name. Equal ones
// are in memory once. The zero value is not known.
type Bounds struct{ text unique.Handle[string] }

// NewBounds returns bounds.
func NewBounds(of []float64) Bounds {
	text := make([]byte, 0, 8*len(of))
	for _, b := range of {
		text = binary.LittleEndian.AppendUint64(text, math.Float64bits(b))
	}
	return Bounds{unique.Make(string(text))}
}

// List returns them in order, nil where they are not known.
func (b Bounds) List() (all []float64) {
	if b == (Bounds{}) {
		return nil
	}
	for text := []byte(b.text.Value()); len(text) > 0; text = text[8:] {
		all = append(all, math.Float64frombits(binary.LittleEndian.Uint64(text)))
	}
	return all
}

// Ended is a histogram that has ended: in a layout, with bounds where it was written.
type Ended struct {
	Layout uint32
	Bounds Bounds
}

func (e *entry) ended() Ended { return Ended{e.layout, e.bounds} }

// fold adds up what several sources have counted since they were first seen.
type fold struct {
	count, sum float64
	buckets    []uint64
	sources    map[uint64]*counted
}

// counted is what a source had counted on the last page that it was on.
type counted struct {
	count, sum float64
	buckets    []uint64
	start, at  pcommon.Timestamp // start: 0 if it is not known; at: of the last reading
	page       uint32
	fell       bool // on the last page, and was left out
}

// Target begins a page of a target.
func (m *Memory) Target(id uint64, now time.Time) *Target {
	t := m.targets[id]
	if t == nil {
		t = &Target{budget: m.budget, series: map[uint64]*entry{}}
		m.targets[id] = t
	}
	t.page++
	t.seen = now
	return t
}

// Targets is how many targets there are.
func (m *Memory) Targets() int { return len(m.targets) }

// Sweep forgets targets without a page. To be called every minute or so.
func (m *Memory) Sweep(now time.Time) {
	for id, t := range m.targets {
		switch unseen := now.Sub(t.seen); {
		case unseen < 0:
			t.seen = now // the clock was set back
		case unseen >= forgetAfter:
			for key := range t.series {
				t.End(key)
			}
			delete(m.targets, id)
		}
	}
}

// Known reports whether a value of a kind is one of the first max of its target, of
// which each is remembered for a time after it was last seen.
func (t *Target) Known(kind uint64, value string, max int, keep time.Duration, now time.Time) bool {
	words := t.words[kind]
	if at, ok := words[value]; ok {
		if now.Sub(at) >= time.Minute { // more often is not needed
			words[value] = now
		}
		return true
	}
	if len(words) >= max {
		for w, at := range words {
			if now.Sub(at) >= keep {
				delete(words, w)
			}
		}
		if len(words) >= max {
			return false
		}
	}
	if words == nil {
		if t.words == nil {
			t.words = map[uint64]map[string]time.Time{}
		}
		words = map[string]time.Time{}
		t.words[kind] = words
	}
	words[value] = now
	return true
}

// Seen reports whether a value of a kind is remembered.
func (t *Target) Seen(kind uint64, value string) bool {
	_, ok := t.words[kind][value]
	return ok
}

// entry finds a series, or makes it; nil if there is no room for it.
func (t *Target) entry(key, base uint64) (e *entry, fresh bool) {
	if e := t.series[key]; e != nil {
		e.page = t.page
		return e, false
	}
	if !t.budget.take(1) {
		return nil, false
	}
	e = &entry{base: base, page: t.page}
	t.series[key] = e
	return e, true
}

// End forgets a series, and reports whether there was one.
func (t *Target) End(key uint64) bool {
	e := t.series[key]
	if e == nil {
		return false
	}
	delete(t.series, key)
	t.budget.giveBack(1 + e.fold.size())
	return true
}

// keepPages is for how many pages a series is remembered that no page has had, and of
// which no page reported the end; and a source of several, so that one that is missing on
// a page goes on.
const keepPages = 40

// Stale calls ended for each series of a histogram that the page has in another layout
// only, and forgets it. It is called at the end of a page.
func (t *Target) Stale(on func(base uint64) bool, ended func(base uint64, e Ended)) {
	for key, e := range t.series {
		switch {
		case e.page == t.page:
		case e.base != key && on(e.base):
			ended(e.base, e.ended())
			t.End(key)
		case t.page-e.page > keepPages:
			t.End(key)
		}
	}
}

// EndAll forgets the series of a histogram in all layouts, and returns them.
func (t *Target) EndAll(base uint64) (all []Ended) {
	for key, e := range t.series {
		if e.base == base {
			all = append(all, e.ended())
			t.End(key)
		}
	}
	return all
}

// SetBounds notes the bounds of a series that is known.
func (t *Target) SetBounds(key uint64, bounds Bounds) { t.series[key].bounds = bounds }

// Folded reports whether a series is one of several sources.
func (t *Target) Folded(key uint64) bool {
	e := t.series[key]
	return e != nil && e.fold != nil
}
