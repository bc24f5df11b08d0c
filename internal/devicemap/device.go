// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Device is a board, or a part of one, of one target.
type Device struct {
	id     string
	parent *Device            // of a part
	parts  map[string]*Device // of a board, by their numbers
	part   string             // number of a part
	facts  facts
	owners owners
	of     *devices // that it is one of, nil once forgotten

	named      uint64            // number of the last page with a row of the device without a value
	blank      bool              // the last page had no other row of it
	seen       uint64            // number of the last page that had the device,
	lastSeen   pcommon.Timestamp // its time,
	seenBefore pcommon.Timestamp // and the time of the page before that one

	// Of the current page:
	learned  *Labels // added last
	evidence Evidence
	values   readings
	labelled labelled
	raw      []rawPoint

	// From page to page:
	starts     []Cumulative // by place in Table.Series
	rowStarts  map[int]rowStarts
	derivation Derivation // nil where the vendor derives nothing
}

// Reading is the current page's value of a field.
func (d *Device) Reading(id devicetable.ID) Reading { return d.values[id] }

// Rows are the current page's rows of a field that has a label of its own, by that
// label, nil where it has none, in the base unit. The text "" is a row without it.
func (d *Device) Rows(id devicetable.ID) map[string]Reading {
	if rows := d.labelled[id]; len(rows) > 0 {
		return rows
	}
	return nil
}

// Derivation is what Vendor.Derive returned for the device.
func (d *Device) Derivation() Derivation { return d.derivation }

// SeenBefore is the time of the page before the last one that had the device, 0 for a
// new device.
func (d *Device) SeenBefore() pcommon.Timestamp { return d.seenBefore }

// devices are the boards and parts of one target.
type devices struct {
	vendor *Vendor
	page   *pageState
	survey *surveyed
	boards map[string]*Device // by hw.id; their parts hang on them
	count  int                // boards and parts together
}

// find returns the device that labels are about, nil when there are too many.
func (ds *devices) find(l *Labels) *Device {
	d := l.device
	if d == nil || d.of != ds {
		if d = ds.findRow(&l.row); d == nil {
			return nil
		}
		l.device = d
	}
	return d
}

func (ds *devices) findRow(r *row) *Device {
	board := ds.boards[r.board]
	if board == nil {
		if board = ds.add(r.board, nil); board == nil {
			return nil
		}
		ds.boards[board.id] = board
	}
	if r.part == "" {
		return board
	}
	part := board.parts[r.part]
	if part == nil {
		if part = ds.add(ds.vendor.PartID(r.board, r.part), board); part == nil {
			return nil
		}
		if board.parts == nil {
			board.parts = map[string]*Device{}
		}
		part.part = strings.Clone(r.part)
		board.parts[part.part] = part
	}
	return part
}

func (ds *devices) add(id string, parent *Device) *Device {
	if ds.count >= MaxDevices {
		return nil
	}
	ds.count++
	d := &Device{
		id:     strings.Clone(id), // not a substring that pins the row's labels
		of:     ds,
		parent: parent,
		values: make(readings, len(ds.vendor.Table.Fields)),
		starts: make([]Cumulative, len(ds.vendor.Table.Series)),
	}
	if ds.vendor.Derive != nil {
		d.derivation = ds.vendor.Derive()
	}
	return d
}

// forget drops the devices that were not on a page for long.
func (ds *devices) forget(now pcommon.Timestamp) {
	old := func(d *Device) bool { return now.AsTime().Sub(d.lastSeen.AsTime()) > forgetAfter }
	for id, board := range ds.boards {
		for number, part := range board.parts {
			if old(part) {
				delete(board.parts, number)
				part.of = nil
				ds.count--
			}
		}
		if old(board) && len(board.parts) == 0 {
			delete(ds.boards, id)
			board.of = nil
			ds.count--
		}
	}
}

// startPage forgets the values of the page before.
func (d *Device) startPage(number uint64, time pcommon.Timestamp) {
	d.seenBefore, d.seen, d.lastSeen = d.lastSeen, number, time
	clear(d.values)
	d.raw = d.raw[:0]
	d.labelled.startPage()
	d.facts, d.learned, d.evidence = facts{}, nil, 0
	d.owners.startPage()
}

