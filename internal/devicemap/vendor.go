// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/exporterlabels"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Vendor is what the mapping must know of a vendor's exporter. Its functions do no
// I/O and keep nothing: what they need from page to page is in a Derivation.
type Vendor struct {
	// Name is the receiver's type, such as dcgm.
	Name string
	// HwVendor is the value of hw.vendor.
	HwVendor string
	// System is what the exporter's families are of, in texts: DCGM.
	System string
	// Devices is what boards and their parts are called, in texts: GPUs and MIG instances.
	Devices string
	// Prefixes begin the families that are about devices. Others are those of the
	// exporter's process.
	Prefixes []string
	// Family is the name in the table of a family that may be printed with a prefix or in
	// another case. nil: as it is printed.
	Family func(name string) string
	// EmptyIsDown sets gpu.exporter.up to 0 for a page without any device.
	EmptyIsDown bool

	Table  *devicetable.Table
	Memory Memory
	Shares *Shares // nil where no version of the exporter prints any
	Moving Moving

	// Absent reports whether v, as printed on the page, means that there is no value.
	// The field is nil for a family that is not in the table. nil: no value does.
	Absent func(f *devicetable.Field, v float64) bool
	// Unmapped is the metric's name for a family or a label-type field that is not in
	// the table.
	Unmapped func(family string) string
	// Falls reports whether the values of a family that is not in the table can fall
	// although the exporter types it counter. nil: none do.
	Falls func(family string) bool

	// OnlyDevices refuses rows that name no device as no_device, those of unknown families
	// included: everything that the exporter prints of the vendor is about a device.
	OnlyDevices bool
	// Counted are fields without a device: how many devices, parts instead of their board,
	// the exporter has.
	Counted []devicetable.ID

	// Evidence returns what the name of a family, or of a label-type field, shows of what the
	// ambiguous families of its page mean. nil: nothing.
	Evidence func(name string) Evidence
	// Meaning decides what they mean, given the evidence of a page, and that of the last page
	// that had values to decide by. why describes a contradiction.
	Meaning func(now, before Evidence) (m Meaning, why string)

	// Identify finds the device that labels are about: the hw.id of the board, "" where
	// they name none, and the number of the board's part, "" for the board itself.
	Identify func(labels iter.Seq2[string, string]) (board, part string)
	// Survey, instead of Identify, looks at the labels of a whole page before its rows are
	// read. previous is the Survey that stood before, nil at first.
	Survey func(previous any, labels iter.Seq[*Labels]) Survey
	// Lesser reports whether rows with these labels give way to others of the device: sums
	// and means that an exporter prints beside what they are of. nil: none do.
	Lesser func(labels *Labels) bool
	// PartID is the hw.id of a part.
	PartID func(board, part string) string
	// Part has the resource attributes of a part.
	Part PartAttributes

	// Holders is the resource attribute with the owners of a shared device, by default
	// names.DeviceHolders.
	Holders string

	// HeldWhole: a board is given away as a whole. The labels of an owner on the rows of its
	// parts are the board's, and not the parts' own.
	HeldWhole bool

	// Label classifies a label by its key, whatever its spelling.
	Label func(key string) exporterlabels.Label
	// AbsentText reports whether the text of a label, which is not empty, stands for no
	// value. nil: none does.
	AbsentText func(text string) bool
	// PodNeedsContainer: on a row that a scraper passed on (with job or instance), a pod
	// without a container is the exporter's own, and owns nothing.
	PodNeedsContainer bool
	// Facts are the label-type fields, and labels of a claim, that describe the device.
	Facts map[string]Fact
	// PodLabel reports whether a label that Label takes for none of its own is a label
	// of the owner's pod. nil: none is.
	PodLabel func(key string) bool

	// Settle is called for each board of a page once all rows are read, before anything is
	// written. It decides what takes several readings or several devices: limits, means
	// and sums over parts, and facts. Where it is nil, the memory of a board is that of its
	// parts.
	Settle func(board *Device)
	// Derive returns the derivation of a new device. nil: there is nothing to derive.
	Derive func() Derivation
}

// Evidence is a set of what a page shows of what its ambiguous families mean, see
// devicetable.Variant.
type Evidence uint8

const (
	// Fraction: a value of theirs has a decimal point, or is between 0 and 1.
	Fraction Evidence = 1 << iota
	// AboveOne: a value of theirs is above 1.
	AboveOne
	// VendorEvidence is the first of those that are the vendor's own.
	VendorEvidence
)

