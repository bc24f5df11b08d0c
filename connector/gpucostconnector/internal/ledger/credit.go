// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exact"
)

// credited is the row that a part's time goes to, as long as nothing that decides on it
// has changed.
type credited struct {
	row    *row
	class  *Class
	until  int64  // the price holds until then
	layout uint32 // of the node; 0: from before a restart
	state  State
}

// credit advances a board's account to a time. as is the state of the whole interval, and
// NumStates for what the current snapshot has.
func (l *books) credit(b *board, to int64, as State) {
	if as != NumStates {
		l.creditWhole(b, to, as)
		return
	}
	for b.until < to {
		end := b.power.stop(b.until, to)
		for i := range b.current.parts {
			if b.current.weights[i] > 0 {
				end = min(end, l.rowOf(b, &b.current.parts[i]).until)
			}
		}
		l.step(b, end)
		b.until = end
		l.settle(b)
	}
}

// creditWhole credits all of the board to one state.
func (l *books) creditWhole(b *board, to int64, as State) {
	whole := part{state: as}
	for i := range b.current.parts {
		b.current.parts[i].idle.end()
	}
	for b.until < to {
		end := b.power.stop(b.until, to)
		c := l.rowOf(b, &whole)
		end = min(end, c.until)
		l.give(b, c.row, as, end-b.until, true)
		b.until = end
		l.settle(b)
	}
}

// rowOf returns where a part's time from b.until on goes.
func (l *books) rowOf(b *board, q *part) *credited {
	state := q.state
	if (state == Free || state == Stranded) && !b.node.usable(b.until) {
		state = Unavailable
	}
	if c := &q.credited; c.row != nil && !c.row.retired && c.class == b.class && c.state == state && (c.layout == b.node.layout || c.layout == 0) && c.until > b.until {
		return c
	}
	k := Key{Class: *b.class, Profile: q.profile, State: state}
	if q.owner != nil {
		k.Namespace, k.Service, k.Tenant, k.SlurmCluster = q.owner.Namespace, q.owner.Service, q.owner.Tenant, q.owner.SlurmCluster
		if l.cfg.PerPod {
			k.Pod = q.owner.Pod
		}
	}
	until := int64(1<<63 - 1)
	if l.cfg.Price != nil {
		of := Priced{Class: b.class, Node: b.node.key.name, Boards: b.node.physical(), Profile: q.profile, Share: share.Whole}
		if q.profile != "" && q.share.Valid() {
			of.Share = q.share
		}
		p := l.cfg.Price(&of, b.until)
		k.Rate, k.Kind, until = p.Rate, p.Kind, p.Until
	}
	q.credited = credited{l.row(k, b.until), b.class, until, b.node.layout, state}
	return &q.credited
}

// step credits the time up to end, within which nothing changes, to the parts of the
// current snapshot.
func (l *books) step(b *board, end int64) {
	s := &b.current
	if n := len(s.parts); cap(l.amounts) < n {
		l.amounts = make([]int64, n, 2*n)
	}
	amounts := l.amounts[:len(s.parts)]
	share.Apportion(end-b.until, s.weights, s.whole, s.carried, amounts)
	for i := range s.parts {
		q := &s.parts[i]
		if s.weights[i] == 0 {
			continue
		}
		r := q.credited.row
		if q.contested {
			r.mark(hourOf(b.until), Contested)
		}
		if q.estimated {
			r.mark(hourOf(b.until), Estimated)
		}
		l.give(b, r, q.credited.state, amounts[i], s.weights[i] == s.whole)
		if q.state == Held && !b.virtual {
			l.measure(b, q, amounts[i], end, s.weights[i] == s.whole)
		}
	}
}

// give adds time to a row. whole: it is of the whole board.
func (l *books) give(b *board, r *row, state State, ms int64, whole bool) {
	if ms == 0 {
		return
	}
	if b.virtual {
		if state == Held {
			r.total.Unplaced += ms
			r.at(hourOf(b.until)).Unplaced += ms
		}
		return
	}
	b.states[state] += ms
	r.total.Time += ms
	r.at(hourOf(b.until)).Time += ms
	b.power.share(r, hourOf(b.until), ms, whole)
}

// measure splits a part's held time up to end by what is known of its utilization.
func (l *books) measure(b *board, q *part, amount, end int64, whole bool) {
	r, from := q.credited.row, b.until
	h := hourOf(from)
	m := b.meter(q)
	if m != nil && m.id != q.id {
		r.mark(h, BoardMetered)
	}
	used, measured := int64(0), int64(0)
	length := end - from
	at := from
	for m != nil && at < end {
		p := m.read(at, end)
		if p.from > at {
			q.idle.end() // nothing is known of it
		}
		if p.from == end {
			break
		}
		ms := exact.MulDiv(amount, p.to-from, length) - exact.MulDiv(amount, p.from-from, length)
		measured += ms
		due := ms*int64(p.value) + q.remainder
		used, q.remainder = used+due/million, due%million
		if p.busy {
			q.idle.end()
		} else if q.idle.add(p.from, r, h, ms); p.to-q.idle.since >= l.cfg.IdleFor {
			q.idle.settle()
		}
		at = p.to
	}
	if m == nil {
		q.idle.end()
	}
	bucket := r.at(h)
	r.total.Used += used
	bucket.Used += used
	r.total.Unmeasured += amount - measured
	bucket.Unmeasured += amount - measured
	if l.cfg.IdleWatts != nil {
		b.power.active(r, h, whole, used, measured)
	}
}
