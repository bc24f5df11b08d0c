// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intel

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
)

// settle computes fields of a board and of its tiles from the rows of each, and then
// what the board has no row of from all of its tiles.
func settle(board *devicemap.Device) {
	tiles := board.Parts()
	keepErrors(append([]*devicemap.Device{board}, tiles...))
	for _, tile := range tiles {
		compute(tile)
		if tile.Fact(devicemap.Model) == "" { // 2.x prints it for the GPU alone
			tile.SetFact(devicemap.Model, board.Fact(devicemap.Model))
		}
	}
	compute(board)
	if len(tiles) > 0 && len(tiles) == board.KnownParts() {
		for _, w := range wholes {
			w.fill(board, tiles)
		}
		fillBlocks(board, tiles)
		limit(board)
	}
}

// rows of one field of a device that print one thing under several texts: the first of them.
func pick(d *devicemap.Device, field devicetable.ID, texts ...string) (float64, bool) {
	for _, text := range texts {
		if x, there := d.Rows(field)[text]; there {
			return x.V, true
		}
	}
	return 0, false
}

// rules are computed fields that are one row: of the fields that they need in turn, the first
// of the texts.
var rules = []struct {
	to    devicetable.ID
	texts []string
}{
	{Compute, []string{"compute", "compute-all"}},
	{Media, []string{"media", "media-all"}},
	{Copy, []string{"copy", "copy-all"}},
	{Render, []string{"render", "render-all"}},
	{Used, []string{"device"}},
	{Bandwidth, []string{"device"}},
	{ReadIO, []string{"device,receive"}},
	{WriteIO, []string{"device,transmit"}},
	{PCIeIn, []string{"receive"}},
	{PCIeOut, []string{"transmit"}},
	{GPUTemp, []string{"gpu", "gpu,mean", "gpu,avg", "gpu,max", "gpu,"}},
	{MemoryTemp, []string{"mem", "memory", "memory,mean", "memory,avg", "memory,max", "memory,"}},
	{SMClock, []string{"gpu,actual", "gpu,avg"}},
	{MemoryClock, []string{"memory,actual", "memory,avg"}},
	{MediaClock, []string{"media,actual", "media,avg"}},
}

// compute computes the fields of one device.
func compute(d *devicemap.Device) {
	for _, r := range rules {
		for _, field := range fields[r.to].Needs {
			if v, there := pick(d, field, r.texts...); there {
				d.Set(r.to, v)
				break
			}
		}
	}
	all, hasAll := pick(d, Utilization2, "all")
	group, hasGroup := pick(d, Utilization2, "compute-all")
	if hasAll || hasGroup {
		d.Set(General, max(all, group))
	}
	limit(d)
	if domain := d.Derivation().(*state).choose(d); domain != "" {
		for _, m := range [...][2]devicetable.ID{{Power2, Power}, {Energy2, Energy}} {
			if v, there := pick(d, m[0], domain); there {
				d.Set(m[1], v)
			}
		}
	}
	countErrors(d)
	switch x := d.Reading(XelinkStatus); {
	case !x.Known():
	case x.V == 1 || x.V == 2: // up; 2 is degraded
		d.Set(LinkUp, 1)
	case x.V == 3: // failed or disabled
		d.Set(LinkUp, 0)
	}
}

// leastRatio is the ratio below which usage divided by it is too coarse for a size.
const leastRatio = 0.02

// limit is the size of the device's memory. 1.x prints none.
func limit(d *devicemap.Device) {
	if size, there := pick(d, MemorySize2, "device"); there {
		if size > 0 {
			d.Set(Size, size)
		}
		return
	}
	used, ratio := d.Reading(MemoryUsed), d.Reading(MemoryRatio)
	if !d.Reading(Size).Known() && used.Known() && ratio.Known() && ratio.V >= leastRatio {
		d.Set(Size, used.V/ratio.V)
	}
}

// errorRows are the families of errors of which a row is one category, or one type of the
// category that they are of.
var errorRows = map[devicetable.ID]string{CacheErrors: "cache", NonComputeErrors: "non_compute", Errors2: ""}

