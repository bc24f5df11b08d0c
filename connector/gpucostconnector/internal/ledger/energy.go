// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/exact"
)

// energy is what a board burnt, and who had it since that was last credited.
type energy struct {
	counted bool  // there is a counter; power is not integrated
	basis   Basis // of pending and later: Integrated, or OfShare
	last    int64 // time of the newest point; 0: none
	value   int64 // of the counter, mJ; of the power, mW
	changed int64 // time of the first point with value: an exporter may be read more often than it reads
	read    int64 // the exporter did not read value before this time
	rest    int64 // of the integration, µJ
	pace    pace  // of the points that are integrated
	pending int64 // mJ up to due that are not credited yet
	due     int64
	later   int64 // mJ between due and last

	shares []energyShare
}

// energyShare is time that has not been given its energy.
type energyShare struct {
	row  *row
	hour int32 // since the Unix epoch
	ms   int32
	// Where energy is split by activity, that of its measured part: ms at full load, and the
	// ms of it.
	busy, measured int32
	whole          bool
}

// start is that of the hour.
func (s *energyShare) start() int64 { return int64(s.hour) * hour }

const (
	// energyFor is how long a gap of the counter may last.
	energyFor = day
	// unread is how old a value may be in the first point with it, after a gap.
	unread = minute
	// jump is how many times its greatest power a board cannot have burnt.
	jump = 2
)

// metered reports whether a point of energy counts: in the first snapshot, as long as it is
// open, one does, from which later ones are counted.
func (b *board) metered(at int64, counter bool) bool {
	return b.until != 0 || b.open != 0 && at >= b.open && (b.power.last == 0 || counter && !b.power.counted)
}

// count reads the counter of a board. maxWatts is 0 where it is not known.
func (l *books) count(b *board, at, value int64, maxWatts float64) {
	e := &b.power
	if at < e.last || at == e.last && e.counted || at < b.first {
		return
	}
	switch burnt := value - e.value; {
	case !e.counted: // from now on there is a counter
		l.counts.EnergyLost += e.pending + e.later
		*e = energy{counted: true, shares: e.shares[:0]}
	case burnt == 0: // the exporter has not read the counter again
		e.last = at
		return
	case at-e.changed > energyFor, burnt < 0, maxWatts > 0 && float64(burnt) > jump*maxWatts*float64(at-e.read):
		l.drop(b, at)
	default:
		e.add(burnt, at, OfShare)
	}
	e.take(at, value)
	l.settle(b)
}

// take makes a value the newest.
func (e *energy) take(at, value int64) {
	e.read = max(e.last, at-unread)
	e.last, e.changed, e.value = at, at, value
}

// integrate reads the power of a board, in mW.
func (l *books) integrate(b *board, at, value int64) {
	e := &b.power
	if e.counted || at <= e.last || at < b.first {
		return
	}
	length := at - e.last
	switch {
	case e.last == 0:
	case length > e.pace.holds(l.cfg.Staleness):
		l.drop(b, at)
		e.pace.see(length)
	default:
		// mW for ms are µJ; between two points the power is their mean.
		burnt := (e.value+value)*length/2 + e.rest
		e.rest = burnt % 1000
		e.add(burnt/1000, at, Integrated)
		e.pace.see(length)
	}
	e.take(at, value)
	l.settle(b)
}

// add notes what was burnt up to a time. Energy may always be ahead of owners, so what is
// due does not wait for what comes after it.
func (e *energy) add(burnt, at int64, basis Basis) {
	e.basis = basis
	if e.pending == 0 {
		e.pending, e.due = burnt, at
		return
	}
	e.later += burnt
}

// drop forgets the time since the newest value, of which the energy cannot be known.
func (l *books) drop(b *board, at int64) {
	e := &b.power
	l.counts.EnergyGap += at - e.changed
	e.due = min(e.due, b.until)
	l.settle(b)
	e.shares = e.shares[:0]
}

