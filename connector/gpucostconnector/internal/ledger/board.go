// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
)

// maxParts bounds the parts of one board.
const maxParts = 256

// Point is one part of a board in a snapshot.
type Point struct {
	Cluster, Node string
	Board         string // hw.id of the physical board
	Part          string // hw.id of the part, Board itself for a whole GPU
	Time          int64
	Class         *Class // of the board; kept, so equal classes should be one
	State         State  // Held, Free or Unknown
	Owner         *Owner // of a Held part; kept, so it never changes, and equal ones should be one
	Share         share.Fraction
	// Replicas is not 0 for one of the equal parts of Device, of which it is the known
	// number, at least 1. Share is then the share of Device.
	Replicas int
	Device   string
	Profile  string // of a MIG instance
	// Rest is what the board is where no part covers it: Stranded with MIG, else Free.
	Rest State
	// Virtual is true for what no board is known of: it counts as unplaced time of its
	// owner, and not as capacity.
	Virtual bool
	Ref     *Ref // of Board; nil: the account is looked up
	// Estimated is true where the share is only estimated.
	Estimated bool
	// Listed is true where a point of gpu.allocation stands for the part.
	Listed bool
}

// Ref remembers the account of one board, so that it is not looked up for every point. The
// zero Ref remembers none. It is of use with one Ledger only.
type Ref struct{ account *board }

// find returns the open account of a board, nil without one.
func (l *Ledger) find(ref *Ref, id string) *board {
	if ref == nil {
		return l.boards[id]
	}
	if ref.account == nil || ref.account.closed {
		ref.account = l.boards[id]
	}
	return ref.account
}

// board is the account of one board.
type board struct {
	id      string
	node    *node
	class   *Class
	virtual bool
	job     bool // a virtual one is a job's
	// absent: its node has not listed it since the snapshot at until.
	absent bool
	// restored: until is from before a restart, so a gap is never taken for granted.
	restored bool
	arrived  bool // a point has come since Behind
	closed   bool // it is in no map any more

	missing int64 // since when it is absent

	since        int64 // its first point
	listed       int64 // the newest that gpu.allocation made; 0: none
	first, until int64 // until: what is credited; 0 as long as there is no snapshot
	states       [NumStates]int64

	current snapshot  // at until
	open    int64     // time of the snapshot that is being read; 0: none
	opened  *Class    // then
	quiet   int64     // the first Expire after its last point; 0: none was
	matched int       // how many of its points are those of current, in order
	next    *snapshot // the points of it, once one differed; else nil

	meters []meter
	power  energy
}

// Add reads a point.
func (l *Ledger) Add(p *Point) {
	b := l.find(p.Ref, p.Board)
	if b == nil {
		if b = l.newBoard(p); b == nil {
			return
		}
	}
	b.arrived, b.quiet = true, 0
	if p.Time <= b.until || p.Time < b.open {
		if p.Time < b.until || b.open != 0 {
			l.counts.Late++
		}
		return
	}
	if p.Time > b.open {
		l.move(b, p)
		// First what the node has not listed until now, be it this board: its account may end.
		if l.advance(b.node, p.Time); b.closed {
			if b = l.newBoard(p); b == nil {
				return
			}
		}
		if !l.unnamed(b, p.Time) {
			l.seal(b)
		}
		l.newest = max(l.newest, p.Time)
		b.open, b.matched, b.next = p.Time, 0, nil
		b.opened = p.Class
	}
	if p.Listed {
		b.listed = p.Time
	}
	b.read(l, p)
}

// newBoard opens an account, not for a time that a closed one has.
func (l *Ledger) newBoard(p *Point) *board {
	known := l.parts
	if !p.Virtual {
		known = len(l.boards) - l.parts
	}
	if known >= l.cfg.MaxBoards {
		l.counts.Refused++
		return nil
	}
	n := l.node(p.Cluster, p.Node)
	if p.Time < max(l.ended[p.Board], l.kept) {
		l.counts.Late++
		return nil
	}
	b := &board{id: strings.Clone(p.Board), node: n, class: p.Class, virtual: p.Virtual, since: p.Time}
	if until, again := l.ended[b.id]; again {
		b.since = until // it is back, and replaces none
	}
	b.job = p.Owner.ofJob()
	l.register(b)
	return b
}

// register adds a board to the open accounts.
func (l *Ledger) register(b *board) {
	l.boards[b.id] = b
	if b.virtual {
		l.parts++
	}
	b.node.add(b)
}

// move follows a board that was put into another node.
func (l *Ledger) move(b *board, p *Point) {
	if b.node.key.name == p.Node && b.node.key.cluster == p.Cluster {
		return
	}
	b.node.remove(b)
	b.node = l.node(p.Cluster, p.Node)
	b.node.add(b)
}

// advance is called with every snapshot of a node. The boards that the one before did not
// list for longer than a gap may last are unavailable up to that one.
func (l *Ledger) advance(n *node, at int64) {
	if at <= n.newest {
		return
	}
	before := n.newest
	for i := 0; i < len(n.boards); i++ {
		b := n.boards[i]
		last, absent := max(b.open, b.until), b.absent && b.open == 0
		if last == 0 {
			continue // it is this snapshot's
		}
		if b.since == before {
			n.layout++ // from now on it is one of the node's boards
		}
		if !b.virtual && n.replaced(b, before) {
			l.seal(b)
			l.close(b)
			i--
			continue
		}
		if b.virtual || last >= before || !absent && before-last <= l.cfg.AllocationTTL {
			continue
		}
		if l.miss(b, before) {
			i--
		}
	}
	n.newest = at
	if at-before > l.cfg.AllocationTTL {
		n.run = at
	}
}

