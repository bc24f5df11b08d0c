// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package series // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"

import (
	"slices"

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
// their increments, each with its own resets, so that the total never falls.
func (t *Target) Count(key, base uint64, layout uint32, readings []Reading) (Total, Result) {
	e, fresh := t.entry(key, base)
	if e == nil {
		return Total{}, Full
	}
	e.layout = layout
	if e.fold == nil && len(readings) == 1 {
		return e.one(&readings[0], fresh)
	}
	if e.fold == nil {
		e.begin(readings, fresh)
	}
	for i := range readings {
		e.fold.add(&readings[i], t.page)
	}
	for id, s := range e.fold.sources {
		if s.page != t.page {
			delete(e.fold.sources, id)
		}
	}
	return Total{e.fold.count, e.fold.sum, e.fold.buckets, e.start}, OK
}

// begun is when a source began: at the first reading, if nothing else is known.
func begun(r *Reading) pcommon.Timestamp {
	if r.Start != 0 {
		return r.Start
	}
	return r.Time
}

// one is a series with a single source.
func (e *entry) one(r *Reading, fresh bool) (Total, Result) {
	switch fell := r.Count < e.value || r.Sum < e.sum; {
	case fresh || r.Source != e.source:
		e.start = begun(r)
	case fell && r.Histogram && r.Start != 0 && r.Start == e.start:
		return Total{}, Fell
	case r.Start > e.start:
		e.start = r.Start // it began again, and may have counted more since
	case fell:
		e.start = r.Time
	}
	e.source, e.value, e.sum = r.Source, r.Count, r.Sum
	return Total{r.Count, r.Sum, nil, e.start}, OK
}

// begin makes a series one of several sources. It goes on from the one that it had, if
// that is still there.
func (e *entry) begin(readings []Reading, fresh bool) {
	e.fold = &fold{sources: map[uint64]*counted{}}
	goesOn := !fresh && slices.ContainsFunc(readings, func(r Reading) bool {
		return r.Source == e.source && r.Count >= e.value && r.Sum >= e.sum
	})
	if goesOn {
		return
	}
	e.start = begun(&readings[0])
	for i := range readings {
		e.start = min(e.start, begun(&readings[i]))
	}
}

// add adds what a source has counted since the last page: everything, if it is new or
// began again.
func (f *fold) add(r *Reading, page uint32) {
	s := f.sources[r.Source]
	if s == nil {
		s = &counted{}
		f.sources[r.Source] = s
	}
	if s.fell(r) {
		s.count, s.sum = 0, 0
		s.buckets = append(s.buckets[:0], make([]uint64, len(r.Buckets))...)
	}
	f.count += r.Count - s.count
	f.sum += r.Sum - s.sum
	if len(f.buckets) != len(r.Buckets) {
		f.buckets = make([]uint64, len(r.Buckets))
	}
	for i, n := range r.Buckets {
		f.buckets[i] += n - s.buckets[i]
	}
	s.count, s.sum, s.page = r.Count, r.Sum, page
	copy(s.buckets, r.Buckets)
}

// fell reports whether a source began again: something that it counts became less.
func (c *counted) fell(r *Reading) bool {
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
