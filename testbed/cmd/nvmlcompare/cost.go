// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// costs are the durations of calls in µs, by call and return.
type costs map[string][]float64

func (c costs) add(calls []call) {
	for _, one := range calls {
		name := one.Name
		if one.Return != 0 {
			name += fmt.Sprintf(" = %d", one.Return)
		}
		c[name] = append(c[name], one.Micros)
	}
}

// print writes a line for each call: how often, and what it took.
func (c costs) print(w io.Writer, runs int) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(table, "call\ta run\tmedian µs\tp99 µs\tmost µs\t\n")
	for _, name := range slices.Sorted(maps.Keys(c)) {
		all := c[name]
		slices.Sort(all)
		at := func(part float64) float64 { return all[min(int(part*float64(len(all))), len(all)-1)] }
		_, _ = fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t\n", name, float64(len(all))/float64(runs), at(0.5), at(0.99), all[len(all)-1])
	}
	_ = table.Flush()
}
