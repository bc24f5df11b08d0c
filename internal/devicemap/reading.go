// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
)

// Reading is the value of one field of one device on a page.
type Reading struct {
	V    float64 // in the base unit
	rank rank
}

// rank orders rows of one field for one device: the higher one wins.
type rank uint8

const (
	rankNone  rank = iota
	rankPart       // board field on the row of one of its parts
	rankOwner      // row that names an owner: one of several on a shared device
	rankOwn        // the device's own row
)

// Known reports whether the page has a value.
func (x Reading) Known() bool { return x.rank != rankNone }

// offer keeps the better of what is there and the new row: rank, then the
// greater. A code is not a quantity: the last row wins.
func (x *Reading) keepBetter(v float64, r rank, code bool) {
	if r < x.rank || r == x.rank && !code && v < x.V {
		return
	}
	*x = Reading{V: v, rank: r}
}

// readings are those of one device, by devicetable.ID.
type readings []Reading

// first is the first of some fields that is on the page.
func (r readings) first(ids []devicetable.ID) Reading {
	for _, id := range ids {
		if r[id].rank != rankNone {
			return r[id]
		}
	}
	return Reading{}
}

// labelled are the rows of families with a label of their own, by that label.
type labelled map[devicetable.ID]map[string]Reading

func (l *labelled) keepBetter(id devicetable.ID, text string, v float64, r rank) {
	if *l == nil {
		*l = labelled{}
	}
	rows := (*l)[id]
	if rows == nil {
		rows = map[string]Reading{}
		(*l)[id] = rows
	}
	x := rows[text]
	x.keepBetter(v, r, false)
	rows[text] = x
}

// Cumulative turns the readings of a cumulative counter into a start time. No exporter
// prints when a counter began, so it starts with the first reading, and again with each
// reading that is smaller than the one before (a reset).
type Cumulative struct {
	Start pcommon.Timestamp // 0 before the first reading
	last  float64
}

// Observe takes a reading and returns the start time of the counter.
func (c *Cumulative) Observe(v float64, t pcommon.Timestamp) (start pcommon.Timestamp) {
	if c.Start == 0 || v < c.last || t < c.Start {
		c.Start = t
	}
	c.last = v
	return c.Start
}

// memoryLimit is the size of a device's memory in bytes. What is reserved may be a part
// of neither the used nor the free memory; where it is not known, it is of one of them.
func (r readings) memoryLimit(m *Memory) (float64, bool) {
	if total := r.first(m.Total); total.rank != rankNone {
		return total.V, true
	}
	used, free := r.first(m.Used), r.first(m.Free)
	if used.rank == rankNone || free.rank == rankNone {
		return 0, false
	}
	return used.V + free.V + r.first(m.Reserved).V, true
}

// sumParts gives a board the memory of its parts where the page has no row of its own
// for it, so that sums over physical devices hold. A part without a value would make
// the sum too small: then there is none.
func (d *Device) sumParts(m *Memory, page uint64) {
	if len(d.parts) == 0 || d.values.first(m.Used).rank != rankNone {
		return
	}
	var usage, limit, reserved float64
	onPage := 0
	hasUsage, hasLimit, hasReserved := true, true, true
	for _, p := range d.parts {
		if p.seen != page {
			continue
		}
		onPage++
		u, r := p.values.first(m.Used), p.values.first(m.Reserved)
		l, limited := p.values.memoryLimit(m)
		usage, limit, reserved = usage+u.V, limit+l, reserved+r.V
		hasUsage = hasUsage && u.rank != rankNone
		hasReserved = hasReserved && r.rank != rankNone
		hasLimit = hasLimit && limited
	}
	set := func(ids []devicetable.ID, v float64, ok bool) {
		if ok && onPage > 0 && len(ids) > 0 {
			d.values[ids[0]].keepBetter(v, rankPart, false)
		}
	}
	set(m.Used, usage, hasUsage)
	set(m.Total, limit, hasLimit)
	set(m.Reserved, reserved, hasReserved)
}
