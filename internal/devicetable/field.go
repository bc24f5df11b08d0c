// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package devicetable has the types of a vendor's field table: what each field of
// its exporter is called in every version, what it really holds, and which
// OpenTelemetry series it becomes. Code, tests and documentation read the table; the
// documentation is generated from it.
package devicetable

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
)

// Field is one field of an exporter.
type Field struct {
	// Name is the family's name that most versions of the exporter print.
	Name string
	// Aliases are its names in other versions, for the same value.
	Aliases []string
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
	// Label names the family's own label where one device has several rows.
	Label string
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
