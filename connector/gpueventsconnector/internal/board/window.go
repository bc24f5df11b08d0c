// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"math"
	"math/bits"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	minutes = 10  // of a window
	minute  = 240 // quarters of a second
)

// Memory is what is kept of one reason between two pages.
type Memory struct {
	minute int64  // of Window, since 1970
	window uint16 // a bit for each of the last minutes in which the cause was seen, the newest is bit 0
	seen   uint16 // likewise, for minutes with a page
	// share are quarters of a second for which the cause held, of the same minutes.
	share [minutes]uint8

	count float64           // that was read last
	other float64           // likewise, of a second count
	sum   float64           // that was added in the current minute
	since pcommon.Timestamp // of what Judge defines
	at    pcommon.Timestamp // of the last page; 0: none
	times [3]pcommon.Timestamp
	known bool
}

// move moves the window on to the minute of a time.
func (m *Memory) move(at pcommon.Timestamp) {
	now := int64(at) / int64(time.Minute)
	by := now - m.minute
	if by < 0 || by >= minutes || m.at == 0 {
		m.window, m.seen, m.share, m.sum = 0, 0, [minutes]uint8{}, 0
	} else if by > 0 {
		m.window, m.seen, m.sum = m.window<<by, m.seen<<by, 0
		m.window &= 1<<minutes - 1
		m.seen &= 1<<minutes - 1
		copy(m.share[by:], m.share[:minutes-by])
		clear(m.share[:by])
	}
	m.minute = now
	m.seen |= 1
}

// rose returns by how much a count rose since the page before. Neither the first value
// nor a smaller one is a rise; added is what deltas have.
func (m *Memory) rose(count, added float64) (by float64) {
	if added > 0 {
		by = added
	}
	if math.IsNaN(count) {
		return by
	}
	if m.known && count > m.count {
		by += count - m.count
	}
	m.count, m.known = count, true
	return by
}

// over is in how many of the last minutes the cause was seen.
func (m *Memory) over() int { return bits.OnesCount16(m.window) }

// whole reports whether there was a page in every minute of the window.
func (m *Memory) whole() bool { return m.seen == 1<<minutes-1 }

// held adds a time for which the cause held to the current minute.
func (m *Memory) held(d time.Duration) {
	m.share[0] = uint8(min(minute, float64(m.share[0])+math.Round(4*d.Seconds())))
}

// ratio is for which share of the window the cause held.
func (m *Memory) ratio() float64 {
	quarters := 0
	for _, n := range m.share {
		quarters += int(n)
	}
	return float64(quarters) / (minute * minutes)
}
