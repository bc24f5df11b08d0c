// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package straggler finds boards with a clock that is low among those of their peers: the
// boards of the same service, model and power limit. The time is passed in.
package straggler

import (
	"math"
	"math/bits"
	"slices"
)

// LowClock is the fraction of the peers' median at which a clock is low.
const LowClock = 0.90

// The rule, in minutes and as fractions of the median of the peers' clocks.
const (
	leastPeers = 5    // of a board, with data
	lowScore   = -3.5 // Iglewicz and Hoaglin's limit of the modified z-score
	fineClock  = 0.95
	severalOf  = 0.25 // of the boards: where more are low, or high, they are of two kinds, or in a phase

	course    = 15 // minutes that decide
	raisedBy  = 10 // low minutes of these
	clearedBy = course
)

// Member is a board among its peers.
type Member struct {
	// Clock is the mean of the board's clock, in Hz.
	Clock float64
	// Fresh is whether the board's pod has just started: what it does then counts for
	// nothing.
	Fresh bool

	// Slow is whether the board is a straggler.
	Slow bool
	// Median is the peers' at the last comparison, and Peers is how many there were,
	// without the board itself.
	Median float64
	Peers  int

	low    uint16 // a bit for each of the last minutes in which it was low
	fine   int8   // minutes in a row in which it was not
	absent int8   // minutes in a row without a comparison
}

// Ratio is the board's clock as a fraction of the peers' median, at the last comparison.
func (m *Member) Ratio() float64 { return m.Clock / m.Median }

// Compared reports whether the board was compared in the last minute.
func (m *Member) Compared() bool { return m.absent == 0 && m.Peers > 0 }

// Miss is a minute without a comparison. After 15 of them the board is no peer any more.
func (m *Member) Miss() {
	m.low, m.fine = m.low<<1&(1<<course-1), 0
	if m.absent = min(m.absent+1, clearedBy); m.absent == clearedBy {
		m.Slow = false
	}
}

// Leave forgets the past of a board that is among other peers now, or has another pod.
func (m *Member) Leave() { *m = Member{} }

// Peers compares the boards of a group. It is memory of one comparison alone.
type Peers struct{ sorted []float64 }

// Compare compares the boards of one group after a minute. All have a clock.
func (p *Peers) Compare(group []*Member) {
	if len(group)-1 < leastPeers {
		for _, m := range group {
			m.Miss()
		}
		return
	}
	clocks := p.sorted[:0]
	for _, m := range group {
		clocks = append(clocks, m.Clock)
	}
	median := middle(clocks)
	for i, clock := range clocks {
		clocks[i] = math.Abs(clock - median)
	}
	spread := max(middle(clocks), median/100)
	p.sorted = clocks
	low, high := 0, 0
	for _, m := range group {
		switch {
		case m.Clock <= LowClock*median:
			low++
		case m.Clock >= median/LowClock:
			high++
		}
	}
	several := float64(max(low, high)) > severalOf*float64(len(group))
	for _, m := range group {
		m.Median, m.Peers, m.absent = median, len(group)-1, 0
		m.low = m.low << 1 & (1<<course - 1)
		switch {
		case several: // it changes nothing
		case m.Clock > fineClock*median:
			m.fine = min(m.fine+1, clearedBy)
		default:
			m.fine = 0
			if m.Clock <= LowClock*median && 0.6745*(m.Clock-median)/spread <= lowScore && !m.Fresh {
				m.low |= 1
			}
		}
		switch {
		case m.fine == clearedBy:
			m.Slow = false
		case m.low&1 == 1 && bits.OnesCount16(m.low) >= raisedBy:
			m.Slow = true
		}
	}
}

// middle sorts the values and returns their median.
func middle(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
