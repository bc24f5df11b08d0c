// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
)

// Parts are the parts of a board that the page has, in the order of their numbers.
func (d *Device) Parts() []*Device {
	var parts []*Device
	for _, p := range d.parts {
		if p.seen == d.seen {
			parts = append(parts, p)
		}
	}
	slices.SortFunc(parts, func(a, b *Device) int { return compareNumbers(a.part, b.part) })
	return parts
}

// KnownParts is how many parts the board had within the last minutes, of which the page
// may lack some.
func (d *Device) KnownParts() int { return len(d.parts) }

// compareNumbers orders texts of numbers by their size.
func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// Survey is that of the page, nil where the vendor makes none.
func (d *Device) Survey() Survey {
	if d.of == nil {
		return nil
	}
	return d.of.survey.survey
}

// ID is the hw.id of the device.
func (d *Device) ID() string { return d.id }

// Part is the number of a part, empty for a board.
func (d *Device) Part() string { return d.part }

// Set gives a field a value, in the base unit.
func (d *Device) Set(id devicetable.ID, v float64) {
	d.values[id] = Reading{V: v, rank: rankOwn}
}

// SetRow gives a row of a field with a label a value, in the base unit.
func (d *Device) SetRow(id devicetable.ID, text string, v float64) {
	d.labelled.rows(id)[text] = Reading{V: v, rank: rankOwn}
}

// meanOfRows gives a field the mean of its rows, added in the order of their texts: a sum of
// the same numbers in another order can be another one.
func (d *Device) meanOfRows(id devicetable.ID) {
	rows := d.labelled[id]
	if len(rows) == 0 {
		return
	}
	sum := 0.
	for _, text := range slices.Sorted(maps.Keys(rows)) {
		sum += rows[text].V
	}
	d.Set(id, sum/float64(len(rows)))
}

// Clear takes the values of a field away.
func (d *Device) Clear(id devicetable.ID) {
	d.values[id] = Reading{}
	clear(d.labelled[id])
}

// Refuse takes the values of a field away and counts them.
func (d *Device) Refuse(id devicetable.ID, why Reason) {
	n := len(d.labelled[id])
	if d.values[id].Known() {
		n++
	}
	d.Count(why, n)
	d.Clear(id)
}

// RefuseZeros takes all values away that are 0, those of unknown families included, and
// counts them: those of a device of which all readings failed.
func (d *Device) RefuseZeros(why Reason) {
	n := 0
	for id := range d.values {
		if x := &d.values[id]; x.Known() && x.V == 0 {
			*x = Reading{}
			n++
		}
	}
	for _, rows := range d.labelled {
		for text, x := range rows {
			if x.V == 0 {
				delete(rows, text)
				n++
			}
		}
	}
	d.raw = slices.DeleteFunc(d.raw, func(p rawPoint) bool {
		failed := !p.asIs && p.v == 0
		if failed {
			n++
		}
		return failed
	})
	d.Count(why, n)
}

// RefuseBoardZeros takes the fields of a board away that are 0, or have a row that is 0, and
// counts them: those of a board of which the parts print 0 for what they do not have.
func (d *Device) RefuseBoardZeros(why Reason, except devicetable.ID) {
	for i := range d.of.vendor.Table.Fields {
		id := devicetable.ID(i)
		if d.of.vendor.Table.Fields[i].Scope != devicetable.Board || id == except {
			continue
		}
		zero := d.values[id].Known() && d.values[id].V == 0
		for _, x := range d.labelled[id] {
			zero = zero || x.V == 0
		}
		if zero {
			d.Refuse(id, why)
		}
	}
}

// Count counts rows that became no data.
func (d *Device) Count(why Reason, rows int) {
	if d.of != nil {
		d.of.page.refused[why] += rows
	}
}

// Fact is a text that describes the device, empty where it is not known.
func (d *Device) Fact(f Fact) string { return d.facts.text[f] }

// SetFact replaces a text that describes the device.
func (d *Device) SetFact(f Fact, text string) { d.facts.text[f] = text }

// SumParts gives a board without a memory of its own that of its parts, for a Settle.
func (d *Device) SumParts() { d.sumParts(&d.of.vendor.Memory, d.seen) }

// sumParts gives a board the memory of its parts where the page has no row of its own
// for it, so that sums over physical devices hold. A part without a value would make
// the sum too small: then it is absent.
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
			d.values[ids[0]].keepBetter(Reading{V: v, rank: rankPart}, false)
		}
	}
	set(m.Used, usage, hasUsage)
	set(m.Total, limit, hasLimit)
	set(m.Reserved, reserved, hasReserved)
}