// share notes that a row had time of the board. Without a point of energy there is nothing
// to be divided.
func (e *energy) share(r *row, h, ms int64, whole bool) {
	if e.last == 0 {
		return
	}
	if h-e.changed > energyFor { // what was burnt since will not be credited
		e.shares = e.shares[:0]
		return
	}
	for i := len(e.shares) - 1; i >= 0; i-- {
		if s := &e.shares[i]; s.row == r && s.start() == h && s.whole == whole {
			s.ms += int32(ms)
			return
		}
	}
	e.shares = append(e.shares, energyShare{row: r, hour: int32(h / hour), ms: int32(ms), whole: whole})
}

// active notes what a row used of time that share was called with.
func (e *energy) active(r *row, h int64, whole bool, busy, measured int64) {
	for i := len(e.shares) - 1; i >= 0; i-- {
		if s := &e.shares[i]; s.row == r && s.start() == h && s.whole == whole {
			s.busy += int32(busy)
			s.measured += int32(measured)
			return
		}
	}
}

// settle credits the energy that is due, once the time up to it is.
func (l *books) settle(b *board) {
	e := &b.power
	if e.pending == 0 || b.until < e.due || len(e.shares) == 0 {
		return
	}
	n := len(e.shares)
	if cap(l.energy) < n {
		l.energy, l.weights = make([]int64, n, 2*n), make([]int64, n, 2*n)
	}
	parts, weights := l.energy[:n], l.weights[:n]
	split := l.divide(b, weights, parts)
	carbon, known := int64(0), false
	if l.cfg.Carbon != nil {
		carbon, known = l.cfg.Carbon(b.class, e.last)
	}
	for i, s := range e.shares {
		basis := e.basis
		if basis == OfShare && s.whole {
			basis = OfBoard
		}
		if split && !s.whole {
			s.row.mark(s.start(), Estimated)
		}
		h := s.row.at(s.start())
		s.row.total.Energy[basis] += parts[i]
		h.Energy[basis] += parts[i]
		if known {
			// A kilowatt-hour is 3.6e9 mJ, a milligram 1000 µg.
			grams := exact.MulDiv(parts[i], carbon, 3_600_000)
			s.row.total.Carbon += grams
			h.Carbon += grams
		}
	}
	e.pending, e.due, e.later, e.shares = e.later, e.changed, 0, e.shares[:0]
}

// divide divides the energy that is due over the time that rows had. byActivity: what is
// above that of an idle board is divided by what was used of the time. What was not measured
// is taken to be as busy as what was; what has no owner is idle.
func (l *books) divide(b *board, weights, parts []int64) (byActivity bool) {
	e := &b.power
	all, busy, measured := int64(0), int64(0), int64(0)
	for i, s := range e.shares {
		weights[i] = int64(s.ms)
		all, busy, measured = all+int64(s.ms), busy+int64(s.busy), measured+int64(s.measured)
	}
	exact.Proportion(e.pending, weights, parts)
	if l.cfg.IdleWatts == nil || busy == 0 {
		return false
	}
	idle, known := l.cfg.IdleWatts(b.class)
	if idle = exact.MulDiv(idle, all, 1000); !known || idle >= e.pending {
		return false
	}
	exact.Proportion(idle, weights, parts)
	for i, s := range e.shares {
		weights[i] = int64(s.busy)
		if s.row.key.State == Held {
			weights[i] += exact.MulDiv(int64(max(0, s.ms-s.measured)), busy, measured)
		}
	}
	above := make([]int64, len(parts))
	exact.Proportion(e.pending-idle, weights, above)
	for i, mj := range above {
		parts[i] += mj
	}
	return true
}

// stop is the end of the time from from to to that can be credited at once: at the latest
// the next full hour, or when energy is due.
func (e *energy) stop(from, to int64) int64 {
	to = min(to, hourOf(from)+hour)
	if e.pending > 0 && e.due > from {
		to = min(to, e.due)
	}
	return to
}

// oldestPending is the hour of the oldest amount that may still change.
func (b *board) oldestPending() int64 {
	oldest := b.until
	if oldest == 0 {
		oldest = b.open
	}
	for _, s := range b.power.shares {
		oldest = min(oldest, s.start())
	}
	for i := range b.current.parts {
		for _, s := range b.current.parts[i].idle.pending {
			oldest = min(oldest, s.hour)
		}
	}
	return oldest
}
