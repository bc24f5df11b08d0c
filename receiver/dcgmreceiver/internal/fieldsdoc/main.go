// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Command fieldsdoc writes fields.md, the documentation of the field table, into
// the folder that it is called from.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func main() {
	if err := os.WriteFile("fields.md", []byte(markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const intro = `<!-- Written by "go generate" from internal/fields. DO NOT EDIT. -->

# Metrics of the dcgm receiver

What each DCGM field becomes. Units on the page are the field's true ones (DCGM 4.6, ` + "`dcgm_fields.h`" + `), whatever TYPE and HELP say; the value of a metric is in its own unit. Each point has ` + "`hw.id`" + `; those of hw.power, hw.energy, hw.temperature and hw.errors also ` + "`hw.type`" + `=gpu.

Scope: a **board** field exists once a board. In MIG mode the exporter repeats it on every instance; it goes once to the GPU. The other fields belong to the instance.

Families that are not listed here leave as ` + "`dcgm.<field>`" + ` (lower case, without DCGM_FI_ and DCGM_) with the type of the page and without unit, or not at all (` + "`unmapped: drop`" + `).

`

func markdown() string {
	var b strings.Builder
	b.WriteString(intro)
	b.WriteString("## One field, one series\n\nWhere several fields are named, the first that is on the page gives the value.\n\n")
	row(&b, "Metric", "Kind, unit", "Attributes", "DCGM fields")
	row(&b, "---", "---", "---", "---")
	for _, s := range devicetable.Table {
		from := listed(s.From)
		if len(s.Unless) > 0 {
			from += "; not beside " + listed(s.Unless)
		}
		row(&b, code(s.Metric.Name), kind(s.Metric), attributes(s), from)
	}
	b.WriteString("\n## Several fields, or more than a value\n\n")
	row(&b, "Metric", "Kind, unit", "Attributes", "DCGM fields", "How")
	row(&b, "---", "---", "---", "---", "---")
	for _, d := range devicetable.Derived {
		row(&b, code(d.Metric.Name), kind(d.Metric), codes(d.Keys), listed(d.From), d.Rule)
	}
	b.WriteString("\n## About the exporter\n\nResource and points have `server.address`, `server.port` and, where known, `k8s.node.name`.\n\n")
	row(&b, "Metric", "Kind, unit", "What")
	row(&b, "---", "---", "---")
	for _, m := range []*names.Metric{&names.ExporterUp, &names.ExporterFrozen, &names.ExporterScrapeDuration, &names.ExporterScrapeSamples} {
		row(&b, code(m.Name), kind(m), m.Description)
	}
	b.WriteString("\n## Fields\n\n")
	row(&b, "Field", "Number", "Other names", "Unit on the page", "Scope", "Notes")
	row(&b, "---", "---", "---", "---", "---", "---")
	for i := range devicetable.All {
		f := &devicetable.All[i]
		row(&b, code(f.Name), number(f), codes(f.Aliases), f.Unit, scope(f), notes(f))
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

func attributes(s devicetable.Series) string {
	var out []string
	if s.Key != "" {
		out = append(out, code(s.Key)+"="+s.Value)
	}
	if s.Key2 != "" {
		out = append(out, code(s.Key2)+"="+s.Value2)
	}
	return strings.Join(out, ", ")
}

func listed(ids []devicetable.ID) string {
	var out []string
	for _, id := range ids {
		out = append(out, devicetable.All[id].Name)
	}
	return codes(out)
}

func number(f *devicetable.Field) string {
	if f.Number == 0 {
		return "exporter"
	}
	return strconv.Itoa(f.Number)
}

func scope(f *devicetable.Field) string {
	if f.Scope == devicetable.Board {
		return "board"
	}
	return "instance"
}

func notes(f *devicetable.Field) string {
	var out []string
	if f.Label != "" {
		out = append(out, "a row for each "+code(f.Label))
	}
	if f.Signed {
		out = append(out, "may be negative")
	}
	if f.ZeroIsAbsent {
		out = append(out, "0 is a board without the sensor")
	}
	return strings.Join(out, "; ")
}
