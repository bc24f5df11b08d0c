// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package counting finds out how often something happened from a count that is read
// again and again: across resets of the count, restarts of its reader, and where
// two exporters count the same.
package counting

import "go.opentelemetry.io/collector/pdata/pcommon"

// Reading is one point of a count.
type Reading struct {
	Value float64
	Start pcommon.Timestamp // since when is counted, as far as is known; 0: it is not
	At    pcommon.Timestamp // the time of the page
	// Derived is whether the reader of the pages counts, from 0 at each of its starts.
	Derived bool
}

// Series follows one count. The zero value knows nothing.
type Series struct {
	known   bool
	derived bool
	deltas  bool   // there were some: nothing is known of a count
	absent  bool   // the newest page was without it
	main    stream // that is counted
	other   stream // of another exporter, or what main becomes
}

// stream is the readings with one start.
type stream struct {
	start pcommon.Timestamp
	value float64
	base  float64 // of other: how far main has counted it too
	pages int     // of other: since the last reading of main
}

// confirmed is on how many pages in a row a count with another start has to be until it
// replaces the one that was followed. Two exporters take turns.
const confirmed = 2

// Restored is the Series of which that was known before a restart.
func Restored(value float64, start pcommon.Timestamp, derived bool) Series {
	return Series{known: true, derived: derived, main: stream{start: start, value: value}}
}

// Known is what Restored takes; ok is false where nothing is known.
func (s *Series) Known() (value float64, start pcommon.Timestamp, derived, ok bool) {
	return s.main.value, s.main.start, s.derived, s.known
}

// Restarted notes that what is counted began again from 0. A reader that counts is no part
// of it.
func (s *Series) Restarted() {
	if s.known && !s.derived {
		s.main.value, s.other = 0, stream{}
	}
}

// Counted is the count of the newest page; 0 where it had none, or its reader counts.
func (s *Series) Counted() float64 {
	if !s.known || s.derived || s.absent {
		return 0
	}
	return s.main.value
}

// Missing notes a page without the count.
func (s *Series) Missing() { s.absent = true }

// Add notes what a delta adds, and returns it. There is no count to follow.
func (s *Series) Add(by float64) float64 {
	*s = Series{deltas: true}
	return by
}

// Take notes a reading, and returns by how much the count rose since the one before. fresh
// is whether it was 0 until now, where nothing is known of it. twice reports that two
// counts take turns: of two exporters.
//
// A start that is later than the known one is a restart of the exporter or only of who
// reads it, which saw nothing of what is counted before. So the count has risen from 0
// only where it is smaller than it was, or was absent in between.
func (s *Series) Take(r Reading, fresh bool) (by float64, twice bool) {
	absent := s.absent
	s.absent = false
	if s.known && s.derived != r.Derived {
		s.known, fresh = false, false // another count
	}
	fresh = fresh && !s.deltas
	if !s.known {
		*s = Restored(r.Value, r.Start, r.Derived)
		if fresh {
			by = r.Value
		}
		return by, false
	}
	if r.Start == s.main.start {
		twice = s.other.pages > 0
		by = max(0, r.Value-s.main.value)
		s.main.value = r.Value
		s.other.base, s.other.pages = s.other.value, 0
		return by, twice
	}
	if later := r.Start > s.main.start; later && r.Start != s.other.start {
		switch {
		case absent && (r.Derived || r.Start < r.At):
			// One that began with this very page may be an old one.
			s.main, s.other = stream{start: r.Start, value: r.Value}, stream{}
			return r.Value, false
		case !r.Derived && r.Value >= s.main.value:
			s.other = s.main
			s.other.base = s.main.value
			s.main = stream{start: r.Start, value: r.Value}
			return r.Value - s.other.value, false
		}
		s.other = stream{start: r.Start}
	} else if r.Start != s.other.start {
		s.other = stream{start: r.Start, base: r.Value}
	}
	o := &s.other
	o.value, o.base, o.pages = r.Value, min(o.base, r.Value), o.pages+1
	if o.pages < confirmed {
		return 0, false
	}
	by = o.value - o.base
	s.main, s.other = *o, s.main
	s.other.base, s.other.pages = s.other.value, 0
	return by, false
}
