// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporterpage

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvidia"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
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
	of   [][]devicetable.ID
}

// one is a need that any of the fields satisfies; the first is the one to add.
func one(what string, any ...devicetable.ID) need { return need{what, [][]devicetable.ID{any}} }

// needs are the nine cards of a service, and the events about devices.
var needs = append(listed, flags()...)

// flags are the events that are not listed: those made of one metric of the field table
// that has no attribute. A rule about such a metric needs no entry here.
func flags() (all []need) {
	for _, r := range names.EventRules() {
		what := "event " + r.Event
		if len(r.Metrics) != 1 || slices.ContainsFunc(listed, func(n need) bool { return n.what == what }) {
			continue
		}
		for _, s := range dcgm.Table.Series {
			if s.Metric.Name == r.Metrics[0] && s.Key == "" {
				all = append(all, one(what, s.From...))
			}
		}
	}
	return all
}

// listed are those with fields that do not follow from a metric.
var listed = []need{
	one("card utilization", nvidia.GPUUtil, nvidia.GREngineActive),
	one("card memory used", nvidia.FBUsed),
	{"card memory total", [][]devicetable.ID{{nvidia.FBTotal, nvidia.FBFree}, {nvidia.FBTotal, nvidia.FBUsed}}},
	one("card tensor", nvidia.PipeTensorActive),
	one("card SM", nvidia.SMActive),
	one("card DRAM", nvidia.DRAMActive),
	one("card FP16", nvidia.PipeFP16Active),
	one("card FP32", nvidia.PipeFP32Active),
	one("card power", nvidia.PowerUsage),
	one("event gpu.xid", nvidia.XIDLast, nvidia.XIDTotal),
	one("event gpu.ecc.uncorrected", nvidia.ECCDBEVolatile),
	one("event gpu.row_remap.failure", nvidia.RowRemapFailure),
	one("event gpu.throttle", nvidia.ThrottleReasons, nvidia.ClockEventsCount, nvidia.ClockEventsTotal),
	one("event gpu.temperature", nvidia.GPUTemp),
	{"event gpu.memory.pressure", [][]devicetable.ID{{nvidia.FBUsed}, {nvidia.FBTotal, nvidia.FBFree}}},
	one("event gpu.exporter.down (frozen)", nvidia.Energy),
}

// lines are the rest of a field's line in a counters file: type and help.
var lines = map[devicetable.ID]string{
	nvidia.GPUUtil:          "gauge, GPU utilization (in %).",
	nvidia.FBUsed:           "gauge, Framebuffer memory used (in MiB).",
	nvidia.FBTotal:          "gauge, Framebuffer memory total (in MiB).",
	nvidia.PipeTensorActive: "gauge, Ratio of cycles in which the tensor pipe is active.",
	nvidia.SMActive:         "gauge, Ratio of cycles in which an SM has a warp assigned.",
	nvidia.DRAMActive:       "gauge, Ratio of cycles in which device memory is read or written.",
	nvidia.PipeFP16Active:   "gauge, Ratio of cycles in which the FP16 pipe is active.",
	nvidia.PipeFP32Active:   "gauge, Ratio of cycles in which the FP32 pipe is active.",
	nvidia.PowerUsage:       "gauge, Power draw (in W).",
	nvidia.XIDLast:          "gauge, Last XID error.",
	nvidia.ECCDBEVolatile:   "counter, Double-bit ECC errors since the driver was loaded.",
	nvidia.RowRemapFailure:  "gauge, Whether remapping a row of memory failed.",
	nvidia.ThrottleReasons:  "gauge, Reasons why clocks are held down (bit mask).",
	nvidia.GPUTemp:          "gauge, GPU temperature (in C).",
	nvidia.Energy:           "counter, Energy since the driver was loaded (in mJ).",
}

