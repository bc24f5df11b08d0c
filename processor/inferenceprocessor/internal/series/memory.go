// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package series remembers what cumulative series need from one page to the next: when
// they began, their last values, and the increments of sources that are added up.
package series // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// forgetAfter is how long a target without a page is remembered.
const forgetAfter = 10 * time.Minute

// Memory has the series of all targets, of which there are at most a number. It is
// not safe for concurrent use.
type Memory struct {
	max, series int
	targets     map[uint64]*Target
	swept       time.Time
}

// NewMemory returns a memory for at most max series.
func NewMemory(max int) *Memory { return &Memory{max: max, targets: map[uint64]*Target{}} }

// Target has the series of one target, which is a page.
type Target struct {
	// Engines are the names of those that its last page was of.
	Engines []string

	memory *Memory
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
}

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
	m.sweep(now)
	t := m.targets[id]
	if t == nil {
		t = &Target{memory: m, series: map[uint64]*entry{}}
		m.targets[id] = t
	}
	t.page++
	t.seen = now
	return t
}

// Targets is how many targets there are.
func (m *Memory) Targets() int { return len(m.targets) }

// Len is how many series there are.
func (m *Memory) Len() int { return m.series }

// sweep forgets targets without a page, once a minute.
func (m *Memory) sweep(now time.Time) {
	if now.Sub(m.swept) < time.Minute {
		return
	}
	m.swept = now
	for id, t := range m.targets {
		if now.Sub(t.seen) >= forgetAfter {
			m.series -= len(t.series)
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
	if t.memory.series >= t.memory.max {
		return nil, false
	}
	e = &entry{base: base, page: t.page}
	t.series[key] = e
	t.memory.series++
	return e, true
}

// End forgets a series, and reports whether there was one.
func (t *Target) End(key uint64) bool {
	if _, ok := t.series[key]; !ok {
		return false
	}
	delete(t.series, key)
	t.memory.series--
	return true
}

// keepPages is for how many pages a series is remembered that no page has had, and of
// which no page reported the end; and a source of several, so that one that is missing on
// a page goes on.
const keepPages = 40

// Stale calls ended for each series of a histogram that the page has in another layout
// only, and forgets it. It is called at the end of a page.
func (t *Target) Stale(on func(base uint64) bool, ended func(base uint64, layout uint32)) {
	for key, e := range t.series {
		switch {
		case e.page == t.page:
		case e.base != key && on(e.base):
			ended(e.base, e.layout)
			t.End(key)
		case t.page-e.page > keepPages:
			t.End(key)
		}
	}
}

// EndAll forgets the series of a histogram in all layouts, and returns these.
func (t *Target) EndAll(base uint64) (layouts []uint32) {
	for key, e := range t.series {
		if e.base == base {
			layouts = append(layouts, e.layout)
			t.End(key)
		}
	}
	return layouts
}

// Folded reports whether a series is one of several sources.
func (t *Target) Folded(key uint64) bool {
	e := t.series[key]
	return e != nil && e.fold != nil
}
