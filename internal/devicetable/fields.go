// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package devicetable is the table of DCGM fields: what each is called in every
// version of DCGM and dcgm-exporter, what it holds in truth, and which
// OpenTelemetry series it becomes. Code, tests and documentation read it; the
// documentation is generated from it.
//
// Units, types and entity levels are those of DCGM's dcgm_fields.h and
// dcgm_fields.cpp (4.6). They are the field's true ones: the TYPE and HELP lines
// of a page are only what somebody wrote into the exporter's counters file.
package devicetable

// Type is DCGM's storage type of a field. It decides which values are sentinels.
type Type uint8

const (
	// Int64 fields are printed as integers.
	Int64 Type = iota
	// Double fields are printed with six decimals.
	Double
)

// Scope says which entity a field belongs to on a GPU in MIG mode.
type Scope uint8

const (
	// Instance fields have a value of their own on every MIG instance.
	Instance Scope = iota
	// Board fields exist once a board. dcgm-exporter repeats the board's value
	// on every instance's series.
	Board
)

// Field is one DCGM field.
type Field struct {
	// Name is the family's name that most exporters print.
	Name string
	// Aliases are its other names: DCGM 4.6 renamed many fields without changing
	// their values, and DCGM 1.x used lower case.
	Aliases []string
	// Number is the id in dcgm_fields.h, 0 for a family of the exporter's own.
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

// ID is a field's place in All.
type ID int

// All are the known fields, indexed by ID.
var All []Field

var byName = map[string]ID{}

// ByName finds the field of a family by any of its names.
func ByName(family string) (ID, bool) {
	id, ok := byName[family]
	return id, ok
}

func add(f Field) ID {
	id := ID(len(All))
	All = append(All, f)
	for _, name := range append([]string{f.Name}, f.Aliases...) {
		if _, taken := byName[name]; taken {
			panic("two fields are named " + name)
		}
		byName[name] = id
	}
	return id
}
