// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package costreport

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// csvColumn is a column of WriteCSV.
type csvColumn struct {
	name string
	cell func(*consoleapi.CostLine) string
}

var csvGroups = []struct {
	name string
	of   func(*consoleapi.CostGroup) *string
	by   []By
}{
	{"tenant", func(g *consoleapi.CostGroup) *string { return g.Tenant }, []By{ByTenant, ByRow}},
	{"cluster", func(g *consoleapi.CostGroup) *string { return g.Cluster }, []By{ByNamespace, ByService, ByNodePool, ByRow}},
	{"slurm_cluster", func(g *consoleapi.CostGroup) *string { return g.SlurmCluster }, []By{ByNamespace, ByService, ByRow}},
	{"namespace", func(g *consoleapi.CostGroup) *string { return g.Namespace }, []By{ByNamespace, ByService, ByRow}},
	{"service", func(g *consoleapi.CostGroup) *string { return g.Service }, []By{ByService, ByRow}},
	{"pod", func(g *consoleapi.CostGroup) *string { return g.Pod }, []By{ByRow}},
	{"model", func(g *consoleapi.CostGroup) *string { return g.Model }, []By{ByModel, ByRow}},
	{"mig_profile", func(g *consoleapi.CostGroup) *string { return g.MIGProfile }, []By{ByRow}},
	{"host_type", func(g *consoleapi.CostGroup) *string { return g.HostType }, []By{ByRow}},
	{"region", func(g *consoleapi.CostGroup) *string { return g.Region }, []By{ByRow}},
	{"capacity_type", func(g *consoleapi.CostGroup) *string { return g.CapacityType }, []By{ByCapacity, ByRow}},
	{"node_pool", func(g *consoleapi.CostGroup) *string { return g.NodePool }, []By{ByNodePool, ByRow}},
	{"node_labels", func(g *consoleapi.CostGroup) *string { return g.NodeLabels }, []By{ByRow}},
}

// WriteCSV writes the lines of a report, without its sums, so that a column can be added
// up. A cell without text is not known. Times are seconds of a GPU, energy joules, carbon
// dioxide grams, and all numbers are exact.
func WriteCSV(w io.Writer, r *Report) error {
	columns := csvColumns(r)
	out := bufio.NewWriter(w)
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = c.name
	}
	writeLine(out, cells)
	for i := range r.Lines {
		l := r.line(&r.Lines[i])
		for i, c := range columns {
			cells[i] = c.cell(&l)
		}
		writeLine(out, cells)
	}
	return out.Flush()
}

// writeLine writes a line of CSV. A cell is in quotes if it has more than letters, digits and a few
// signs: a spreadsheet that separates cells at semicolons or tabs would find them in names too. An
// error is that of the next Flush.
func writeLine(out *bufio.Writer, cells []string) {
	for i, cell := range cells {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		if strings.ContainsFunc(cell, separates) {
			cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
		}
		_, _ = out.WriteString(cell)
	}
	_ = out.WriteByte('\n')
}

// separates reports whether some program might end a cell at r.
func separates(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._:/+-", r)
}

