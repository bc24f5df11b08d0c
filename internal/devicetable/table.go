// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicetable

import (
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// ID is a field's place in Table.Fields.
type ID int

// Series is one OpenTelemetry series of a device that takes its value from a field as
// it is.
type Series struct {
	Metric *names.Metric
	// Attribute of the points beside hw.id; empty where the metric has none.
	Key, Value string
	// Second attribute, for hw.gpu.io.
	Key2, Value2 string
	// From are the fields that can give the value; the first on the page does.
	From []ID
	// Row is the text of the row that gives the value, of fields with a Label.
	Row string
	// RowKey, instead of Row, makes one point of every row that has a text, with the text
	// as this attribute; "a,b" makes two of the texts of two labels. Where a field has no
	// row with a text, the next one counts.
	RowKey string
	// Unless keeps the series away where one of these fields is on the page.
	Unless []ID
}

// Derived is a metric computed from more than one field, or from more than its value.
// Code makes them, and the documentation describes how.
type Derived struct {
	Metric *names.Metric
	From   []ID
	// Keys are the attributes of the points beside hw.id.
	Keys []string
	// Rule describes in one sentence how the values are computed.
	Rule string
}

// Table is what a vendor's exporter prints and what becomes of it. It is not changed
// after New.
type Table struct {
	// Fields are the known fields, indexed by ID.
	Fields []Field
	// Series holds the series of one metric next to each other, in the order in which
	// they are emitted.
	Series []Series
	// Derived are all metrics of a device that are not in Series.
	Derived []Derived
	// Dropped are families that are counted and not passed on: others have the same
	// value, or it has no meaning outside of the exporter.
	Dropped []string
	// Passed are families that no series is made of, and that are known: their names are like
	// those of fields, and they are none of these with another name.
	Passed []string

	byName  map[string]Named
	dropped map[string]bool
	passed  map[string]bool
	means   []ID
	ofRows  []ID

	quantities []Quantity
}

// Named is what a family of a name is.
type Named struct {
	ID ID
	// Field has the unit that the page has under this name.
	Field *Field
	// Or is the field in the other unit that an ambiguous name may have, else nil.
	Or *Field
	// Prefer orders the names of one field that a page has at once: the highest counts.
	Prefer uint8
	// Row is the text of the rows of a field that is Numbered.
	Row string
}

const (
	coarser uint8 = iota
	ownName
	finer
)

// New returns the table with its names indexed. It panics where one name has two
// meanings, which is a mistake in the table.
func New(t Table) *Table {
	t.byName, t.dropped, t.passed = map[string]Named{}, map[string]bool{}, map[string]bool{}
	t.means, t.ofRows = nil, nil
	t.leaveOut()
	for id := range t.Fields {
		f := &t.Fields[id]
		if f.Glitches && f.Signed {
			panic("a counter that falls below 0: " + f.Name)
		}
		if f.Several == Mean {
			t.means = append(t.means, ID(id))
		}
		if f.MeanOfRows {
			t.ofRows = append(t.ofRows, ID(id))
		}
		if f.Computed || f.Lacking {
			continue
		}
		if f.Bounds == NoBounds {
			f.Bounds = unitBounds(f.Unit)
		}
		t.name(ID(id))
	}
	for _, s := range t.Series {
		s.check(t.Fields)
	}
	for _, name := range t.Dropped {
		if _, taken := t.byName[name]; taken {
			panic("a field and a dropped family: " + name)
		}
		t.dropped[name] = true
	}
	for _, name := range t.Passed {
		if _, taken := t.byName[name]; taken || t.dropped[name] {
			panic("a field and a passed family: " + name)
		}
		t.passed[name] = true
	}
	t.quantities = t.findQuantities()
	return &t
}

// name indexes the names of a field.
func (t *Table) name(id ID) {
	f := &t.Fields[id]
	for _, name := range append([]string{f.Name}, f.Aliases...) {
		t.index(name, Named{ID: id, Field: f, Prefer: ownName})
	}
	for _, v := range f.Variants {
		named := Named{ID: id, Field: f.as(v), Prefer: coarser}
		switch {
		case v.Ambiguous:
			named.Field, named.Or = f, named.Field
		case v.Finer:
			named.Prefer = finer
		}
		f.step = max(f.step, v.Step)
		t.index(v.Name, named)
	}
}

func (t *Table) index(name string, n Named) {
	if n.Field.Numbered > 0 && n.Row == "" {
		for i := range n.Field.Numbered {
			n.Row = strconv.Itoa(i)
			t.index(strings.Replace(name, "%d", n.Row, 1), n)
		}
		return
	}
	if _, taken := t.byName[name]; taken || name == "" {
		panic("the name of two fields, or of none: " + name)
	}
	t.byName[name] = n
}

// leaveOut takes the fields away that are Lacking, from series and rules of a list that
// several sources share.
func (t *Table) leaveOut() {
	lacking := func(id ID) bool { return t.Fields[id].Lacking }
	if !slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Lacking }) {
		return
	}
	var series []Series
	for _, s := range t.Series {
		s.From = slices.DeleteFunc(slices.Clone(s.From), lacking)
		s.Unless = slices.DeleteFunc(slices.Clone(s.Unless), lacking)
		if len(s.From) > 0 {
			series = append(series, s)
		}
	}
	var derived []Derived
	for _, d := range t.Derived {
		some := len(d.From) > 0
		if d.From = slices.DeleteFunc(slices.Clone(d.From), lacking); !some || len(d.From) > 0 {
			derived = append(derived, d)
		}
	}
	t.Series, t.Derived = series, derived
}

// check panics where a series of rows takes its value from a field without rows, or the
// other way round.
func (s *Series) check(fields []Field) {
	for _, id := range s.From {
		f := &fields[id]
		switch {
		case s.Row != "" && s.RowKey != "":
			panic("one row and all of them: " + s.Metric.Name)
		case f.MeanOfRows && s.Row == "" && s.RowKey == "":
		case (s.Row != "" || s.RowKey != "") != (f.Label != ""):
			panic("a series of rows and a field without, or the other way round: " + s.Metric.Name + " from " + f.Name)
		case s.RowKey != "" && strings.Count(s.RowKey, ",") != strings.Count(f.Label, ","):
			panic("not as many attributes as labels: " + s.Metric.Name + " from " + f.Name)
		}
	}
}

// Means are the fields of which the mean of several rows counts.
func (t *Table) Means() []ID { return t.means }

// MeansOfRows are the fields of which the value is the mean of their rows.
func (t *Table) MeansOfRows() []ID { return t.ofRows }

// ByName finds the field of a family by any of its names.
func (t *Table) ByName(family string) (ID, bool) {
	n, ok := t.byName[family]
	return n.ID, ok
}

// Named finds the field of a family by any of its names, in the unit of that name.
func (t *Table) Named(family string) (Named, bool) {
	n, ok := t.byName[family]
	return n, ok
}

// Passes reports whether a family is one of Passed.
func (t *Table) Passes(family string) bool { return t.passed[family] }

// Drops reports whether a family is one of Dropped.
func (t *Table) Drops(family string) bool { return t.dropped[family] }
