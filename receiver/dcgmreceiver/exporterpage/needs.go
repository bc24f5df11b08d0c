// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporterpage

import (
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/fields"
)

// Lack is a field that the page does not have, or has without a value, and what
// is missing for that.
type Lack struct {
	// For are the cards of a service and the events that need the field.
	For []string
	// Field is the family's name, in the spelling that the page's version has.
	Field string
	// Line is what the exporter's counters file needs for it. Where the name depends
	// on a version that is not known, these are comments, of which one is to be used:
	// an exporter ends over a name that it does not know.
	Line string
	// Blank is whether the family is on the page and no row has a value: the
	// board or its driver gives none, and no line helps.
	Blank bool
}

// need is something that is made of one field of each group.
type need struct {
	what string
	of   [][]fields.ID
}

// one is a need that any of the fields satisfies; the first is the one to add.
func one(what string, any ...fields.ID) need { return need{what, [][]fields.ID{any}} }

// needs are the nine cards of a service, and the events about devices.
var needs = []need{
	one("card utilization", fields.GPUUtil, fields.GREngineActive),
	one("card memory used", fields.FBUsed),
	{"card memory total", [][]fields.ID{{fields.FBTotal, fields.FBFree}, {fields.FBTotal, fields.FBUsed}}},
	one("card tensor", fields.PipeTensorActive),
	one("card SM", fields.SMActive),
	one("card DRAM", fields.DRAMActive),
	one("card FP16", fields.PipeFP16Active),
	one("card FP32", fields.PipeFP32Active),
	one("card power", fields.PowerUsage),
	one("event gpu.xid", fields.XIDLast, fields.XIDTotal),
	one("event gpu.ecc.uncorrected", fields.ECCDBEVolatile),
	one("event gpu.row_remap.failure", fields.RowRemapFailure),
	one("event gpu.throttle", fields.ThrottleReasons, fields.ClockEventsCount, fields.ClockEventsTotal),
	one("event gpu.temperature", fields.GPUTemp),
	{"event gpu.memory.pressure", [][]fields.ID{{fields.FBUsed}, {fields.FBTotal, fields.FBFree}}},
	one("event gpu.exporter.down (frozen)", fields.Energy, fields.EnergyJoules),
}

// lines are the rest of a field's line in a counters file: type and help.
var lines = map[fields.ID]string{
	fields.GPUUtil:          "gauge, GPU utilization (in %).",
	fields.FBUsed:           "gauge, Framebuffer memory used (in MiB).",
	fields.FBTotal:          "gauge, Framebuffer memory total (in MiB).",
	fields.PipeTensorActive: "gauge, Ratio of cycles in which the tensor pipe is active.",
	fields.SMActive:         "gauge, Ratio of cycles in which an SM has a warp assigned.",
	fields.DRAMActive:       "gauge, Ratio of cycles in which device memory is read or written.",
	fields.PipeFP16Active:   "gauge, Ratio of cycles in which the FP16 pipe is active.",
	fields.PipeFP32Active:   "gauge, Ratio of cycles in which the FP32 pipe is active.",
	fields.PowerUsage:       "gauge, Power draw (in W).",
	fields.XIDLast:          "gauge, Last XID error.",
	fields.ECCDBEVolatile:   "counter, Double-bit ECC errors since the driver was loaded.",
	fields.RowRemapFailure:  "gauge, Whether remapping a row of memory failed.",
	fields.ThrottleReasons:  "gauge, Reasons why clocks are held down (bit mask).",
	fields.GPUTemp:          "gauge, GPU temperature (in C).",
	fields.Energy:           "counter, Energy since the driver was loaded (in mJ).",
}

// QuietXID is whether the page has no XID and that says nothing: from 4.x on the
// exporter prints none before the first.
func (p *Page) QuietXID() bool {
	_, last := p.seen[fields.XIDLast]
	_, counted := p.seen[fields.XIDTotal]
	return p.pci && !last && !counted
}

// Lacks are the fields that the page lacks, in the order of the cards. One that
// is absent may be in the counters file all the same: from 4.x on the exporter
// leaves out what the board gives no value for. tag is that of the exporter's
// image, where it is known.
func (p *Page) Lacks(tag string) []Lack {
	var lacks []Lack
	for _, n := range needs {
		for _, group := range n.of {
			if group[0] == fields.XIDLast && p.QuietXID() {
				continue
			}
			if slices.ContainsFunc(group, func(id fields.ID) bool { return p.seen[id] }) {
				continue
			}
			add := group[0]
			_, blank := p.seen[add]
			for _, id := range group {
				// What is there without a value says more than what is not.
				if _, there := p.seen[id]; there && !blank {
					add, blank = id, true
				}
			}
			lacks = p.lacking(lacks, n.what, add, blank, tag)
		}
	}
	return lacks
}

func (p *Page) lacking(lacks []Lack, what string, id fields.ID, blank bool, tag string) []Lack {
	name := p.spelling(id, tag)
	if i := slices.IndexFunc(lacks, func(l Lack) bool { return l.Field == name }); i >= 0 {
		if !slices.Contains(lacks[i].For, what) {
			lacks[i].For = append(lacks[i].For, what)
		}
		return lacks
	}
	l := Lack{For: []string{what}, Field: name, Blank: blank}
	switch {
	case blank:
	case id == fields.ThrottleReasons && p.major(tag) == 0:
		rest := ", " + lines[id]
		l.Line = "# dcgm-exporter 4.x: " + clocksEventReasons + rest + "\n# dcgm-exporter 3.x and older: " + fields.All[id].Name + rest
	default:
		l.Line = name + ", " + lines[id]
	}
	return append(lacks, l)
}

// clocksEventReasons is the name of fields.ThrottleReasons since DCGM 4.0. Of
// those before it is not known, and of some since then the old one is not.
const clocksEventReasons = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"

// spelling is the field's name as the page's exporter knows it: DCGM 4.6 has
// names of its own.
func (p *Page) spelling(id fields.ID, tag string) string {
	f := &fields.All[id]
	if id == fields.ThrottleReasons {
		if _, there := p.seen[id]; there && p.clocks || !there && p.major(tag) != 3 {
			return clocksEventReasons
		}
		return f.Name
	}
	if p.newName && len(f.Aliases) > 0 && strings.HasPrefix(f.Aliases[0], "DCGM_") {
		return f.Aliases[0]
	}
	return f.Name
}

// major is 4 for an exporter of 4.x or newer, 3 for an older one, and 0 where
// neither its image nor its page tells: labels of a page can be of a relay.
func (p *Page) major(tag string) int {
	number, _, _ := strings.Cut(tag, ".")
	n, err := strconv.Atoi(strings.TrimPrefix(number, "v"))
	switch {
	case err == nil && n >= 4, p.newName, p.newHost, p.clocks:
		return 4
	case err == nil && n > 0:
		return 3
	default:
		return 0
	}
}
