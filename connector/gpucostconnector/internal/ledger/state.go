// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
)

// Encode returns the state of all accounts and totals, for Restore. What came since the
// last settled snapshots is not part of it, nor are utilizations: after a restart the gap
// decides. Amounts must be emitted only once the state that contains them is stored; then
// no time counts twice after a restart, and no counter falls.
func (l *Ledger) Encode() []byte {
	l.feed()
	w := writer{b: make([]byte, 0, 256*(len(l.boards)+len(l.rows))), texts: map[string]int{}, classes: map[Class]int{}}
	rows := map[*row]int{}
	w.num(l.start, l.kept, l.newest, l.closed[0], l.closed[1], l.closed[2], l.closed[3], l.closed[4])
	w.num(int64(len(l.rows)))
	for _, r := range l.rows {
		rows[r] = len(rows)
		w.row(r)
	}
	w.num(int64(len(l.nodes)))
	for _, n := range l.nodes {
		w.text(n.key.cluster, n.key.name)
		w.num(n.newest, n.run)
		for _, u := range n.unusable {
			w.num(u.at)
			w.flag(u.is)
		}
		settled := int64(0)
		for _, b := range n.boards {
			if b.until != 0 {
				settled++
			}
		}
		w.num(settled)
		for _, b := range n.boards {
			if b.until != 0 {
				w.board(b, rows)
			}
		}
	}
	w.num(int64(len(l.ended)))
	for id, until := range l.ended {
		w.raw(id)
		w.num(until)
	}
	w.budgets(l.budgets.Accounts())
	w.folds(l.folds)
	body := binary.AppendVarint(nil, int64(len(w.list)))
	for _, t := range w.list {
		body = append(binary.AppendVarint(body, int64(len(t))), t...)
	}
	return seal(append(body, w.b...))
}

// Restore returns the Ledger that was encoded.
func Restore(cfg Config, state []byte) (*Ledger, error) {
	body, err := unseal(state)
	if err != nil {
		return nil, err
	}
	r := reader{b: body, format: state[0]}
	r.list = make([]string, r.length())
	for i := range r.list {
		r.list[i] = r.raw()
	}
	l := New(cfg, 0)
	r.num(&l.start, &l.kept, &l.newest, &l.closed[0], &l.closed[1], &l.closed[2], &l.closed[3], &l.closed[4])
	rows := make([]*row, r.length())
	for i := range rows {
		rows[i] = r.row()
		l.rows[rows[i].key] = rows[i]
		l.started[rows[i].key.series()] = rows[i].start
	}
	for range r.length() {
		var cluster, name string
		r.text(&cluster, &name)
		n := l.node(cluster, name)
		r.num(&n.newest, &n.run)
		for i := range n.unusable {
			r.num(&n.unusable[i].at)
			n.unusable[i].is = r.flag()
		}
		for range r.length() {
			b := r.board(l, rows)
			if b == nil || l.boards[b.id] != nil {
				return nil, ErrState
			}
			b.node = n
			l.register(b)
		}
	}
	for range r.length() {
		id := r.raw()
		l.ended[id] = r.one()
	}
	budgets := r.budgets()
	r.folds(l.folds)
	if r.bad || len(r.b) > 0 || len(l.rows) != len(rows) {
		return nil, ErrState
	}
	l.resume(cfg.Budgets, budgets, l.known())
	l.counts = Counts{} // snapshots that were counted when they came
	return l, nil
}

func (w *writer) board(b *board, rows map[*row]int) {
	w.raw(b.id)
	w.class(b.class)
	w.flag(b.virtual)
	w.flag(b.absent)
	w.num(b.missing, b.first, b.until-b.first, b.listed)
	w.num(b.states[:]...)
	e := &b.power
	w.flag(e.counted)
	w.num(e.last, e.changed, e.read, int64(e.pace[0]), int64(e.pace[1]), e.value, e.rest, e.pending, e.due, e.later, int64(e.basis), int64(len(e.shares)))
	for _, s := range e.shares {
		w.num(int64(rows[s.row]), int64(s.hour), int64(s.ms), int64(s.busy), int64(s.measured))
		w.flag(s.whole)
	}
	s := &b.current
	w.num(int64(s.rest), int64(len(s.points())))
	for i := range s.points() {
		q := &s.parts[i]
		w.id(b, q.id)
		w.id(b, q.device)
		w.text(q.profile)
		w.num(q.share.P, q.share.Q, int64(q.replicas), int64(q.state), q.remainder)
		w.flag(q.estimated)
		w.flag(q.owner != nil)
		if o := q.owner; o != nil {
			w.text(o.Namespace, o.Pod, o.Container, o.UID, o.Service, o.Tenant, o.SlurmCluster)
		}
	}
	w.num(s.carried...)
	for i := range s.parts {
		i, known := rows[s.parts[i].credited.row]
		if w.flag(known); known {
			w.num(int64(i))
		}
	}
}

// id writes the id of a part without that of its board.
func (w *writer) id(b *board, id string) {
	rest, of := strings.CutPrefix(id, b.id)
	w.flag(of)
	w.text(rest)
}

// class writes a class once, and its number later.
func (w *writer) class(c *Class) {
	i, known := w.classes[*c]
	w.num(int64(i))
	if !known {
		w.classes[*c] = len(w.classes) + 1
		w.text(c.Cluster, c.Model, c.HostType, c.Region, c.Capacity, c.Pool, c.Labels)
	}
}

