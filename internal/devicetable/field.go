// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package devicetable has the types of a vendor's field table: what each field of
// its exporter is called in every version, what it really holds, and which
// OpenTelemetry series it becomes. Code, tests and documentation read the table; the
// documentation is generated from it.
package devicetable

import (
	"cmp"
	"strings"
)

// Type is how an exporter stores a field. A vendor's sentinels may depend on it.
type Type uint8

const (
	// Int64 fields are printed as integers.
	Int64 Type = iota
	// Double fields are printed with decimals.
	Double
)

// Scope is the device that a field belongs to, where a board is divided into parts:
// MIG instances, partitions, tiles.
type Scope uint8

const (
	// Part fields have a value of their own on every part.
	Part Scope = iota
	// Board fields exist once a board. On the series of a part they are the board's.
	Board
	// Undivided fields exist once a board, and have no value on the series of a part,
	// whatever the exporter prints there.
	Undivided
)

// Several is what the value of a field is where a device has several rows of it.
type Several uint8

const (
	Greatest Several = iota
	Mean
	Sum
	First // further rows are counted as repeated
)

// Bounds are the values, in the base unit, that a field can have.
type Bounds uint8

const (
	NoBounds Bounds = iota
	Ratio           // up to 1.05; what is above 1 is cut to 1
	Percent         // up to 1.005; what is above 1 is cut to 1
	Watts           // up to 10,000
	Celsius         // -50 to 200
	Memory          // below 1 PiB, which no GPU has
	Fan             // up to 2: a fan can turn faster than its nominal speed
	Hertz           // up to 100 GHz
	Word            // below 2^31: codes, flags, lanes and generations
)

// unitBounds returns the bounds of a field that has none of its own, by its unit.
func unitBounds(unit string) Bounds {
	switch unit {
	case "%", "1":
		return Ratio
	case "W":
		return Watts
	case "Cel":
		return Celsius
	case "MHz", "Hz":
		return Hertz
	case "{code}", "flag", "{lane}", "{generation}":
		return Word
	}
	return NoBounds
}

// Within returns the value that v, in the base unit, stands for, and whether a device can
// have it.
func (b Bounds) Within(v float64) (float64, bool) {
	switch b {
	case Ratio:
		return min(v, 1), v <= 1.05
	case Percent:
		return min(v, 1), v <= 1.005
	case Watts:
		return v, v <= 10_000
	case Celsius:
		return v, v >= -50 && v <= 200
	case Memory:
		return v, v < 1<<50
	case Fan:
		return v, v <= 2
	case Hertz:
		return v, v <= 100e9
	case Word:
		return v, v < 1<<31
	default:
		return v, true
	}
}

// Field is one field of an exporter.
type Field struct {
	// Name is the family's name that most versions of the exporter print.
	Name string
	// Aliases are its names in other versions, for the same value.
	Aliases []string
	// Variants are its names in versions that print it in another unit.
	Variants []Variant
	// Numbered is a field with a family for each number from 0 on: so many. Names end with
	// %d, and the number is the text of the row, as if it were the value of Label.
	Numbered int
	// Since is the exporter's first version that prints the field, empty where all do.
	Since string
	// Number is the vendor's number of the field, 0 where it has none.
	Number int
	Type   Type
	Scope  Scope
	// Unit is the unit of the value on the page.
	Unit string
	// Mul and Div convert to the base unit: value * Mul / Div. Division is kept
	// apart because 29 / 100 is 0.29 and 29 * 0.01 is not. 0 stands for 1.
	Mul, Div float64
	// Signed fields may be negative.
	Signed bool
	// ZeroIsAbsent marks fields that print 0 where the board has no sensor.
	ZeroIsAbsent bool
	// Code marks fields that contain no quantity: of several rows the last counts,
	// not the greatest.
	Code bool
	// Several is what becomes of the rows of one device with the same row text.
	Several Several
	// MeanOfRows makes the mean of the rows of a field with a Label its value, which a series
	// without Row takes.
	MeanOfRows bool
	// Bounds refuses values that no device can have. A ratio, a power, a temperature, a
	// frequency or a code without bounds has those of its unit.
	Bounds Bounds
	// Glitches marks a cumulative field that at times falls for one page and comes back.
	// At a smaller value nothing is written for one page; if the next value is below the
	// last good one too, it was a reset.
	Glitches bool
	// Lacking marks a field of a list that several sources share which this one does not have.
	// The table has no series that needs it.
	Lacking bool
	// Computed marks a field that no family prints: Name is a word for the
	// documentation, and only the vendor's Settle gives it a value.
	Computed bool
	// Needs are the fields that a Computed field is made of.
	Needs []ID
	// Label names the family's own label where one device has several rows, or several
	// labels, "location,type". The text of a row is the label's value, or their values
	// joined by ",", empty where the row has none of them.
	Label string

	step float64 // the greatest of its variants
}

// Step is by how much less a counter may be, in the base unit, where a page has it under
// another name than the page before.
func (f *Field) Step() float64 { return f.step }

// Variant is a name of a field under which the page has it in another unit.
type Variant struct {
	Name   string
	Number int
	Type   Type
	Unit   string
	// Mul and Div convert to the base unit.
	Mul, Div float64
	Bounds   Bounds
	// Finer: where a page has the field under both names, this one counts, since it has the
	// finer unit. Else the field's own name and its aliases do.
	Finer bool
	// Step is the unit on the page, in the base unit, of a counter in a coarser unit: when an
	// exporter changes to this name, the value falls by less than a step.
	Step float64
	// Ambiguous is a name under which other versions print the unit of the field itself. The
	// vendor decides for each page.
	Ambiguous bool
}

// as returns the field as the page has it under the name of a variant.
func (f Field) as(v Variant) *Field {
	f.Name, f.Aliases, f.Variants = v.Name, nil, nil
	f.Number, f.Type, f.Unit, f.Mul, f.Div, f.Bounds = v.Number, v.Type, v.Unit, v.Mul, v.Div, cmp.Or(v.Bounds, unitBounds(v.Unit))
	return &f
}

// RowText is the text of a row with the labels of this field, given their values.
func (f *Field) RowText(value func(label string) string) string {
	first, more, several := strings.Cut(f.Label, ",")
	text := value(first)
	if !several {
		return text
	}
	some := text != ""
	for _, label := range strings.Split(more, ",") {
		v := value(label)
		some = some || v != ""
		text += "," + v
	}
	if !some {
		return ""
	}
	return text
}

// Convert turns a value on the page into the base unit.
func (f *Field) Convert(v float64) float64 {
	if f.Mul != 0 {
		v *= f.Mul
	}
	if f.Div != 0 {
		v /= f.Div
	}
	return v
}
