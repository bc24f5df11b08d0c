// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// dataPath is what each turn gave, reportPath the report.
func dataPath(root string) string   { return filepath.Join(root, "docs", "performance.json") }
func reportPath(root string) string { return filepath.Join(root, "docs", "performance.md") }

// open reads what was measured before; there may be nothing.
func open(path string) (map[string]result, error) {
	results := map[string]result{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return results, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to begin anew", path, err)
	}
	return results, nil
}

func save(path string, results map[string]result) error {
	text, err := json.MarshalIndent(results, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// write writes the report and the figures of the guides from what was measured.
func write(root string, results map[string]result) error {
	report, err := render(results)
	if err != nil {
		return err
	}
	if err := os.WriteFile(reportPath(root), report, 0o644); err != nil {
		return err
	}
	return fillGuides(root, results)
}

// render is the report: all entries in their order. Those that nobody measured
// have a section too, so that links to it lead somewhere.
func render(results map[string]result) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("<!-- Written by testbed/kubernetes/bench: make bench. Do not edit. -->\n# Performance\n\n" +
		"Everything here was measured and written by `make bench`; what each turn gave is in [performance.json](performance.json), and how it is measured\n" +
		"in [testbed/kubernetes/bench](../testbed/kubernetes/bench/README.md).\n\n" +
		"- Rows of a table ran in turns, one after the other, on one machine: compare them, and not tables.\n" +
		"- A figure is the median of the turns; in parentheses the least and the most, where they differ. The command above a table says how many turns there were: one is one.\n" +
		"- **×** is the median of the ratios to the row that it stands beside, of the same turn.\n" +
		"- The load is that of the minute before, in which the measurement before may have run: where it is near the number of cores or above, ratios mean more than times.\n\n")
	renderMachines(&b, results)
	if err := renderGoals(&b, results); err != nil {
		return nil, err
	}
	var missing []string
	for _, e := range entries {
		if _, ok := results[e.name]; !ok {
			missing = append(missing, fmt.Sprintf("[%s](#%s)", e.title, slug(e.title)))
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(&b, "\nNot measured yet: %s.\n", strings.Join(missing, ", "))
	}
	for _, e := range entries {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", e.title, e.text)
		if r, ok := results[e.name]; ok {
			e.render(&b, &r)
		} else {
			fmt.Fprintf(&b, "```\nmake bench BENCH='-only %s'\n```\n\nNot measured yet.\n", e.name)
		}
	}
	return b.Bytes(), nil
}

// slug is the fragment of a heading, as GitHub makes it.
func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
}

// entryOf finds an entry, which a test says is there.
func entryOf(name string) *entry {
	i := slices.IndexFunc(entries, func(e *entry) bool { return e.name == name })
	if i < 0 {
		return &entry{}
	}
	return entries[i]
}

// renderMachines says on what, and beside what, with each that there was.
func renderMachines(b *bytes.Buffer, results map[string]result) {
	var order []string
	of := map[string][]string{}
	for _, e := range entries {
		r, ok := results[e.name]
		if !ok {
			continue
		}
		line := r.Machine.String()
		if of[line] == nil {
			order = append(order, line)
		}
		of[line] = append(of[line], "`"+e.name+"`")
	}
	for _, line := range order {
		fmt.Fprintf(b, "- %s", line)
		if len(order) > 1 {
			fmt.Fprintf(b, " (%s)", strings.Join(of[line], ", "))
		}
		b.WriteByte('\n')
	}
	if len(order) > 0 {
		b.WriteByte('\n')
	}
}

// shown are the columns of an entry's tables: its own, or, of Go benchmarks, the
// units that there were.
func (e *entry) shown(r result) []column {
	if e.columns != nil {
		return e.columns
	}
	return r.Columns
}

func (e *entry) render(b *bytes.Buffer, r *result) {
	mc := r.Machine
	fmt.Fprintf(b, "```\n%s\n```\n\n%s, commit %s. Load before it began: %s.\n", r.Command, mc.Time, mc.Commit, mc.Load)
	for _, t := range e.tables(r) {
		if t.caption != "" {
			fmt.Fprintf(b, "\n`%s`:\n", t.caption)
		}
		b.WriteByte('\n')
		for i, line := range t.cells {
			fmt.Fprintf(b, "| %s |\n", strings.Join(line, " | "))
			if i == 0 {
				fmt.Fprintf(b, "|%s\n", strings.Repeat("---|", len(line)))
			}
		}
	}
	for _, row := range r.Rows {
		for _, text := range row.Failed {
			first, _, _ := strings.Cut(text, "\n")
			fmt.Fprintf(b, "\n%s failed: %s.\n", row.Name, first)
		}
	}
}

// table is one of an entry, the first line its head.
type table struct {
	caption string
	cells   [][]string
}

// wide is how many columns a table of Go benchmarks has at the most; one with more
// of them than rows lies on its side.
const wide = 8

// tables are an entry's: one, if it has columns of its own. Go benchmarks have one
// for each package and set of units.
func (e *entry) tables(r *result) (all []table) {
	if e.columns != nil {
		rows := make([]int, len(r.Rows))
		for i := range rows {
			rows[i] = i
		}
		return []table{{cells: r.cells(e.columns, rows)}}
	}
	var order []string
	groups := map[string][]int{}
	for i := range r.Rows {
		caption, _, ok := strings.Cut(r.Rows[i].Name, ": ")
		if !ok {
			caption = ""
		}
		key := caption
		for _, c := range r.units(i) {
			key += "\n" + c.Key
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], i)
	}
	last := ""
	for _, key := range order {
		rows := groups[key]
		units := r.units(rows[0])
		if len(units) == 0 {
			continue // it failed
		}
		caption, _, _ := strings.Cut(key, "\n")
		for i, c := range units {
			units[i] = r.readable(c, rows)
		}
		t := table{cells: r.cells(units, rows)}
		if caption != last {
			t.caption, last = caption, caption
		}
		for i, row := range rows {
			t.cells[i+1][0] = strings.TrimPrefix(r.Rows[row].Name, caption+": ")
		}
		if len(units) > wide && len(units) > len(rows) {
			t.cells = turned(t.cells)
		}
		all = append(all, t)
	}
	return all
}

