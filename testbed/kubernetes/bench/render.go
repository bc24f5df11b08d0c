// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// dataPath are the medians that the repository keeps, turnsPath is what each turn gave.
func dataPath(root string) string  { return filepath.Join(root, "docs", "performance.json") }
func turnsPath(root string) string { return filepath.Join(root, "bin", "performance.json") }

// reportPath is the page of the repository, fullPath the report with every row.
func reportPath(root string) string { return filepath.Join(root, "docs", "performance.md") }
func fullPath(root string) string   { return filepath.Join(root, "bin", "performance.md") }

// open reads what was measured before; there may be nothing.
func open(path string) (map[string]frame.Result, error) {
	results := map[string]frame.Result{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return results, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to start again", path, err)
	}
	return results, nil
}

// save writes results, a row on a line.
func save(path string, results map[string]frame.Result) error {
	var b bytes.Buffer
	line := func(value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			panic(err) // there is nothing in it that JSON has no form for
		}
		return string(text)
	}
	b.WriteString("{")
	for i, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n%q: {\n \"machine\": %s,\n \"command\": %s,\n", name, line(r.Machine), line(r.Command))
		if len(r.Sources) > 0 {
			fmt.Fprintf(&b, " \"sources\": %s,\n", line(r.Sources))
		}
		fmt.Fprintf(&b, " \"columns\": %s,\n \"rows\": [", line(r.Columns))
		for i, row := range r.Rows {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString("\n  " + line(row))
		}
		b.WriteString("\n ]\n}")
	}
	b.WriteString("\n}\n")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// medians has the median of each figure in place of its turns, with five digits.
func medians(results map[string]frame.Result) map[string]frame.Result {
	all := map[string]frame.Result{}
	for name, r := range results {
		rows := make([]frame.RowResult, len(r.Rows))
		for i, row := range r.Rows {
			figures := map[string][]*float64{}
			for column := range row.Figures {
				figures[column] = []*float64{nil}
				if values := known(row.Values(column)); len(values) > 0 {
					if v, err := strconv.ParseFloat(strconv.FormatFloat(frame.Median(values), 'g', 5, 64), 64); err == nil {
						figures[column][0] = &v
					}
				}
			}
			rows[i] = frame.RowResult{Name: row.Name, Beside: row.Beside, Figures: figures, Failed: row.Failed}
		}
		r.Rows = rows
		all[name] = r
	}
	return all
}

// Write writes the page and the figures of the guides.
func write(root string, results map[string]frame.Result) error {
	changes, err := changes(root, results)
	if err != nil {
		return err
	}
	text, err := page(results, changes)
	if err != nil {
		return err
	}
	if err := os.WriteFile(reportPath(root), text, 0o644); err != nil {
		return err
	}
	unfilled := fillGuides(root, results)
	source, err := os.ReadFile(sizingSource(root))
	if err != nil {
		return err
	}
	return errors.Join(unfilled, os.WriteFile(sizingPath(root), []byte(sizing(string(source))), 0o644))
}

