// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"math"
	"slices"
)

// Median of values; NaN of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Ratios are those of each turn: what was measured next to each other.
func Ratios(values, beside []float64) (all []float64) {
	for i := range min(len(values), len(beside)) {
		if r := values[i] / beside[i]; !math.IsNaN(r) && !math.IsInf(r, 0) {
			all = append(all, r)
		}
	}
	return all
}
