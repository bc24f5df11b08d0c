// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
)

// Reading is the value of one field of one device on a page.
type Reading struct {
	V      float64 // in the base unit
	rows   uint32  // more than one: that V is the sum of
	rank   rank
	prefer uint8 // of the name that the row has, see devicetable.Named
}

// rank orders rows of one field for one device: the higher one wins.
type rank uint8

const (
	rankNone      rank = iota
	rankLesser         // a sum or mean that the exporter prints beside what it is of
	rankPart           // board field on the row of one of its parts
	rankFirstPart      // likewise, of the first part, where the first row counts
	rankOwner          // row that names an owner: one of several on a shared device
	rankOwn            // the device's own row
)

// Known reports whether the page has a value.
func (x Reading) Known() bool { return x.rank != rankNone }

// keepBetter keeps the better of what is there and the new row: rank, then the name, then
// the greater. A code is not a quantity: the last row wins.
func (x *Reading) keepBetter(n Reading, code bool) {
	if n.rank < x.rank || n.rank == x.rank && (n.prefer < x.prefer || n.prefer == x.prefer && !code && n.V < x.V) {
		return
	}
	*x = n
}

// add takes a further row of a field. It reports false for a row that is a repetition.
func (x *Reading) add(f *devicetable.Field, n Reading) bool {
	if n.rank != x.rank || n.prefer != x.prefer || f.Several == devicetable.Greatest {
		x.keepBetter(n, f.Code)
		return true
	}
	if f.Several == devicetable.First {
		return false
	}
	x.V += n.V
	x.rows = max(x.rows, 1) + 1
	return true
}

// divide makes the mean of the sum of several rows.
func (x *Reading) divide() {
	if x.rows > 1 {
		x.V, x.rows = x.V/float64(x.rows), 1
	}
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

// rows are the rows of a field.
func (l *labelled) rows(id devicetable.ID) map[string]Reading {
	if *l == nil {
		*l = labelled{}
	}
	rows := (*l)[id]
	if rows == nil {
		rows = map[string]Reading{}
		(*l)[id] = rows
	}
	return rows
}

func (l *labelled) add(id devicetable.ID, f *devicetable.Field, text string, n Reading) bool {
	rows := l.rows(id)
	x := rows[text]
	ok := x.add(f, n)
	rows[text] = x
	return ok
}

// startPage empties the rows. Maps of few rows are kept for the next page.
func (l labelled) startPage() {
	for id, rows := range l {
		if len(rows) > 64 {
			delete(l, id)
			continue
		}
		clear(rows)
	}
}

// Cumulative turns the readings of a cumulative counter into a start time. No exporter
// prints when a counter began, so it starts with the first reading, and again with each
// reading that is smaller than the one before (a reset).
type Cumulative struct {
	Start pcommon.Timestamp // 0 before the first reading
	// last is the last reading; below 0 the last good one, negated, of a counter that has
	// fallen since, see ObserveSteady. There are many of these: another field is noticed.
	last float64
}

// hold returns the last reading where v is less by not more than a step: the page has the
// counter under a name with a coarser unit than before, and it has not fallen.
func (c *Cumulative) hold(v, step float64) float64 {
	if v < c.last && c.last-v < step {
		return c.last
	}
	return v
}

// Observe takes a reading and returns the start time of the counter.
func (c *Cumulative) Observe(v float64, t pcommon.Timestamp) (start pcommon.Timestamp) {
	if c.Start == 0 || v < c.last || t < c.Start {
		c.Start = t
	}
	c.last = v
	return c.Start
}

// ObserveSteady takes a reading of a counter that at times falls and comes back. At the
// first smaller reading nothing is known yet, and ok is false. The next one decides: a
// glitch, if it is not below the reading before the fall, or else a reset. Readings are
// not negative.
func (c *Cumulative) ObserveSteady(v float64, t pcommon.Timestamp) (start pcommon.Timestamp, ok, glitch bool) {
	if c.Start != 0 && v < c.last {
		c.last = -c.last
		return c.Start, false, false
	}
	if c.last < 0 {
		c.last = -c.last
		glitch = v >= c.last
	}
	return c.Observe(v, t), true, glitch
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