// full is the report with every row and what the turns gave.
func full(results map[string]frame.Result) []byte {
	var b bytes.Buffer
	b.WriteString("# Performance, every row\n\nA figure is the median of the turns; in parentheses the least and the most. **×** is the median of the ratios of the same turn.\n\n")
	renderMachines(&b, results)
	for _, e := range entries {
		if r, ok := results[e.Name]; ok {
			mc := r.Machine
			fmt.Fprintf(&b, "\n## %s\n\n%s\n\n```\n%s\n```\n\n%s, commit %s. Load before it began: %s.\n", e.Title, e.Text, r.Command, mc.Time, mc.Commit, mc.Load)
			renderTables(&b, e, &r, nil)
			renderFailed(&b, &r)
		}
	}
	return b.Bytes()
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

// entryOf finds an entry, which exists according to a test.
func entryOf(name string) *frame.Entry {
	i := slices.IndexFunc(entries, func(e *frame.Entry) bool { return e.Name == name })
	if i < 0 {
		return &frame.Entry{}
	}
	return entries[i]
}

// renderMachines lists the machines and the versions of peers.
func renderMachines(b *bytes.Buffer, results map[string]frame.Result) {
	var order []string
	of := map[string][]string{}
	for _, e := range entries {
		r, ok := results[e.Name]
		if !ok {
			continue
		}
		line := r.Machine.String()
		if of[line] == nil {
			order = append(order, line)
		}
		of[line] = append(of[line], "`"+e.Name+"`")
	}
	for _, line := range order {
		names := of[line]
		if len(order) > 1 {
			line += " (" + strings.Join(names, ", ") + ")"
		}
		b.WriteString(wrapped("- ", line))
	}
	if len(order) > 0 {
		b.WriteByte('\n')
	}
}

// shown are the columns of an entry's tables: its own, or, of Go benchmarks, the
// units that there were.
func shown(e *frame.Entry, r frame.Result) []frame.Column {
	if e.Columns != nil {
		return e.Columns
	}
	return r.Columns
}

// renderTables writes the tables of an entry, with the rows that are wanted.
func renderTables(b *bytes.Buffer, e *frame.Entry, r *frame.Result, wanted func(row string) bool) {
	for _, t := range tables(e, r) {
		if t.caption != "" {
			fmt.Fprintf(b, "\n`%s`:\n", t.caption)
		}
		b.WriteByte('\n')
		for i, line := range t.cells {
			if i > 0 && wanted != nil && !wanted(line[0]) {
				continue
			}
			fmt.Fprintf(b, "| %s |\n", strings.Join(line, " | "))
			if i == 0 {
				fmt.Fprintf(b, "|%s\n", strings.Repeat("---|", len(line)))
			}
		}
	}
}

// renderFailed names the rows that failed.
func renderFailed(b *bytes.Buffer, r *frame.Result) {
	for _, row := range r.Rows {
		for _, text := range row.Failed {
			first, _, _ := strings.Cut(text, "\n")
			b.WriteString("\n" + wrapped("", fmt.Sprintf("%s failed: %s.", row.Name, first)))
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
func tables(e *frame.Entry, r *frame.Result) (all []table) {
	if e.Columns != nil {
		rows := make([]int, len(r.Rows))
		for i := range rows {
			rows[i] = i
		}
		return []table{{cells: cells(r, e.Columns, rows)}}
	}
	var order []string
	groups := map[string][]int{}
	for i := range r.Rows {
		caption, _, ok := strings.Cut(r.Rows[i].Name, ": ")
		if !ok {
			caption = ""
		}
		key := caption
		for _, c := range unitsOf(r, i) {
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
		units := unitsOf(r, rows[0])
		if len(units) == 0 {
			continue // it failed
		}
		caption, _, _ := strings.Cut(key, "\n")
		for i, c := range units {
			units[i] = readable(r, c, rows)
		}
		t := table{cells: cells(r, units, rows)}
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
func unitsOf(r *frame.Result, row int) (all []frame.Column) {
	memory := strings.HasPrefix(r.Rows[row].Name[strings.LastIndex(r.Rows[row].Name, " ")+1:], "Memory")
	for _, c := range r.Columns {
		if memory && strings.HasSuffix(c.Key, "/op") {
			continue
		}
		if len(known(r.Rows[row].Values(c.Key))) > 0 {
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
func readable(r *frame.Result, c frame.Column, rows []int) frame.Column {
	least := math.Inf(1)
	for _, row := range rows {
		if v := frame.Median(known(r.Rows[row].Values(c.Key))); v > 0 {
			least = min(least, v)
		}
	}
	for _, l := range larger {
		if rest, ok := strings.CutPrefix(c.Title, l.of); ok && least >= l.factor && !math.IsInf(least, 1) {
			c.Title, c.Divisor = l.unit+rest, l.factor
			return c
		}
	}
	return c
}

// cells are the lines of a table.
func cells(r *frame.Result, columns []frame.Column, rows []int) [][]string {
	head := []string{"row"}
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
			line = append(line, cell(r, i, c))
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
	text := number(frame.Median(values), decimals)
	if least, most := number(slices.Min(values), decimals), number(slices.Max(values), decimals); least != most {
		text += " (" + least + " to " + most + ")"
	}
	return text
}

// cell is a row's figure: median, range, and the ratio.
func cell(r *frame.Result, i int, c frame.Column) string {
	all := r.Rows[i].Values(c.Key)
	values := known(all)
	if len(values) == 0 {
		return ""
	}
	if c.Divisor != 0 {
		for i := range values {
			values[i] /= c.Divisor
		}
	}
	text := spread(values, c.Decimals)
	beside := &r.Rows[0]
	if name := r.Rows[i].Beside; name != "" {
		beside = r.Row(name)
	}
	if c.Ratio && beside != nil && beside != &r.Rows[i] {
		if all := frame.Ratios(all, beside.Values(c.Key)); len(all) > 0 {
			text += fmt.Sprintf(" **×%.2f**", frame.Median(all))
		}
	}
	return text
}