// lineOf is the rest of a field's line, by its metric where lines has none. A comma would
// be the end of the help.
func lineOf(id devicetable.ID) string {
	if line := lines[id]; line != "" {
		return line
	}
	line := func(m *names.Metric) string {
		help, _, _ := strings.Cut(strings.TrimSuffix(m.Description, "."), ",")
		help, _, _ = strings.Cut(help, ";")
		kind := "gauge, "
		if m.Kind == names.Counter {
			kind = "counter, "
		}
		return kind + help + "."
	}
	for _, s := range dcgm.Table.Series {
		if slices.Contains(s.From, id) {
			return line(s.Metric)
		}
	}
	for _, d := range dcgm.Table.Derived {
		if slices.Contains(d.From, id) {
			return line(d.Metric)
		}
	}
	return "gauge, " + dcgm.Table.Fields[id].Name + "."
}

// QuietXID is whether the page has no XID and that has no meaning: from 4.x on the
// exporter prints none before the first.
func (p *Page) QuietXID() bool {
	_, last := p.seen[nvidia.XIDLast]
	_, counted := p.seen[nvidia.XIDTotal]
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
			if group[0] == nvidia.XIDLast && p.QuietXID() {
				continue
			}
			if slices.ContainsFunc(group, func(id devicetable.ID) bool { return p.seen[id] }) {
				continue
			}
			add := group[0]
			_, blank := p.seen[add]
			for _, id := range group {
				// A family without a value reveals more than a missing one.
				if _, there := p.seen[id]; there && !blank {
					add, blank = id, true
				}
			}
			lacks = p.lacking(lacks, n.what, add, blank, tag)
		}
	}
	return lacks
}

func (p *Page) lacking(lacks []Lack, what string, id devicetable.ID, blank bool, tag string) []Lack {
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
	case id == nvidia.ThrottleReasons && p.major(tag) == 0 && !p.base(tag):
		rest := ", " + lines[id]
		l.Line = "# dcgm-exporter 4.x: " + clocksEventReasons + rest + "\n# dcgm-exporter 3.x and older: " + dcgm.Table.Fields[id].Name + rest
	default:
		l.Line = name + ", " + p.inUnit(id, lineOf(id), tag)
	}
	return append(lacks, l)
}

// inUnit is a line with the unit of the names in base units, where these are the page's.
func (p *Page) inUnit(id devicetable.ID, line, tag string) string {
	variants := dcgm.Table.Fields[id].Variants
	if !p.base(tag) || len(variants) == 0 {
		return line
	}
	return units.ReplaceAllString(line, unitTexts[variants[0].Unit])
}

var (
	units     = regexp.MustCompile(` \(in [^)]*\)`)
	unitTexts = map[string]string{"1": " (0 to 1)", "By": " (in bytes)", "J": " (in J)", "Hz": " (in Hz)", "s": " (in s)", "By/s": " (in bytes per second)"}
)

// clocksEventReasons is the name of nvidia.ThrottleReasons since DCGM 4.0. Of
// those before it is not known, and of some since then the old one is not.
const clocksEventReasons = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"

// base reports whether the exporter has the fields in base units, which are DCGM 4.7's: by
// its page, or by the tag of its image, which begins with the version of DCGM.
func (p *Page) base(tag string) bool {
	major, rest, _ := strings.Cut(strings.TrimPrefix(tag, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := strconv.Atoi(major)
	n, _ := strconv.Atoi(minor)
	return p.newest || err == nil && (m > 4 || m == 4 && n >= 7)
}

// spelling is the field's name as the page's exporter knows it: DCGM 4.6 has
// names of its own, and 4.7 further ones in base units.
func (p *Page) spelling(id devicetable.ID, tag string) string {
	f := &dcgm.Table.Fields[id]
	if id == nvidia.ThrottleReasons {
		if _, there := p.seen[id]; there && p.clocks || !there && p.major(tag) != 3 {
			return clocksEventReasons
		}
		return f.Name
	}
	if p.base(tag) && len(f.Variants) > 0 {
		return f.Variants[0].Name
	}
	if (p.newName || p.base(tag)) && len(f.Aliases) > 0 && strings.HasPrefix(f.Aliases[0], "DCGM_") {
		return f.Aliases[0]
	}
	return f.Name
}

// major is 4 for an exporter of 4.x or newer, 3 for an older one, and 0 where
// neither its image nor its page shows it: labels of a page can be of a relay.
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