func csvColumns(r *Report) []csvColumn {
	columns := []csvColumn{
		{"period_start", func(l *consoleapi.CostLine) string { return csvTime(l.Start) }},
		{"period_end", func(l *consoleapi.CostLine) string { return csvTime(l.End) }},
		{"state", func(l *consoleapi.CostLine) string { return csvText(l.State) }},
	}
	for _, g := range csvGroups {
		if g.name == "slurm_cluster" && !slices.ContainsFunc(r.Lines, func(l Line) bool { return l.Group.SlurmCluster != "" }) {
			continue // of reports with jobs
		}
		for _, by := range g.by {
			if by == r.By {
				columns = append(columns, csvColumn{g.name, func(l *consoleapi.CostLine) string { return csvText(g.of(&l.Group)) }})
			}
		}
	}
	if r.Top > 0 {
		columns = append(columns, flag("others", func(l *consoleapi.CostLine) bool { return l.Others }))
	}
	if r.By == ByRow {
		columns = append(columns,
			csvColumn{"gpu_hour_price", func(l *consoleapi.CostLine) string { return csvPrice(l.Group.Price) }},
			csvColumn{"price_kind", func(l *consoleapi.CostLine) string {
				if l.Group.Price == nil {
					return ""
				}
				return l.Group.Price.Kind
			}})
	}
	columns = append(columns,
		number("gpu_seconds", func(l *consoleapi.CostLine) *json.Number { return &l.Time }),
		number("used_gpu_seconds", func(l *consoleapi.CostLine) *json.Number { return l.Used }),
		number("idle_gpu_seconds", func(l *consoleapi.CostLine) *json.Number { return l.Idle }),
		number("unmeasured_gpu_seconds", func(l *consoleapi.CostLine) *json.Number { return l.Unmeasured }),
		number("unplaced_gpu_seconds", func(l *consoleapi.CostLine) *json.Number { return &l.Unplaced }),
		number("unpriced_gpu_seconds", func(l *consoleapi.CostLine) *json.Number { return &l.Unpriced }),
		csvColumn{"currency", func(*consoleapi.CostLine) string { return r.Currency }},
		number("cost", func(l *consoleapi.CostLine) *json.Number { return l.Cost }),
		number("idle_cost", func(l *consoleapi.CostLine) *json.Number { return l.IdleCost }),
		number("priced_cost", func(l *consoleapi.CostLine) *json.Number { return l.PricedCost }))
	if r.ShareUnheld {
		columns = append(columns, number("shared_cost", func(l *consoleapi.CostLine) *json.Number { return l.SharedCost }))
	}
	return append(columns,
		energy("board_energy_joules", func(e *consoleapi.CostEnergy) json.Number { return e.Board }),
		energy("share_energy_joules", func(e *consoleapi.CostEnergy) json.Number { return e.Share }),
		energy("integrated_energy_joules", func(e *consoleapi.CostEnergy) json.Number { return e.Integrated }),
		number("carbon_grams", func(l *consoleapi.CostLine) *json.Number { return l.Carbon }),
		flag("open", func(l *consoleapi.CostLine) bool { return l.Open }),
		flag("unknown_hours", func(l *consoleapi.CostLine) bool { return l.UnknownHours }),
		flag("contested", func(l *consoleapi.CostLine) bool { return l.Contested }),
		flag("board_metered", func(l *consoleapi.CostLine) bool { return l.BoardMetered }),
		flag("estimated", func(l *consoleapi.CostLine) bool { return l.Estimated }))
}

func number(name string, of func(*consoleapi.CostLine) *json.Number) csvColumn {
	return csvColumn{name, func(l *consoleapi.CostLine) string {
		if n := of(l); n != nil {
			return n.String()
		}
		return ""
	}}
}

// energy is empty where none was measured.
func energy(name string, of func(*consoleapi.CostEnergy) json.Number) csvColumn {
	return csvColumn{name, func(l *consoleapi.CostLine) string {
		if l.Energy == nil {
			return ""
		}
		return of(l.Energy).String()
	}}
}

func flag(name string, of func(*consoleapi.CostLine) bool) csvColumn {
	return csvColumn{name, func(l *consoleapi.CostLine) string { return strconv.FormatBool(of(l)) }}
}

func csvTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func csvText(text *string) string {
	if text == nil {
		return ""
	}
	return harmless(*text)
}

// harmless returns a text that no spreadsheet takes for a formula: others choose the names. Some
// ignore blanks in front, and know the full-width forms of the characters.
func harmless(text string) string {
	if first := strings.TrimLeftFunc(text, unicode.IsSpace); first != "" && strings.ContainsAny(string([]rune(first)[0]), "=+-@＝＋－＠") {
		return "'" + text
	}
	return text
}

// csvPrice is rounded down to billionths, where the price of an instance is divided by its
// GPUs.
func csvPrice(p *consoleapi.CostPrice) string {
	if p == nil {
		return ""
	}
	return prices.Billionths(p.Nano / p.Per).String()
}
