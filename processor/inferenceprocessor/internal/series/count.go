// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package series // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Reading is what one source on a page has counted. A counter has only Count.
type Reading struct {
	// Source identifies the source within the page.
	Source uint64
	Count  float64
	Sum    float64
	// Histogram marks one that has more than Count. Buckets are read where the series
	// has several sources, and not otherwise.
	Histogram bool
	Buckets   []uint64
	// Start is when the source began, 0 if that is not known; Time is that of the page.
	Start, Time pcommon.Timestamp
}

// Total is what a series has counted since Start.
type Total struct {
	Count, Sum float64
	// Buckets are those of the memory, which must not be changed; nil where the only
	// reading's count.
	Buckets []uint64
	Start   pcommon.Timestamp
	// Bounded is that the bounds of the series are known.
	Bounded bool
}

// Result is what became of a page's readings of a series.
type Result uint8

const (
	// OK readings have a total.
	OK Result = iota
	// Full: there is no room for another series.
	Full
	// Fell: the count fell, and the source did not begin again.
	Fell
)

// Count adds the readings of a series, of which base and layout are those of a
// histogram. One source passes as it is; where it falls, or another takes its place,
// the series begins again. As soon as there are several they are added, from then on by
// their increments, each with its own resets, so that the total never falls; it begins
// again where all of them did. A start is never later than the reading.
func (t *Target) Count(key, base uint64, layout uint32, readings []Reading) (Total, Result) {
	e, fresh := t.entry(key, base)
	if e == nil {
		return Total{}, Full
	}
	e.layout = layout
	if e.fold == nil && len(readings) == 1 {
		return e.one(&readings[0], fresh)
	}
	if !t.budget.take(e.fold.unknown(readings)) {
		if fresh {
			t.End(key)
		}
		return Total{}, Full
	}
	if e.fold == nil {
		e.begin(readings, fresh)
	} else if e.allAgain(readings) {
		t.budget.giveBack(e.fold.size() - e.fold.known(readings))
		e.fold = &fold{sources: map[uint64]*counted{}}
		e.restart(readings)
	}
	at := readings[0].Time
	for i := range readings {
		e.fold.add(&readings[i], t.page)
		at = max(at, readings[i].Time)
	}
	t.budget.giveBack(e.fold.forget(t.page, len(readings)))
	if e.start > at { // the clock was set back
		e.start = earliest(readings)
	}
	e.at = at
	return Total{e.fold.count, e.fold.sum, e.fold.buckets, e.start, e.bounds != (Bounds{})}, OK
}

// size is how many sources there are; 0 where there is no fold.
func (f *fold) size() int {
	if f == nil {
		return 0
	}
	return len(f.sources)
}

// known is how many of these readings are of its sources, unknown how many are not.
func (f *fold) known(readings []Reading) (n int) {
	if f == nil {
		return 0
	}
	for i := range readings {
		if f.sources[readings[i].Source] != nil {
			n++
		}
	}
	return n
}

func (f *fold) unknown(readings []Reading) int { return len(readings) - f.known(readings) }

// mostAbsent sources are remembered beside those on the page, and as many again as these.
const mostAbsent = 64

// forget drops sources that were on none of the last pages, and where too many are absent
// those that are longest. It returns how many it dropped.
func (f *fold) forget(page uint32, present int) int {
	before := len(f.sources)
	drop := func(pages uint32) {
		for id, s := range f.sources {
			if page-s.page > pages {
				delete(f.sources, id)
			}
		}
	}
	for pages := uint32(keepPages); ; pages-- {
		drop(pages)
		if pages == 0 || len(f.sources) <= 2*present+mostAbsent {
			return before - len(f.sources)
		}
	}
}

// begun is when a source began: at the first reading, if nothing else is known.
func begun(r *Reading) pcommon.Timestamp {
	if r.Start != 0 {
		return r.Start
	}
	return r.Time
}

func earliest(readings []Reading) pcommon.Timestamp {
	start := begun(&readings[0])
	for i := range readings {
		start = min(start, begun(&readings[i]))
	}
	return start
}

// jitter is by how much the start of a process may move without a restart: some compute
// it from its age.
const jitter = pcommon.Timestamp(time.Second)