// countErrors adds up the errors of a device: those of the hardware by type and by
// category, the others by category.
func countErrors(d *devicemap.Device) {
	add := func(to devicetable.ID, v float64) { d.Set(to, d.Reading(to).V+v) }
	hardware := func(to devicetable.ID, kind, category string, v float64) {
		add(to, v)
		if category != "" {
			text := kind + "," + category
			d.SetRow(Blocks, text, d.Rows(Blocks)[text].V+v)
		}
	}
	for field, only := range errorRows {
		for text, x := range d.Rows(field) {
			kind, category, _ := strings.Cut(text, ",")
			category = cmp.Or(only, plain(category))
			switch {
			case category == "programming":
				add(Programming, x.V)
			case category == "driver":
				add(Driver, x.V)
			case category == "reset":
				add(ResetCount, x.V)
			case kind == "correctable" || kind == "corrected":
				hardware(Corrected, "corrected", category, x.V)
			case kind == "uncorrectable" || kind == "uncorrected":
				hardware(Uncorrected, "uncorrected", category, x.V)
			}
		}
	}
}

// plain is a name of Level Zero in one spelling: non_compute of non_compute_errors.
func plain(name string) string {
	return strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(name), "-", "_"), "_errors")
}

// whole is how a value of a board comes from those of its tiles, where the board has no
// value in any of the fields. The last one takes it.
type whole struct {
	fields []devicetable.ID
	how    devicetable.Several
	// counts: 2.x prints an error once there was one, so a tile without a row has had none.
	counts bool
}

var wholes = []whole{
	{fields: ids(EngineRatio, General), how: devicetable.Mean},
	{fields: ids(Compute), how: devicetable.Mean},
	{fields: ids(Media), how: devicetable.Mean},
	{fields: ids(Copy), how: devicetable.Mean},
	{fields: ids(Render), how: devicetable.Mean},
	{fields: ids(EUActive), how: devicetable.Mean},
	{fields: ids(MemoryBandwidth, Bandwidth), how: devicetable.Mean},
	{fields: ids(MemoryUsed, Used), how: devicetable.Sum},
	{fields: ids(Size), how: devicetable.Sum},
	{fields: ids(MemoryRead, ReadIO), how: devicetable.Sum},
	{fields: ids(MemoryWrite, WriteIO), how: devicetable.Sum},
	{fields: ids(PCIeRead, PCIeIn), how: devicetable.Sum},
	{fields: ids(PCIeWrite, PCIeOut), how: devicetable.Sum},
	{fields: ids(FabricTX), how: devicetable.Sum},
	{fields: ids(PowerWatts, Power), how: devicetable.Sum},
	{fields: ids(EnergyJoules, Energy), how: devicetable.Sum},
	{fields: ids(Corrected), how: devicetable.Sum, counts: true},
	{fields: ids(Uncorrected), how: devicetable.Sum, counts: true},
	{fields: ids(ProgrammingErrors, Programming), how: devicetable.Sum, counts: true},
	{fields: ids(DriverErrors, Driver), how: devicetable.Sum, counts: true},
	{fields: ids(Resets, ResetCount), how: devicetable.Sum, counts: true},
	{fields: ids(GPUTemp), how: devicetable.Greatest},
	{fields: ids(MemoryTemp), how: devicetable.Greatest},
}

// first is the value of the first of the fields that a device has.
func (w *whole) first(d *devicemap.Device) (float64, bool) {
	for _, id := range w.fields {
		if x := d.Reading(id); x.Known() {
			return x.V, true
		}
	}
	return 0, false
}

func (w *whole) fill(board *devicemap.Device, tiles []*devicemap.Device) {
	if _, own := w.first(board); own {
		return
	}
	total, some := 0., false
	for i, tile := range tiles {
		v, known := w.first(tile)
		some = some || known
		switch {
		case !known && w.counts && seldom(tiles):
		case !known:
			return
		case w.how == devicetable.Greatest && i > 0:
			total = max(total, v)
		default:
			total += v
		}
	}
	if !some {
		return
	}
	if w.how == devicetable.Mean {
		total /= float64(len(tiles))
	}
	board.Set(w.fields[len(w.fields)-1], total)
}

// seldom reports whether the page is one of 2.x, which prints an error once there was one.
func seldom(tiles []*devicemap.Device) bool {
	return slices.ContainsFunc(tiles, func(tile *devicemap.Device) bool { return tile.Rows(Errors2) != nil })
}

// fillBlocks adds up the errors of tiles by category, where the board has none of its own.
// A category that was never above 0 is not printed, so not all tiles must have one.
func fillBlocks(board *devicemap.Device, tiles []*devicemap.Device) {
	if len(board.Rows(Blocks)) > 0 {
		return
	}
	for _, tile := range tiles {
		for text, x := range tile.Rows(Blocks) {
			board.SetRow(Blocks, text, board.Rows(Blocks)[text].V+x.V)
		}
	}
}
