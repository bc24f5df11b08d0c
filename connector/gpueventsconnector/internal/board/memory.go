// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"math"
	"math/bits"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
)

// Memory is what the reasons keep between two pages of one board.
type Memory struct {
	known    known
	watch    watches
	peers    uint16  // the most other GPUs that were reached over NVLink
	ecc      float64 // the last count
	pages    float64 // likewise
	nvlink   nvlink
	replays  replays
	width    width
	throttle share
	seldom   *seldom // of most boards nothing
}

// seldom is what happens to few boards.
type seldom struct {
	incident incident
	faults   faults
	episodes times             // ends of failed episodes by a reset or a boot
	retired  times             // when pages were retired, each one once
	links    times             // when NVLink errors began
	lostAt   pcommon.Timestamp // when the board was lost last; 0: never
	booted   bool              // its node was, after the board was lost
}

// rarely returns seldom for a change.
func (m *Memory) rarely() *seldom {
	if m.seldom == nil {
		m.seldom = &seldom{}
	}
	return m.seldom
}

// times are the newest three, the newest first; 0: there were fewer.
type times [3]pcommon.Timestamp

func (t *times) add(at pcommon.Timestamp) { *t = times{at, t[0], t[1]} }

// within is how many of them are less than d before a time.
func (t *times) within(at pcommon.Timestamp, d time.Duration) (n int) {
	for _, of := range t {
		if of != 0 && !later(at, of, d) {
			n++
		}
	}
	return n
}

// known has a bit for each count that was read before.
type known uint8

const (
	knownECC known = 1 << iota
	knownPages
	knownReplays
	knownLinks // and the three above, one for each count
)

// rose returns by how much a count rose since the page before. Neither the first value
// nor a smaller one is a rise; added is what deltas have.
func (m *Memory) rose(last *float64, is known, count, added float64) (by float64) {
	if added > 0 {
		by = added
	}
	if math.IsNaN(count) {
		return by
	}
	if m.known&is != 0 && count > *last {
		by += count - *last
	}
	*last = count
	m.known |= is
	return by
}

// maxGap is the longest time between two pages of one course of events: what happened
// in a longer gap is unknown.
const maxGap = condition.MaxGap

// minutes of a window.
const minutes = 10

// window is what was seen in each of the last minutes.
type window struct {
	at   pcommon.Timestamp // of the last page; 0: none
	from uint32            // since when no gap was too long, in seconds since 1970
	// bad has a bit for each minute in which the cause was seen: bit 0 is the current one,
	// and those of the window are followed by one more, of which a part belongs to it.
	bad uint16
}

// move moves the window to a page. since is the time since the page before, 0 where
// that is unknown, and by for how many minutes the window moved, at most its length.
func (w *window) move(at pcommon.Timestamp) (since time.Duration, by int) {
	before := w.at
	w.at = at
	if before == 0 || at < before || time.Duration(at-before) > maxGap {
		w.from, w.bad = uint32(int64(at)/int64(time.Second)), 0
		return 0, minutes
	}
	moved := int(minuteOf(at) - minuteOf(before)) // few: there is no long gap
	w.bad = w.bad << moved & (1<<(minutes+1) - 1)
	by = min(moved, minutes)
	return time.Duration(at - before), by
}

func minuteOf(at pcommon.Timestamp) int64 { return int64(at) / int64(time.Minute) }

// over is in how many of the last minutes the cause was seen.
func (w *window) over() int { return bits.OnesCount16(w.bad & (1<<minutes - 1)) }

// whole reports whether the window is as old as it is long.
func (w *window) whole() bool {
	return int64(w.at)/int64(time.Second)-int64(w.from) >= minutes*60
}

// share is for which part of each of the last minutes a cause held.
type share struct {
	window
	held [minutes]uint8 // quarters of a second
}

const minuteQuarters = 240

// move is that of window.
func (s *share) move(at pcommon.Timestamp) (since time.Duration) {
	since, by := s.window.move(at)
	if by > 0 {
		copy(s.held[by:], s.held[:minutes-by])
		clear(s.held[:by])
	}
	return since
}

// add adds a time for which the cause held to the current minute.
func (s *share) add(d time.Duration) {
	s.held[0] = uint8(min(minuteQuarters, float64(s.held[0])+math.Round(4*d.Seconds())))
}

// ratio is for which part of the window the cause held.
func (s *share) ratio() float64 {
	quarters := 0
	for _, n := range s.held {
		quarters += int(n)
	}
	return float64(quarters) / (minuteQuarters * minutes)
}
