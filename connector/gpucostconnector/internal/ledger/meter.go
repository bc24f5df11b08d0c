// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import "strings"

// million is a utilization of 1.
const million = 1_000_000

// meter is what is known of the utilization of one device and not credited yet, oldest
// first. A utilization holds from its point to the next one, and no longer than the
// staleness.
type meter struct {
	id     string
	pieces [4]piece
	n      int8
	pace   pace
}

// pace is the last two gaps between points of a series, in milliseconds; 0: not known.
type pace [2]int32

// outage is the longest gap that can be an interval, as in gpu_summary.
const outage = 6 * minute

func (p *pace) see(gap int64) {
	if gap <= outage {
		p[0], p[1] = p[1], int32(gap)
	}
}

// holds returns for how long a point holds: for two and a half intervals, unless a staleness is
// configured.
func (p *pace) holds(staleness int64) int64 {
	if staleness > 0 {
		return staleness
	}
	return max(45*second, int64(min(p[0], p[1]))*5/2)
}

// piece is a time with a utilization.
type piece struct {
	from, to int64
	value    int32 // millionths; the mean of what was joined
	busy     bool  // some of it was not idle
}

// add appends a piece, which begins with a point. credited is until when the pieces are not
// needed any more. Where there are too many, the oldest are joined: utilization comes more often
// than owners.
func (m *meter) add(p piece, credited, staleness int64) {
	if m.n > 0 {
		newest := &m.pieces[m.n-1]
		if p.from <= newest.from {
			return
		}
		m.pace.see(p.from - newest.from)
		newest.to = min(newest.to, p.from)
	}
	p.to = p.from + m.pace.holds(staleness)
	for m.n > 0 && m.pieces[0].to <= credited {
		m.remove(0)
	}
	if int(m.n) == len(m.pieces) {
		m.join()
	}
	m.pieces[m.n] = p
	m.n++
}

// join makes room: of the two oldest pieces that follow each other one, else without the
// oldest.
func (m *meter) join() {
	for i := range m.n - 1 {
		a, b := &m.pieces[i], m.pieces[i+1]
		if a.to != b.from {
			continue
		}
		sum := int64(a.value)*(a.to-a.from) + int64(b.value)*(b.to-b.from)
		a.to, a.busy = b.to, a.busy || b.busy
		a.value = int32(sum / (a.to - a.from))
		m.remove(i + 1)
		return
	}
	m.remove(0)
}

func (m *meter) remove(i int8) {
	copy(m.pieces[i:], m.pieces[i+1:m.n])
	m.n--
}

// meter returns the meter of a part: its own, of the device it is a replica of, or of the
// board.
func (b *board) meter(q *part) *meter {
	var best *meter
	for i := range b.meters {
		switch m := &b.meters[i]; m.id {
		case q.id:
			return m
		case q.device:
			best = m
		case b.id:
			if best == nil {
				best = m
			}
		}
	}
	return best
}

// read returns the first piece of [from, to) that has a utilization; one of no length at
// to, where none has.
func (m *meter) read(from, to int64) piece {
	for _, p := range m.pieces[:m.n] {
		if p.to > from && p.from < to {
			p.from, p.to = max(p.from, from), min(p.to, to)
			return p
		}
	}
	return piece{from: to, to: to}
}

// idle is a stretch of a part without work, which counts from its start once it has lasted
// long enough.
type idle struct {
	since   int64 // 0: it is not idle
	pending []stretch
}

// stretch is the idle time in one hour of a row.
type stretch struct {
	row  *row
	hour int64
	ms   int64
}

// end ends the stretch. What is pending was too short to count.
func (i *idle) end() { i.since, i.pending = 0, i.pending[:0] }

// add lengthens the stretch.
func (i *idle) add(at int64, r *row, h, ms int64) {
	if i.since == 0 {
		i.since = at
	}
	if n := len(i.pending); n > 0 && i.pending[n-1].row == r && i.pending[n-1].hour == h {
		i.pending[n-1].ms += ms
		return
	}
	i.pending = append(i.pending, stretch{r, h, ms})
}

// settle counts what is pending.
func (i *idle) settle() {
	for _, s := range i.pending {
		s.row.total.Idle += s.ms
		s.row.at(s.hour).Idle += s.ms
	}
	i.pending = i.pending[:0]
}

// meterOf returns the meter of a device, a new one for a new device; nil where there are too
// many.
func (b *board) meterOf(device string) *meter {
	for i := range b.meters {
		if b.meters[i].id == device {
			return &b.meters[i]
		}
	}
	if len(b.meters) >= maxParts {
		return nil
	}
	rest, of := strings.CutPrefix(device, b.id)
	b.meters = append(b.meters, meter{id: b.named(rest, of)})
	return &b.meters[len(b.meters)-1]
}
