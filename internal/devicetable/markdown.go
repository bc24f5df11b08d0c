// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicetable

import (
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Words are what the documentation of a table has beside the table.
type Words struct {
	Intro  string // title and first paragraphs
	System string // what the fields are of, such as DCGM
	Part   string // what a part of a board is called, such as instance
	// Of a source that is no exporter: what identifies it, instead of address and port.
	Source string
}

// Markdown returns the documentation of the table.
func (t *Table) Markdown(w Words) string {
	var b strings.Builder
	b.WriteString(w.Intro)
	b.WriteString("## One field, one series\n\nWhere several fields are named, the first that is on the page gives the value.\n\n")
	row(&b, "Metric", "Kind, unit", "Attributes", w.System+" fields")
	row(&b, "---", "---", "---", "---")
	for _, s := range t.Series {
		from := t.listed(s.From)
		if s.Row != "" {
			from += " with " + code(s.Row)
		}
		if len(s.Unless) > 0 {
			from += "; not beside " + t.listed(s.Unless)
		}
		row(&b, code(s.Metric.Name), kind(s.Metric), attributes(s), from)
	}
	b.WriteString("\n## Several fields, or more than a value\n\n")
	row(&b, "Metric", "Kind, unit", "Attributes", w.System+" fields", "How")
	row(&b, "---", "---", "---", "---", "---")
	for _, d := range t.Derived {
		row(&b, code(d.Metric.Name), kind(d.Metric), codes(d.Keys), t.listed(d.From), d.Rule)
	}
	about, unit := "## About the exporter\n\nResource and points have `server.address`, `server.port` and, where known, `k8s.node.name`.", "Unit on the page"
	if w.Source != "" {
		about, unit = "## About the source\n\nResource and points have "+w.Source+".", "Unit"
	}
	b.WriteString("\n" + about + "\n\n")
	row(&b, "Metric", "Kind, unit", "What")
	row(&b, "---", "---", "---")
	for _, m := range []*names.Metric{&names.ExporterUp, &names.ExporterFrozen, &names.ExporterUnrecognized, &names.ExporterScrapeDuration, &names.ExporterScrapeSamples} {
		if m == &names.ExporterUnrecognized && w.Source != "" {
			continue // its fields are known
		}
		row(&b, code(m.Name), kind(m), m.Description)
	}
	b.WriteString("\n## Fields\n\n")
	numbered := slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Number != 0 })
	fieldRow := func(name, number string, more ...string) {
		cells := []string{name}
		if numbered {
			cells = append(cells, number)
		}
		row(&b, append(cells, more...)...)
	}
	fieldRow("Field", "Number", "Other names", unit, "Scope", "Notes")
	fieldRow("---", "---", "---", "---", "---", "---")
	for i := range t.Fields {
		f := &t.Fields[i]
		if f.Lacking {
			continue
		}
		scope := w.Part
		switch f.Scope {
		case Board:
			scope = "board"
		case Undivided:
			scope = "board without " + w.Part + "s"
		}
		fieldRow(code(first(f.Name)), number(f), codes(firsts(f.Aliases)), f.Unit, scope, notes(f))
		for _, v := range f.Variants {
			fieldRow(code(first(v.Name)), number(f.as(v)), "", v.Unit, scope, f.variantNotes(v))
		}
	}
	if len(t.Dropped) > 0 {
		b.WriteString("\n## Dropped\n\nCounted, and passed on under no name: others have the same value, or it has no meaning outside of the exporter.\n\n")
		for _, name := range t.Dropped {
			b.WriteString("- " + code(name) + "\n")
		}
	}
	return b.String()
}

func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func code(s string) string { return "`" + s + "`" }

func codes(list []string) string {
	var out []string
	for _, s := range list {
		out = append(out, code(s))
	}
	return strings.Join(out, ", ")
}

func kind(m *names.Metric) string { return m.Kind.String() + " " + m.Unit }

func attributes(s Series) string {
	var out []string
	if s.Key != "" {
		out = append(out, code(s.Key)+"="+s.Value)
	}
	if s.Key2 != "" {
		out = append(out, code(s.Key2)+"="+s.Value2)
	}
	if s.RowKey != "" {
		out = append(out, codes(strings.Split(s.RowKey, ",")))
	}
	return strings.Join(out, ", ")
}

// listed are the names of fields in the order in which they count.
func (t *Table) listed(ids []ID) string {
	var out []string
	for _, id := range ids {
		f := &t.Fields[id]
		var others []string
		for _, v := range f.Variants {
			if v.Finer {
				out = append(out, first(v.Name))
			} else {
				others = append(others, first(v.Name))
			}
		}
		out = append(append(out, first(f.Name)), others...)
	}
	return codes(out)
}

// first is the name of a family, of numbered ones the first.
func first(name string) string { return strings.Replace(name, "%d", "0", 1) }

func firsts(names []string) (out []string) {
	for _, name := range names {
		out = append(out, first(name))
	}
	return out
}

func (f *Field) variantNotes(v Variant) string {
	out := []string{"as " + code(first(f.Name))}
	if v.Ambiguous {
		out[0] += ", or in its unit: the rest of the page decides"
	}
	if f.Numbered > 0 {
		out = append(out, numbered(v.Name, f.Numbered))
	}
	return strings.Join(append(out, boundNotes(f.as(v).Bounds)...), "; ")
}

// numbered is the last name of numbered families.
func numbered(name string, n int) string {
	return "and so on to " + code(strings.Replace(name, "%d", strconv.Itoa(n-1), 1))
}

func number(f *Field) string {
	if f.Number == 0 {
		return "exporter"
	}
	return strconv.Itoa(f.Number)
}

func notes(f *Field) string {
	var out []string
	if f.Computed {
		out = append(out, "computed: no family has this name")
	}
	switch {
	case f.Numbered > 0:
		out = append(out, numbered(f.Name, f.Numbered))
	case f.Label != "":
		out = append(out, "a row for each "+code(strings.ReplaceAll(f.Label, ",", "` and `")))
	}
	if f.MeanOfRows {
		out = append(out, "their mean is the value")
	}
	switch f.Several {
	case Mean:
		out = append(out, "the mean of several rows")
	case Sum:
		out = append(out, "the sum of several rows")
	case First:
		out = append(out, "the first of several rows")
	}
	if f.Signed {
		out = append(out, "may be negative")
	}
	if f.ZeroIsAbsent {
		out = append(out, "0 is a board without the sensor")
	}
	out = append(out, boundNotes(f.Bounds)...)
	if f.Glitches {
		out = append(out, "a value that falls for one page is implausible")
	}
	return strings.Join(out, "; ")
}

func boundNotes(b Bounds) []string {
	switch b {
	case Ratio:
		return []string{"above 1.05 implausible"}
	case Percent:
		return []string{"above 1.005 implausible"}
	case Watts:
		return []string{"above 10 kW implausible"}
	case Celsius:
		return []string{"outside of -50 to 200 °C implausible"}
	case Memory:
		return []string{"1 PiB and more implausible"}
	case Fan:
		return []string{"above 2 implausible"}
	case Hertz:
		return []string{"above 100 GHz implausible"}
	case Word:
		return []string{"2^31 and more implausible"}
	default:
		return nil
	}
}
