// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
)

// settle decides what takes all rows of a board and of its partitions.
func settle(d *devicemap.Device) {
	page, _ := d.Survey().(*survey)
	if page == nil || page.boards[d.ID()] == nil {
		return
	}
	b := page.boards[d.ID()]
	parts := d.Parts()
	b.describe(d)
	for _, part := range parts {
		b.describe(part)
	}
	renameClocks(d)
	if kept, ok := d.Derivation().(*derivation); ok && !kept.energyMoves(d) {
		d.Refuse(Energy, devicemap.NoSensor)
	}
	if !b.partitioned() {
		return
	}
	d.SetFact(devicemap.Index, "")
	if b.trusted() {
		d.SetFact(devicemap.Index, b.indexes["0"])
	}
	d.Count(devicemap.Repeated, b.conflicts())
	if _, first := b.indexes["0"]; !b.trusted() || !first {
		// The others print 0 for what only the first one has: no counter was reset.
		d.RefuseBoardZeros(devicemap.NoSensor, Health)
	}
	settleBusy(d, b, parts)
	settleMemory(d, b, parts)
}

// describe sets the texts that all devices of a board share.
func (b *board) describe(d *devicemap.Device) {
	d.SetFact(devicemap.Model, b.hwModel())
	d.SetFact(devicemap.PartProfile, b.mode())
	if b.host != nil {
		d.SetFact(devicemap.PCIAddress, b.host.PCI)
	}
}

// renameClocks gives the rows of exporters before 1.4.2 the texts of later ones.
func renameClocks(d *devicemap.Device) {
	for text, x := range d.Rows(Clock) {
		if kind, old := strings.CutPrefix(text, "GPU_CLOCK_TYPE_"); old {
			kind = strings.ToLower(kind)
			d.SetRow(Clock, kind, max(x.V, d.Rows(Clock)[kind].V))
		}
	}
}

// settleBusy gives a partitioned board the mean over the dies of all partitions, if the
// page has all of them. gpu_gfx_activity is not defined for such a board.
func settleBusy(d *devicemap.Device, b *board, parts []*devicemap.Device) {
	d.Clear(GfxActivity)
	sum, dies, all := 0., 0, len(parts) == b.partitions()
	for _, part := range parts {
		n := len(part.Rows(GfxBusy))
		sum, dies, all = sum+float64(n)*part.Reading(GfxBusy).V, dies+n, all && n > 0
	}
	if all && dies > 0 {
		d.Set(GfxBusy, sum/float64(dies))
	}
}

// settleMemory gives a partitioned board its memory.
func settleMemory(d *devicemap.Device, b *board, parts []*devicemap.Device) {
	var used, total, greatest float64
	haveUsed, haveTotal := true, true
	for _, part := range parts {
		u, t := part.Reading(UsedVRAM), totalOf(part)
		used, total, greatest = used+u.V, total+t.V, max(greatest, t.V)
		haveUsed, haveTotal = haveUsed && u.Known(), haveTotal && t.Known()
	}
	expected := b.partitions()
	whole := b.model.memory
	switch {
	case whole > 0 && float64(max(expected, len(parts)))*greatest > 1.05*whole:
		boardOnEach(d, parts)
		return
	case whole == 0 && b.memory != "nps"+strconv.Itoa(expected):
		return // partitions share a memory: each may print its share or all of it
	case expected > 0 && expected == len(parts):
		if haveUsed {
			d.Set(UsedVRAM, used)
		}
		if haveTotal {
			d.Set(TotalVRAM, total)
			return
		}
	}
	if whole > 0 && greatest > 0 && !b.model.shared {
		d.Set(TotalVRAM, whole)
	}
}

func totalOf(d *devicemap.Device) devicemap.Reading {
	if x := d.Reading(TotalVRAM); x.Known() {
		return x
	}
	return d.Reading(TotalMemory)
}

// boardOnEach takes the memory that each partition prints for the board's, which it is
// where their sum is more than a board has.
func boardOnEach(d *devicemap.Device, parts []*devicemap.Device) {
	for _, part := range parts {
		if x := part.Reading(UsedVRAM); x.Known() && !d.Reading(UsedVRAM).Known() {
			d.Set(UsedVRAM, x.V)
		}
		if x := totalOf(part); x.Known() && !d.Reading(TotalVRAM).Known() {
			d.Set(TotalVRAM, x.V)
		}
		part.Clear(UsedVRAM)
		part.Clear(TotalVRAM)
		part.Clear(TotalMemory)
	}
}