func keep(dst *string, v string) {
	if v > *dst {
		*dst = v
	}
}

func (d *Device) learn(r *row) {
	d.evidence |= r.evidence
	for fact, text := range r.facts.text {
		if d.parent != nil || Fact(fact) < PartProfile {
			keep(&d.facts.text[fact], text)
		}
	}
	for k, v := range r.facts.other {
		if d.facts.other == nil {
			d.facts.other = map[string]string{}
		}
		if v > d.facts.other[k] {
			d.facts.other[k] = v
		}
	}
}

// keepValue keeps the value of a row of a known field, on the board where it belongs
// there. It reports false for a row that is a repetition.
func (d *Device) keepValue(s *Series, field *devicetable.Field, v float64) bool {
	f := s.family
	rank := rankOwn
	if !s.labels.row.owner.empty() {
		rank = rankOwner
	}
	if field.Scope == devicetable.Board && d.parent != nil {
		rank = rankPart
		if d.part == "0" && field.Several == devicetable.First {
			rank = rankFirstPart
		}
		d = d.parent
	}
	if s.labels.lesser {
		rank = rankLesser
	}
	v, _ = field.Bounds.Within(field.Convert(v)) // check has refused what is not
	text := f.row
	if field.Label != "" && text == "" {
		text = s.labels.rowText(field)
	}
	if d.of != nil && d.of.vendor.Lesser != nil {
		x := d.values[f.id]
		if field.Label != "" {
			x = d.labelled[f.id][text]
		}
		if x.Known() && (x.rank == rankLesser) != (rank == rankLesser) {
			d.Count(Dropped, 1) // one of the two is
		}
	}
	x := Reading{V: v, rank: rank, prefer: f.prefer}
	if field.Label == "" {
		return d.values[f.id].add(field, x)
	}
	return d.labelled.add(f.id, field, text, x)
}

// anyOf reports whether the page has a value of one of some fields.
func (d *Device) anyOf(ids []devicetable.ID) bool {
	for _, id := range ids {
		if d.values[id].Known() || len(d.labelled[id]) > 0 {
			return true
		}
	}
	return false
}

// putResource writes the identity of the device, and nothing about the exporter.
func (d *Device) putResource(attrs pcommon.Map, vendor *Vendor, opts *Options, node, exporterPod string) {
	attrs.EnsureCapacity(16)
	attrs.PutStr(names.HwID, d.id)
	attrs.PutStr(names.HwType, names.HwTypeGPU)
	attrs.PutStr(names.HwVendor, vendor.HwVendor)
	put := func(key, v string) {
		if v != "" && key != "" {
			attrs.PutStr(key, v)
		}
	}
	putNumber := func(key, v string) {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && key != "" {
			attrs.PutInt(key, n)
		}
	}
	f := &d.facts.text
	put(names.HwModel, f[Model])
	put(names.HwDriverVersion, f[Driver])
	put(names.HwSerialNumber, f[Serial])
	put(names.HwFirmware, f[Firmware])
	putNumber(names.GPUIndex, f[Index])
	putNumber(names.GPUMinor, f[Minor])
	if f[PCIAddress] != "" {
		attrs.PutStr(names.GPUPCIAddress, deviceid.PCIAddress(f[PCIAddress]))
	}
	if d.parent != nil {
		attrs.PutStr(names.HwParent, d.parent.id)
	}
	put(vendor.Part.Profile, f[PartProfile]) // of a board where the vendor settles it
	if d.parent != nil {
		putNumber(vendor.Part.Number, d.part)
		put(vendor.Part.UUID, f[PartUUID])
	}
	for _, k := range slices.Sorted(maps.Keys(d.facts.other)) {
		attrs.PutStr(k, d.facts.other[k])
	}
	if f[Host] != exporterPod { // what a pod without NODE_NAME takes for its host
		put(names.HostName, f[Host])
	}
	put(names.K8sNodeName, node)
	put(names.K8sClusterName, opts.ClusterName)
	if vendor.Shares != nil && opts.OTel {
		d.owners.put(attrs, vendor.holders(), d.values[vendor.Shares.Memory].V, true)
	} else {
		d.owners.put(attrs, vendor.holders(), 0, false)
	}
}