// Meaning is the unit of the values of ambiguous families.
type Meaning uint8

const (
	Contradictory Meaning = iota // none of the values is data
	Undecided                    // only 0 is, which is 0 in both units
	OwnUnit                      // of the field
	OtherUnit                    // of the variant
)

// Derivation writes the points of one device that take more than one field, more than
// a value, or a memory of the pages before. It belongs to one device of one exporter,
// and keeps that memory.
type Derivation interface {
	Write(d *Device, w *Writer)
}

// Memory are the fields of a device's memory, in bytes once converted. Of each the
// first on the page counts.
type Memory struct {
	Used, Total, Free, Reserved []devicetable.ID
	// Bounded refuses a usage above 1.05 times the limit.
	Bounded bool
}

// Shares are the fields of which the exporter may print each owner's share of a shared
// device, under the same family.
type Shares struct{ Memory, Utilization devicetable.ID }

// Moving are the fields by which an exporter that repeats old values is found.
type Moving struct {
	Energy []devicetable.ID // rise always on a board that measures them
	Clocks []devicetable.ID // mostly differ
	// MustMove is for fields that stand still on some boards: only what moved once is
	// frozen.
	MustMove bool
}

// PartAttributes are the keys of resource attributes; empty for those that the
// vendor's parts do not have.
type PartAttributes struct{ Number, Profile, UUID string }

// OverDevices is the limit of a page with too many devices.
func (v *Vendor) OverDevices() Over { return OverLimit(MaxDevices, v.Devices) }

// ours reports whether a family is about devices.
func (v *Vendor) ours(family string) bool {
	return slices.ContainsFunc(v.Prefixes, func(p string) bool { return strings.HasPrefix(family, p) })
}

func (v *Vendor) holders() string { return cmp.Or(v.Holders, names.DeviceHolders) }

// counts reports whether a family's rows count devices.
func (v *Vendor) counts(f *Family) bool { return f.field != nil && slices.Contains(v.Counted, f.id) }

func (v *Vendor) evidence(name string) Evidence {
	if v.Evidence == nil {
		return 0
	}
	return v.Evidence(name)
}

func (v *Vendor) absent(f *devicetable.Field, x float64) bool {
	return v.Absent != nil && v.Absent(f, x)
}

func (v *Vendor) absentText(text string) bool {
	return text == "" || v.AbsentText != nil && v.AbsentText(text)
}

func (v *Vendor) podLabel(key string) bool { return v.PodLabel != nil && v.PodLabel(key) }

// monotonic reports whether a family that is not in the table becomes a monotonic sum.
func (v *Vendor) monotonic(f *Family) bool {
	return f.Type == Counter && (v.Falls == nil || !v.Falls(f.name))
}

// unmappedLabel reports whether a label stays on the points of an unmapped family.
// Without a device the device's index is all that distinguishes rows.
func (v *Vendor) unmappedLabel(key, device string) bool {
	switch v.Label(key) {
	case exporterlabels.Other:
		return key != names.HwID && (device == "" || !v.podLabel(key))
	case exporterlabels.Index, exporterlabels.Device:
		return device == ""
	default:
		return false
	}
}

// check reports whether x is a value at all, or else why not; f is nil for a family that
// is not in the table.
func (v *Vendor) check(x float64, f *devicetable.Field) (Reason, bool) {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return NotANumber, false
	case v.absent(f, x):
		return Sentinel, false
	case f == nil:
		return 0, true
	case x < 0 && !f.Signed:
		return Negative, false
	case x == 0 && f.ZeroIsAbsent:
		return NoSensor, false
	case f.Bounds != devicetable.NoBounds:
		_, plausible := f.Bounds.Within(f.Convert(x))
		return Implausible, plausible
	case f.Convert(x) >= beyondInt:
		return Implausible, false // all bits set, or worse: a count would become negative
	}
	return 0, true
}

// beyondInt is the least value that no point with an integer can have.
const beyondInt = 1 << 63

// HasValue reports whether x is a value of the series at all, as Map decides it.
func (v *Vendor) HasValue(s *Series, x float64) bool {
	_, ok := v.Check(s, x)
	return ok
}

// Check is HasValue with the reason for which x is not one.
func (v *Vendor) Check(s *Series, x float64) (Reason, bool) { return v.check(x, s.family.field) }

// Reason is the name of a reason in the receiver's own metrics.
func (v *Vendor) Reason(r Reason) string {
	if r == NotVendor {
		return reasonNames[r] + v.Name
	}
	return reasonNames[r]
}
