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
	"slices"
	"strconv"
	"strings"
)

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

// render is the report: every entry that was measured, in the order of entries.
func render(results map[string]result) []byte {
	var b bytes.Buffer
	b.WriteString("<!-- Written by testbed/bench/report: make bench. Do not edit. -->\n# Benchmarks\n\n" +
		"Everything here was measured and written by `make bench`. Rows of a table ran in turns, one after the other, on one machine: compare them, and\n" +
		"not tables. A figure is the median of the turns; in parentheses the least and the most. ×: the median of the ratios to the row that it\n" +
		"stands beside, of the same turn. What is measured is in `testbed/bench/report`; what each turn gave in `benchmarks.json`.\n")
	for _, e := range entries {
		if r, ok := results[e.name]; ok {
			r.render(&b)
		}
	}
	return b.Bytes()
}

func (r *result) render(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```\n%s\n```\n\n", r.Title, r.Text, r.Command)
	mc := r.Machine
	fmt.Fprintf(b, "%s, commit %s: %d cores (%s), %d GiB, %s, %s. Load before it began: %s.\n\n", mc.Time, mc.Commit, mc.Cores, mc.CPU, mc.Memory, mc.System, mc.Go, mc.Load)
	head, line := "| |", "|---|"
	for _, c := range r.Columns {
		title := c.Title
		if c.Goal != "" {
			title += " (goal: " + c.Goal + ")"
		}
		head, line = head+" "+title+" |", line+"---|"
	}
	fmt.Fprintf(b, "%s\n%s\n", head, line)
	for i := range r.Rows {
		fmt.Fprintf(b, "| %s |", r.Rows[i].Name)
		for _, c := range r.Columns {
			fmt.Fprintf(b, " %s |", r.cell(i, c))
		}
		b.WriteByte('\n')
	}
	for _, row := range r.Rows {
		for _, text := range row.Failed {
			first, _, _ := strings.Cut(text, "\n")
			fmt.Fprintf(b, "\n%s failed: %s.\n", row.Name, first)
		}
	}
}

// cell is a row's figure: median, range, and the ratio.
func (r *result) cell(i int, c column) string {
	all := r.Rows[i].values(c.Key)
	values := slices.DeleteFunc(slices.Clone(all), math.IsNaN)
	if len(values) == 0 {
		return ""
	}
	number := func(v float64) string {
		if c.Decimals < 0 { // of all sizes: three digits are enough
			if math.Abs(v) >= 100 {
				return strconv.FormatFloat(v, 'f', 0, 64)
			}
			return strconv.FormatFloat(v, 'g', 3, 64)
		}
		return strconv.FormatFloat(v, 'f', c.Decimals, 64)
	}
	text := number(median(values))
	if least, most := number(slices.Min(values)), number(slices.Max(values)); least != most {
		text += " (" + least + " to " + most + ")"
	}
	beside := 0
	if name := r.Rows[i].Beside; name != "" {
		beside = slices.IndexFunc(r.Rows, func(o rowResult) bool { return o.Name == name })
	}
	if c.Ratio && beside >= 0 && beside != i {
		if all := ratios(all, r.Rows[beside].values(c.Key)); len(all) > 0 {
			text += fmt.Sprintf(" **×%.2f**", median(all))
		}
	}
	return text
}