// again reports whether a source with a last reading at a time, and with a start,
// began again since then.
func (r *Reading) again(start, at pcommon.Timestamp) bool {
	return r.Start > at && r.Start > start+jitter
}

// torn reports whether a source that fell may have been read while it was written: it is
// a histogram, which has parts, its start has not moved, and it is the first time.
func (r *Reading) torn(start pcommon.Timestamp, before bool) bool {
	return r.Histogram && !before && r.Start != 0 && r.Start <= start+jitter
}

// one is a series with a single source.
func (e *entry) one(r *Reading, fresh bool) (Total, Result) {
	switch fell := r.Count < e.value || r.Sum < e.sum; {
	case fresh:
		e.start = begun(r)
	case r.again(e.start, e.at):
		e.start = r.Start // it may have counted more since
	case r.Source != e.source:
		e.start = r.Time
	case fell && r.torn(e.start, e.fell):
		e.fell = true
		return Total{}, Fell
	case fell && r.Start > e.start+jitter:
		e.start = r.Start
	case fell:
		e.start = r.Time
	}
	if e.start > r.Time { // the clock was set back
		e.start = begun(r)
	}
	e.source, e.value, e.sum, e.at, e.fell = r.Source, r.Count, r.Sum, r.Time, false
	return Total{r.Count, r.Sum, nil, e.start, e.bounds != (Bounds{})}, OK
}

// begin makes a series one of several sources. It goes on from the one that it had, if
// that is still there.
func (e *entry) begin(readings []Reading, fresh bool) {
	e.fold = &fold{sources: map[uint64]*counted{}}
	goesOn := slices.ContainsFunc(readings, func(r Reading) bool {
		return r.Source == e.source && r.Count >= e.value && r.Sum >= e.sum && !r.again(e.start, e.at)
	})
	switch {
	case fresh:
		e.start = earliest(readings)
	case !goesOn:
		e.restart(readings)
	}
}

// restart sets the start of a series of which no source goes on.
func (e *entry) restart(readings []Reading) {
	e.start = readings[0].Time
	for i := range readings {
		e.start = max(e.start, readings[i].Time)
	}
	if start := earliest(readings); start > e.at {
		e.start = start
	}
}

// allAgain reports whether all sources of a series began again: those on the page did, or are
// new and began since the last page. New ones of which that is not known may be beside
// others that are missing on this page.
func (e *entry) allAgain(readings []Reading) bool {
	if slices.ContainsFunc(readings, e.fold.goesOn) {
		return false
	}
	older := func(r Reading) bool { return r.Start <= e.at } // or not known
	return e.fold.known(readings) > 0 || !slices.ContainsFunc(readings, older)
}

// goesOn reports whether a source counts on from where it was on an earlier page.
func (f *fold) goesOn(r Reading) bool {
	s := f.sources[r.Source]
	return s != nil && !r.again(s.start, s.at) && (!s.less(&r) || r.torn(s.start, s.fell))
}

// add adds what a source has counted since the last page that it was on: everything, if
// it is new or began again.
func (f *fold) add(r *Reading, page uint32) {
	s := f.sources[r.Source]
	known := s != nil
	if !known {
		s = &counted{}
		f.sources[r.Source] = s
	}
	s.page = page
	again, fell := !known || r.again(s.start, s.at), s.less(r)
	if fell && !again && r.torn(s.start, s.fell) {
		s.fell = true
		return
	}
	if again || fell {
		*s = counted{page: page, start: r.Start, buckets: append(s.buckets[:0], make([]uint64, len(r.Buckets))...)}
	}
	f.count += r.Count - s.count
	f.sum += r.Sum - s.sum
	if len(f.buckets) != len(r.Buckets) {
		f.buckets = make([]uint64, len(r.Buckets))
	}
	for i, n := range r.Buckets {
		f.buckets[i] += n - s.buckets[i]
	}
	s.count, s.sum, s.at, s.fell = r.Count, r.Sum, r.Time, false
	copy(s.buckets, r.Buckets)
}

// less reports whether something that a source counts became less.
func (c *counted) less(r *Reading) bool {
	if r.Count < c.count || r.Sum < c.sum || len(r.Buckets) != len(c.buckets) {
		return true
	}
	for i, n := range r.Buckets {
		if n < c.buckets[i] {
			return true
		}
	}
	return false
}
