// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import "strings"

// million is a utilization of 1.
const million = 1_000_000

// meter is the newest utilizations of one device, oldest first. A utilization holds from
// its point to the next one, and no longer than the staleness.
type meter struct {
	id      string
	samples [4]sample
	n       int8
}

type sample struct {
	at    int64
	value int64 // millionths
}

// Utilization reports how busy a device was, 0 to 1: of the board or, with its own id, of
// a part of it. What is outside of that is no utilization.
func (l *Ledger) Utilization(boardID, device string, at int64, value float64) {
	b := l.boards[boardID]
	if b == nil || !(value >= 0 && value <= 1) {
		return
	}
	var m *meter
	for i := range b.meters {
		if b.meters[i].id == device {
			m = &b.meters[i]
		}
	}
	if m == nil {
		if len(b.meters) >= maxParts {
			l.counts.Refused++
			return
		}
		rest, of := strings.CutPrefix(device, b.id)
		b.meters = append(b.meters, meter{id: b.named(rest, of)})
		m = &b.meters[len(b.meters)-1]
	}
	m.add(sample{at, int64(value*million + 0.5)})
}

func (m *meter) add(s sample) {
	if m.n > 0 && s.at <= m.samples[m.n-1].at {
		return
	}
	if int(m.n) == len(m.samples) {
		copy(m.samples[:], m.samples[1:])
		m.n--
	}
	m.samples[m.n] = s
	m.n++
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

// read returns the first piece of [from, to) that has a utilization; start is to where
// none has.
func (m *meter) read(from, to, staleness int64) (value, start, end int64) {
	for i := range m.n {
		s := m.samples[i]
		until := s.at + staleness
		if i+1 < m.n {
			until = min(until, m.samples[i+1].at)
		}
		if until <= from {
			continue
		}
		if s.at >= to {
			break
		}
		return s.value, max(from, s.at), min(to, until)
	}
	return 0, to, to
}

// covers reports whether there is a utilization at a time.
func (m *meter) covers(at, staleness int64) bool {
	_, start, end := m.read(at, at+1, staleness)
	return start < end && start == at
}

// idle is a stretch of a part without work, which counts from its start once it has lasted
// long enough.
type idle struct {
	running bool
	since   int64
	pending []stretch
}

// stretch is the idle time in one hour of a row.
type stretch struct {
	row  *row
	hour int64
	ms   int64
}

// end ends the stretch. What is pending was too short to count.
func (i *idle) end() { i.running, i.pending = false, i.pending[:0] }

// add lengthens the stretch.
func (i *idle) add(at int64, r *row, h, ms int64) {
	if !i.running {
		i.running, i.since = true, at
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