// units are the columns that a row has figures of. What a benchmark of memory takes
// to find out is of no interest.
func (r *result) units(row int) (all []column) {
	memory := strings.HasPrefix(r.Rows[row].Name[strings.LastIndex(r.Rows[row].Name, " ")+1:], "Memory")
	for _, c := range r.Columns {
		if memory && strings.HasSuffix(c.Key, "/op") {
			continue
		}
		if len(known(r.Rows[row].values(c.Key))) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// larger are units of the same in which numbers are shorter, the largest first.
var larger = []struct {
	of, unit string
	factor   float64
}{{"ns/", "ms/", 1e6}, {"ns/", "us/", 1e3}, {"B/", "MiB/", 1 << 20}, {"B/", "KiB/", 1 << 10}}

// readable has a column in the largest unit that makes none of its rows less than
// one.
func (r *result) readable(c column, rows []int) column {
	least := math.Inf(1)
	for _, row := range rows {
		if v := median(known(r.Rows[row].values(c.Key))); v > 0 {
			least = min(least, v)
		}
	}
	for _, l := range larger {
		if rest, ok := strings.CutPrefix(c.Title, l.of); ok && least >= l.factor && !math.IsInf(least, 1) {
			c.Title, c.divisor = l.unit+rest, l.factor
			return c
		}
	}
	return c
}

// cells are the lines of a table.
func (r *result) cells(columns []column, rows []int) [][]string {
	head := []string{""}
	for _, c := range columns {
		title := c.Title
		if c.Goal != "" {
			title += " (goal: " + c.Goal + ")"
		}
		head = append(head, title)
	}
	all := [][]string{head}
	for _, i := range rows {
		line := []string{r.Rows[i].Name}
		for _, c := range columns {
			line = append(line, r.cell(i, c))
		}
		all = append(all, line)
	}
	return all
}

// turned makes columns of rows.
func turned(cells [][]string) [][]string {
	all := make([][]string, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			all[i] = append(all[i], cell)
		}
	}
	return all
}

// spread is the median, and the range where there is one.
func spread(values []float64, decimals int) string {
	text := number(median(values), decimals)
	if least, most := number(slices.Min(values), decimals), number(slices.Max(values), decimals); least != most {
		text += " (" + least + " to " + most + ")"
	}
	return text
}

// cell is a row's figure: median, range, and the ratio.
func (r *result) cell(i int, c column) string {
	all := r.Rows[i].values(c.Key)
	values := known(all)
	if len(values) == 0 {
		return ""
	}
	if c.divisor != 0 {
		for i := range values {
			values[i] /= c.divisor
		}
	}
	text := spread(values, c.Decimals)
	beside := &r.Rows[0]
	if name := r.Rows[i].Beside; name != "" {
		beside = r.row(name)
	}
	if c.Ratio && beside != nil && beside != &r.Rows[i] {
		if all := ratios(all, beside.values(c.Key)); len(all) > 0 {
			text += fmt.Sprintf(" **×%.2f**", median(all))
		}
	}
	return text
}
