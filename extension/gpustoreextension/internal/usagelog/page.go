// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package usagelog

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"
	"unique"

	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// key is a usage.Key that is in memory once, whatever the number of pages with it.
type key = unique.Handle[usage.Key]

// page is the rows of one file: the hours of a UTC day, or the days of a month. It is
// either open for changes, with cells, or packed.
type page struct {
	period
	keys   []key
	index  map[key]uint32 // of keys; nil while packed
	cells  map[cell]row   // nil while packed
	packed []byte         // nil while open
	count  int            // of cells
	oldest uint8          // slot with cells
	newest uint8

	dirty map[cell]struct{} // not on disk as they are now
	// What is on disk: whole lines, their size, how many of them are rows, and the keys
	// that have a line. The file has to be written whole where lines of it are damaged.
	bytes    int64
	lines    int
	keyLines int
	damaged  bool
}

// period is what a page is of.
type period struct {
	start time.Time
	days  bool // it has the days of a month, otherwise the hours of a day
}

// cell is a place in a page. In days, hours of which the carbon dioxide is not known are
// added up apart from the others.
type cell struct {
	slot    uint8
	unknown bool
	key     uint32
}

// row is what is kept of a usage.Row beside its key and time.
type row struct {
	revision uint32
	flags    uint8
	usage.Amounts
}

const (
	contested = 1 << iota
	boardMetered
	estimated
	marginal
	flagBits = iota
)

func dayOf(t time.Time) period { return period{start: t.UTC().Truncate(24 * time.Hour)} }

func monthOf(t time.Time) period {
	year, month, _ := t.UTC().Date()
	return period{start: time.Date(year, month, 1, 0, 0, 0, 0, time.UTC), days: true}
}

// slot is the place of a time in the period.
func (p period) slot(t time.Time) uint8 { return uint8(t.Sub(p.start) / p.step()) }

func (p period) at(slot uint8) time.Time { return p.start.Add(time.Duration(slot) * p.step()) }

func (p period) step() time.Duration {
	if p.days {
		return 24 * time.Hour
	}
	return time.Hour
}

func (p period) end() time.Time {
	if p.days {
		return p.start.AddDate(0, 1, 0)
	}
	return p.start.Add(24 * time.Hour)
}

// slots is how many there are.
func (p period) slots() int { return int(p.end().Sub(p.start) / p.step()) }

func newPage(p period) *page {
	return &page{period: p, index: map[key]uint32{}, cells: map[cell]row{}, dirty: map[cell]struct{}{}}
}

// number returns the number of a key in an open page.
func (p *page) number(k key) uint32 {
	n, found := p.index[k]
	if !found {
		n = uint32(len(p.keys))
		p.keys = append(p.keys, k)
		p.index[k] = n
	}
	return n
}

// has reports whether the page has a row of a key and hour. It is open afterwards.
func (p *page) has(k key, hour time.Time) bool {
	p.unpack()
	n, is := p.index[k]
	if is {
		_, is = p.cells[cell{slot: p.slot(hour), key: n}]
	}
	return is
}

// put sets a cell of an open page.
func (p *page) put(at cell, r row) {
	p.cells[at] = r
	p.count = len(p.cells)
	if p.count == 1 {
		p.oldest = at.slot
	}
	p.oldest, p.newest = min(p.oldest, at.slot), max(p.newest, at.slot)
}

// hasSlot reports whether the page has a row of a slot.
func (p *page) hasSlot(slot uint8) bool {
	for at := range cellsOf(p.packedCells()) {
		if at.slot >= slot {
			return at.slot == slot
		}
	}
	return false
}

// sorted are the cells of an open page in their order.
func (p *page) sorted() []cell { return inOrder(p.cells) }

func inOrder[V any](cells map[cell]V) []cell {
	all := make([]cell, 0, len(cells))
	for at := range cells {
		all = append(all, at)
	}
	slices.SortFunc(all, func(a, b cell) int { return cmp.Compare(a.order(), b.order()) })
	return all
}

func (c cell) order() uint64 {
	order := uint64(c.slot)<<40 | uint64(c.key)<<1
	if c.unknown {
		order++
	}
	return order
}

// pack ends changes of the page.
func (p *page) pack() {
	if p.cells == nil || len(p.dirty) > 0 {
		return
	}
	p.packed = slices.Clip(p.packedCells())
	p.keys = slices.Clip(p.keys)
	p.cells, p.index, p.dirty = nil, nil, nil
}

