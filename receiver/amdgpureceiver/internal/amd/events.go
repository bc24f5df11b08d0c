// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// derivation is what is derived of one board, with what it takes of the pages before.
type derivation struct {
	energy struct {
		last        float64
		seen, moved bool
	}
	blocks []blockErrors              // by place in blocks, nil before the first page
	steps  map[devicetable.ID]float64 // of violations
}

// Write implements devicemap.Derivation.
func (e *derivation) Write(d *devicemap.Device, w *devicemap.Writer) {
	if d.Part() != "" {
		return
	}
	e.writeECC(d, w)
	writeRAS(d, w)
	writeHealth(d, w)
	e.writeThrottle(d, w)
}

// energyMoves reports whether the energy of a board can be used. On some boards it
// never moves, although they draw power: it is absent from the second page on, until it
// moves.
func (e *derivation) energyMoves(d *devicemap.Device) bool {
	x := d.Reading(Energy)
	if !x.Known() {
		return true
	}
	before := e.energy
	e.energy.moved = before.moved || before.seen && x.V != before.last
	e.energy.last, e.energy.seen = x.V, true
	return !before.seen || e.energy.moved ||
		!slices.ContainsFunc(powers, func(id devicetable.ID) bool { return d.Reading(id).Known() })
}

// blockErrors is the count of one block and type.
type blockErrors struct {
	devicemap.Cumulative
	none bool // 0 on the page before
}

// writeECC writes the errors of blocks that have had any.
func (e *derivation) writeECC(d *devicemap.Device, w *devicemap.Writer) {
	if e.blocks == nil {
		e.blocks = make([]blockErrors, len(eccBlockNames)*len(eccTypes))
	}
	for i := range e.blocks {
		block, kind := i/len(eccTypes), i%len(eccTypes)
		x := d.Reading(eccBlock(block, kind))
		b := &e.blocks[i]
		if !x.Known() {
			continue
		}
		if b.Start == 0 && x.V == 0 {
			b.none = true
			continue
		}
		if b.Start == 0 && b.none {
			b.Start = d.SeenBefore() // it was 0 there, so the first count is a rise
		}
		p := w.Value(&names.GPUECCErrors, x.V)
		p.SetStartTimestamp(b.Observe(x.V, w.Time()))
		p.Attributes().PutStr(names.GPUECCBlock, eccBlockNames[block])
		p.Attributes().PutStr(names.ErrorType, eccTypes[kind].attribute)
	}
}

// severities are those that error records have.
var severities = []string{"fatal", "non_fatal_uncorrected", "non_fatal_corrected"}

// writeRAS writes the code of the newest error record of each severity. A record can have
// several codes: the first one is what it is about.
func writeRAS(d *devicemap.Device, w *devicemap.Writer) {
	rows := d.Rows(AFIDErrors)
	texts := slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
	unknown := len(texts)
	for _, severity := range severities {
		written := false
		for _, text := range texts {
			of, _, _ := strings.Cut(strings.ToLower(text), ",")
			if strings.TrimPrefix(of, "cper_severity_") != severity {
				continue
			}
			unknown--
			if !written {
				w.Value(&names.GPURASLast, rows[text].V).Attributes().PutStr(names.GPURASSeverity, severity)
				written = true
			}
		}
	}
	d.Count(devicemap.Unmapped, unknown)
}

// writeHealth writes the exporter's judgement of the board: that of its worst partition.
func writeHealth(d *devicemap.Device, w *devicemap.Writer) {
	in := 0
	for _, x := range d.Rows(Health) {
		if x.V == 0 {
			in = 2
		}
	}
	if d.Rows(Health) != nil {
		w.Health("exporter", in)
	}
}