// miss credits the time up to a snapshot of the node that does not list the board. closed:
// the account is.
func (l *Ledger) miss(b *board, at int64) (closed bool) {
	l.seal(b)
	if at-b.until > l.cfg.CloseAfter {
		l.close(b)
		return true
	}
	if run := b.node.run; run > b.until && run <= at {
		l.credit(b, run, Unknown) // the node was silent meanwhile
	}
	if !b.absent {
		b.absent = true
		b.missing = b.until
		rest := Unavailable
		if b.current.unknown() {
			rest = Unknown // what it was before is not known either
		}
		b.current.reset()
		b.current.rest = rest
		b.current.finish(b, &l.counts)
	}
	l.credit(b, at, b.current.rest)
	if at-b.missing > l.cfg.UnavailableFor {
		l.close(b)
		return true
	}
	return false
}

// close ends an account: what it contains stays in the totals.
func (l *Ledger) close(b *board) {
	l.end(b)
	l.ended[b.id] = max(l.ended[b.id], b.until)
	b.node.remove(b)
	delete(l.boards, b.id)
	if b.virtual {
		l.parts--
	}
	b.closed = true
}

// end moves the account of a board to the closed ones.
func (l *Ledger) end(b *board) {
	for s, ms := range b.states {
		l.closed[s] += ms
	}
	l.counts.EnergyLost += b.power.pending + b.power.later
	b.states, b.power = [NumStates]int64{}, energy{}
	for i := range b.current.parts {
		b.current.parts[i].idle.end()
	}
}

// read makes a point part of the open snapshot.
func (b *board) read(l *Ledger, p *Point) {
	if b.next == nil {
		known := b.current.points()
		if b.matched < len(known) && b.current.rest == p.Rest && known[b.matched].is(p) {
			if o := known[b.matched].owner; o != nil && o.UID == "" {
				known[b.matched].owner = p.Owner
			}
			b.matched++
			return
		}
		b.next = &snapshot{}
		b.next.begin(known[:b.matched])
	}
	b.next.rest = p.Rest
	for i := range b.next.parts {
		q := &b.next.parts[i]
		switch {
		case q.id != p.Part:
		case q.state == Held && p.State == Held && !q.owner.same(p.Owner):
			// It is contested.
		case q.state == Held || p.State != Held:
			return // it is in the snapshot
		default: // a part with an owner is not free
			q.was = -1
			q.take(b, p)
			return
		}
	}
	if len(b.next.parts) >= maxParts {
		l.counts.Refused++
		return
	}
	q := part{was: -1}
	for i, known := range b.current.points() {
		if known.id == p.Part && known.state == p.State && (p.State != Held || known.owner.same(p.Owner)) {
			q = known
			q.was = int32(i)
			break
		}
	}
	q.take(b, p)
	b.next.parts = append(b.next.parts, q)
}

// named is an id that begins, with of, with the board's: where that is all, they share the
// memory.
func (b *board) named(rest string, of bool) string {
	switch {
	case !of:
		return strings.Clone(rest)
	case rest == "":
		return b.id
	}
	return b.id + rest
}

// seal ends the snapshot that is being read: it is complete, since a later one has begun.
// What lies between the last one and it is credited.
func (l *Ledger) seal(b *board) {
	if b.open == 0 {
		return
	}
	known := len(b.current.points())
	if b.next == nil && b.matched != known {
		b.next = &snapshot{rest: b.current.rest}
		b.next.begin(b.current.points()[:b.matched])
	}
	if b.next != nil {
		b.next.name(&b.current)
	}
	if b.class != nil && b.class.Model == "" && b.opened.Model != "" {
		b.class = b.opened // the exporter, which names the model, may begin later than the owners
	}
	l.gap(b)
	if b.next != nil {
		b.next.follow(&b.current)
		b.next.finish(b, &l.counts)
		b.current, b.next = *b.next, nil
	}
	b.class, b.until, b.open, b.absent, b.restored = b.opened, b.open, 0, false, false
}

// unnamed reports whether the open snapshot of a new board can be left out: its model, and price, may follow.
func (l *Ledger) unnamed(b *board, at int64) bool {
	return b.open != 0 && b.until == b.first && !b.virtual && !b.restored && at-b.until <= l.cfg.AllocationTTL/2 &&
		b.class.Model == "" && b.opened.Model == "" && b.next == nil && b.matched == len(b.current.points())
}

// gap credits what lies between the last snapshot and the open one, by its length.
func (l *Ledger) gap(b *board) {
	if b.until == 0 {
		b.first = b.open
		return
	}
	switch length := b.open - b.until; {
	case length > l.cfg.CloseAfter:
		// The account was closed a day after its last point, whether or not it is seen now.
		l.end(b)
		b.first, b.until = b.open, b.open
	case length <= l.cfg.AllocationTTL && !b.restored:
		l.credit(b, b.open, NumStates)
	case length <= l.cfg.Bridge && !b.absent && b.sameOwners():
		if !b.virtual {
			l.counts.Bridged += length
		}
		l.credit(b, b.open, NumStates)
	default:
		l.credit(b, b.open, Unknown)
	}
}

// sameOwners reports whether the open snapshot has the parts of the last one, with the
// same owners.
func (b *board) sameOwners() bool {
	if b.next == nil {
		return true
	}
	was, is := b.current.points(), b.next.parts
	if len(was) != len(is) {
		return false
	}
	for i := range is {
		if !slices.ContainsFunc(was, func(q part) bool {
			return q.id == is[i].id && q.state == is[i].state && q.share == is[i].share && q.owner.same(is[i].owner)
		}) {
			return false
		}
	}
	return true
}