// unpack opens the page for changes.
func (p *page) unpack() {
	if p.cells != nil {
		return
	}
	p.cells, p.dirty, p.index = make(map[cell]row, p.count), map[cell]struct{}{}, make(map[key]uint32, len(p.keys))
	for n, k := range p.keys {
		p.index[k] = uint32(n)
	}
	for at, r := range cellsOf(p.packed) {
		p.cells[at] = r
	}
	p.packed = nil
}

// packedCells are the cells in their order as bytes: about 30 for each.
func (p *page) packedCells() []byte {
	if p.cells == nil {
		return p.packed
	}
	text := make([]byte, 0, 32*len(p.cells))
	before := uint64(0)
	for _, at := range p.sorted() {
		order := at.order()
		text = binary.AppendUvarint(text, order-before)
		before = order
		r := p.cells[at]
		text = binary.AppendUvarint(text, uint64(r.revision)<<flagBits|uint64(r.flags))
		for _, n := range r.numbers() {
			text = binary.AppendUvarint(text, uint64(n))
		}
	}
	return text
}

// cellsOf are the cells of packedCells.
func cellsOf(packed []byte) func(yield func(cell, row) bool) {
	return func(yield func(cell, row) bool) {
		order := uint64(0)
		next := func() uint64 {
			v, n := binary.Uvarint(packed)
			packed = packed[n:]
			return v
		}
		for len(packed) > 0 {
			order += next()
			var r row
			head := next()
			r.revision, r.flags = uint32(head>>flagBits), uint8(head&(1<<flagBits-1))
			var numbers [9]int64
			for i := range numbers {
				numbers[i] = int64(next())
			}
			r.setNumbers(numbers)
			if !yield(cell{slot: uint8(order >> 40), unknown: order&1 == 1, key: uint32(order >> 1 & (1<<32 - 1))}, r) {
				return
			}
		}
	}
}

// numbers are the amounts, none below 0: Carbon is one more than it is.
func (r *row) numbers() [9]int64 {
	return [...]int64{r.Time, r.Used, r.Idle, r.Unmeasured, r.Unplaced, r.Energy[0], r.Energy[1], r.Energy[2], r.Carbon + 1}
}

func (r *row) setNumbers(n [9]int64) {
	r.Amounts = usage.Amounts{Time: n[0], Used: n[1], Idle: n[2], Unmeasured: n[3], Unplaced: n[4], Energy: [3]int64(n[5:8]), Carbon: n[8] - 1}
}

// add adds an hour to a day.
func (r *row) add(hour row) {
	sum, more := r.numbers(), hour.numbers()
	for i := range sum[:8] {
		sum[i] += more[i]
	}
	if hour.Carbon >= 0 { // and so is r's
		sum[8] += hour.Carbon
	}
	r.setNumbers(sum)
	r.flags |= hour.flags
	r.revision = 1
}

// rowOf takes what is kept of a row.
func rowOf(u *usage.Row) row {
	r := row{revision: u.Revision, Amounts: u.Amounts}
	for i, is := range [flagBits]bool{u.Contested, u.BoardMetered, u.Estimated, u.Marginal} {
		if is {
			r.flags |= 1 << i
		}
	}
	return r
}

// view is the rows of a page as they are at a time.
type view struct {
	period
	keys   []key
	packed []byte
}

func (p *page) view() view { return view{p.period, p.keys[:len(p.keys):len(p.keys)], p.packedCells()} }

// each calls f with the rows that match, of hours that begin in [from, to) and of days that
// overlap it. The row holds during the call.
func (v *view) each(from, to time.Time, match func(*usage.Key) bool, f func(*usage.Row)) {
	keys := make([]usage.Key, len(v.keys))
	wanted := make([]bool, len(v.keys))
	for i, k := range v.keys {
		keys[i] = k.Value()
		wanted[i] = match == nil || match(&keys[i])
	}
	if v.days {
		from = from.Add(1 - v.step())
	}
	u := usage.Row{Day: v.days}
	for at, r := range cellsOf(v.packed) {
		u.Hour = v.at(at.slot)
		if !wanted[at.key] || u.Hour.Before(from) || !u.Hour.Before(to) {
			continue
		}
		u.Key, u.Revision, u.Amounts = keys[at.key], r.revision, r.Amounts
		u.Contested, u.BoardMetered = r.flags&contested != 0, r.flags&boardMetered != 0
		u.Estimated, u.Marginal = r.flags&estimated != 0, r.flags&marginal != 0
		f(&u)
	}
}

// copy is an open page with the same rows, of which nothing is on disk.
func (p *page) copy() *page {
	c := &page{period: p.period, keys: p.keys[:len(p.keys):len(p.keys)], packed: p.packedCells(), count: p.count, oldest: p.oldest, newest: p.newest}
	c.unpack()
	return c
}
