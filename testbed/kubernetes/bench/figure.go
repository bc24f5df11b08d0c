// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// place is where a figure stands: a row's column of an entry.
type place struct{ entry, row, column string }

func (p place) String() string { return p.entry + "; " + p.row + "; " + p.column }

// errUnmeasured: the place exists and was not measured.
var errUnmeasured = errors.New("not measured yet")

// errFailed: it was measured, without a result.
var errFailed = fmt.Errorf("%w: the measurement failed", errUnmeasured)

// Values are what the turns gave at a place, NaN where one gave nothing.
func (p place) values(results map[string]frame.Result) ([]float64, error) {
	i := slices.IndexFunc(entries, func(e *frame.Entry) bool { return e.Name == p.entry })
	if i < 0 {
		return nil, fmt.Errorf("there is no entry %q", p.entry)
	}
	r, ok := results[p.entry]
	if !ok {
		return nil, errUnmeasured
	}
	row := r.Row(p.row)
	if row == nil {
		return nil, fmt.Errorf("%s has no row %q", p.entry, p.row)
	}
	if _, ok := row.Figures[p.column]; !ok {
		if slices.ContainsFunc(entries[i].Columns, func(c frame.Column) bool { return c.Key == p.column }) {
			return nil, errUnmeasured // it is newer than the measurement
		}
		return nil, fmt.Errorf("%s: %s has no column %q", p.entry, p.row, p.column)
	}
	all := row.Values(p.column)
	if len(known(all)) == 0 {
		if len(row.Failed) > 0 {
			return nil, errFailed
		}
		return nil, errUnmeasured
	}
	return all, nil
}

// decimals are those with which the report shows that column.
func (p place) decimals(results map[string]frame.Result) int {
	for _, e := range entries {
		if e.Name != p.entry {
			continue
		}
		for _, c := range shown(e, results[p.entry]) {
			if c.Key == p.column {
				return c.Decimals
			}
		}
	}
	return -1
}

// known are the values that are there.
func known(values []float64) []float64 { return slices.DeleteFunc(slices.Clone(values), math.IsNaN) }

// number writes a figure. With less than no decimals it has three digits, or all
// those before the point: for columns with rows of all sizes.
func number(v float64, decimals int) string {
	if decimals < 0 {
		decimals = 0
		if v := math.Abs(v); v > 0 && v < 100 {
			decimals = min(2-int(math.Floor(math.Log10(v))), 9)
			if short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', decimals, 64), 64); err == nil && short == math.Trunc(short) {
				decimals = 0 // 8, and not 8.00
			}
		}
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if rounded, err := strconv.ParseFloat(text, 64); err == nil && rounded == 0 {
		return strconv.FormatFloat(0, 'f', decimals, 64) // and not -0
	}
	return text
}
