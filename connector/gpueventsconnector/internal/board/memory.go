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

// Memory is what the reasons keep between two pages of one board. It is small: every
// board has one.
type Memory struct {
	seldom *seldom // of most boards nothing
	// Counts that were read last.
	ecc, pages, replays float64
	links               [linkCounts]float64
	crcAt               clock // when the CRC errors rose last

	loaded                 time.Duration // for which the PCIe link was narrow, or not, under load
	loadAt                 clock
	replaySum, replayLimit float32 // of the current minute; the limit of the fastest link in it
	nvlink                 window
	replayed               window
	throttled              window
	held                   share  // of throttling
	peers                  uint16 // the most other GPUs that were reached over NVLink
	known                  known
	watch                  watches
	narrow                 bool
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

// setBack keeps times from being in the future of a clock that was set back.
func (s *seldom) setBack(at pcommon.Timestamp) {
	for _, of := range [...]*times{&s.episodes, &s.retired, &s.links} {
		for i := range of {
			of[i] = min(of[i], at)
		}
	}
	for i := range s.faults {
		f := &s.faults[i]
		f.since, f.last = min(f.since, at), min(f.last, at)
	}
	s.lostAt = min(s.lostAt, at)
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

// clock is when there was a page last, in tenths of a second that wrap around after 13
// years; 0: never.
type clock uint32

const tick = 100 * time.Millisecond

func clockOf(at pcommon.Timestamp) clock { return max(1, clock(int64(at)/int64(tick))) }

// move moves the clock to a page. since is the time since the page before; with a gap,
// which is longer than the longest, or before that page, it is 0.
func (c *clock) move(at pcommon.Timestamp) (since time.Duration, gap bool) {
	before := *c
	*c = clockOf(at)
	since = time.Duration(*c-before) * tick
	if before == 0 || since > maxGap {
		return 0, true
	}
	return since, false
}

// minutes of a window.
const minutes = 10

// window is what was seen in each of the last minutes.
type window struct {
	at   clock
	from clock // since when there was no gap
	// bad has a bit for each minute in which the cause was seen: bit 0 is the current one,
	// and those of the window are followed by one more, of which a part belongs to it.
	bad  uint16
	last uint8 // the minute of the last page, modulo 256
}

// move moves the window to a page. since is the time since the page before, 0 where
// that is unknown, and by for how many minutes the window moved, at most its length.
func (w *window) move(at pcommon.Timestamp) (since time.Duration, by int) {
	since, gap := w.at.move(at)
	before := w.last
	w.last = uint8(int64(at) / int64(time.Minute))
	if gap {
		w.from, w.bad = w.at, 0
		return 0, minutes
	}
	by = int(w.last - before) // few: there is no long gap
	w.bad = w.bad << by & (1<<(minutes+1) - 1)
	return since, by
}

// over is in how many of the last minutes the cause was seen.
func (w *window) over() int { return bits.OnesCount16(w.bad & (1<<minutes - 1)) }

// whole reports whether the window is as old as it is long.
func (w *window) whole(at pcommon.Timestamp) bool {
	return time.Duration(clockOf(at)-w.from)*tick >= minutes*time.Minute
}

// share is for how many quarters of a second a cause held in each of the last minutes.
type share [minutes]uint8

const minuteQuarters = 240

// move moves by so many minutes, at most all.
func (s *share) move(by int) {
	if by > 0 {
		copy(s[by:], s[:minutes-by])
		clear(s[:by])
	}
}

// add adds a time for which the cause held to the current minute.
func (s *share) add(d time.Duration) {
	s[0] = uint8(min(minuteQuarters, float64(s[0])+math.Round(4*d.Seconds())))
}

// ratio is for which part of all minutes the cause held.
func (s *share) ratio() float64 {
	quarters := 0
	for _, n := range s {
		quarters += int(n)
	}
	return float64(quarters) / (minuteQuarters * minutes)
}