// board returns nil for one that does not fit.
func (r *reader) board(l *Ledger, rows []*row) *board {
	b := &board{restored: true, class: nil}
	b.id = r.raw()
	b.class = r.class()
	b.virtual, b.absent = r.flag(), r.flag()
	r.num(&b.missing, &b.first, &b.until)
	b.until += b.first
	b.since = b.first
	if r.format > withoutListed {
		r.num(&b.listed)
	}
	for s := range b.states {
		r.num(&b.states[s])
	}
	e := &b.power
	e.counted = r.flag()
	r.num(&e.last)
	if e.changed, e.read = e.last, e.last-unread; r.format > withoutChanges {
		r.num(&e.changed, &e.read)
		e.pace = pace{int32(r.within(outage + 1)), int32(r.within(outage + 1))}
	}
	r.num(&e.value, &e.rest, &e.pending, &e.due, &e.later)
	e.basis = Basis(r.within(int64(numBasis)))
	for range r.length() {
		i := r.within(int64(len(rows)))
		if r.bad {
			return nil
		}
		const most = 1 << 31
		s := energyShare{row: rows[i], hour: int32(r.within(most)), ms: int32(r.within(most)), busy: int32(r.within(most)), measured: int32(r.within(most)), whole: r.flag()}
		r.bad = r.bad || s.ms <= 0 || s.busy > s.measured || s.measured > s.ms
		e.shares = append(e.shares, s)
	}
	b.current.rest = State(r.within(int64(NumStates)))
	for range r.within(maxParts + 1) {
		b.current.parts = append(b.current.parts, r.part(b))
		b.job = b.current.parts[0].owner.ofJob()
	}
	if r.bad || b.first <= 0 || b.until < b.first || e.pending < 0 || e.later < 0 || b.id == "" {
		return nil
	}
	b.current.finish(b, &l.counts)
	for i := range b.current.carried {
		r.num(&b.current.carried[i])
	}
	if carried := b.current.carried; r.bad || !balanced(carried, b.current.whole) {
		return nil
	}
	for i := range b.current.parts {
		if r.flag() {
			if n := r.within(int64(len(rows))); !r.bad {
				b.current.parts[i].credited = credited{row: rows[n], class: b.class, until: l.cfg.PricedFrom, state: rows[n].key.State}
			}
		}
	}
	if r.bad {
		return nil
	}
	if r.format <= withoutListed && slices.ContainsFunc(b.current.points(), func(q part) bool { return q.state == Free }) {
		b.listed = b.until // an owner may be one that telemetry named
	}
	return b
}

// balanced reports whether what was carried can be what Apportion left.
func balanced(carried []int64, whole int64) bool {
	sum, n := int64(0), int64(len(carried))
	for _, c := range carried {
		if c > n*whole || c < -n*whole {
			return false
		}
		sum += c
	}
	return sum == 0
}

func (r *reader) id(b *board) string {
	var id string
	of := r.flag()
	r.text(&id)
	return b.named(id, of)
}

func (r *reader) part(b *board) part {
	var q part
	q.id, q.device = r.id(b), r.id(b)
	r.text(&q.profile)
	var s share.Fraction
	r.num(&s.P, &s.Q)
	q.share, q.replicas = s, int32(r.within(1<<20))
	q.state = State(r.within(int64(NumStates)))
	q.remainder = r.within(million)
	q.estimated = r.flag()
	if r.flag() {
		q.owner = &Owner{}
		r.text(&q.owner.Namespace, &q.owner.Pod, &q.owner.Container, &q.owner.UID, &q.owner.Service, &q.owner.Tenant)
		r.cluster(&q.owner.SlurmCluster)
	}
	r.bad = r.bad || (q.state == Held) != (q.owner != nil)
	return q
}

func (r *reader) class() *Class {
	if i := r.within(int64(len(r.classes)) + 1); i > 0 {
		return r.classes[i-1]
	}
	var c Class
	r.text(&c.Cluster, &c.Model, &c.HostType, &c.Region, &c.Capacity, &c.Pool, &c.Labels)
	r.classes = append(r.classes, &c)
	return &c
}

// Known is what the ledger has of a physical board: after Restore it is all that is known.
type Known struct {
	Board, Cluster, Node string
	Class                *Class
	Until                int64 // the newest snapshot
	// Listed is the newest snapshot in which gpu.allocation had the board or a part of it; 0: none.
	Listed int64
	// Job is true where a part has a job, or where it is not known what any part has.
	Job   bool
	Parts []KnownPart
}

// KnownPart is a part of the newest snapshot.
type KnownPart struct{ ID, Profile string }

// Known calls f with each open account of a physical board, in no order. What it gets is of
// use until it returns.
func (l *Ledger) Known(f func(*Known)) {
	for _, b := range l.boards {
		if b.virtual {
			continue
		}
		k := Known{Board: b.id, Cluster: b.node.key.cluster, Node: b.node.key.name, Class: b.class, Until: max(b.until, b.open), Listed: b.listed, Job: b.current.unknown()}
		for _, q := range b.current.points() {
			k.Job = k.Job || q.owner.ofJob()
			k.Parts = append(k.Parts, KnownPart{q.id, q.profile})
		}
		f(&k)
	}
}
