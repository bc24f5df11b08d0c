// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package optional has the values of the API that may be unknown: nil is no data.
package optional // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"

import (
	"math"

	"github.com/prometheus/common/model"
)

// Pointer is a known value.
func Pointer[T any](v T) *T { return &v }

// Text is a label; an empty one is no data.
func Text(v model.LabelValue) *string {
	if v == "" {
		return nil
	}
	s := string(v)
	return &s
}

// Whole is a count that a query returns.
func Whole(v *float64) *int {
	if v == nil {
		return nil
	}
	return Pointer(max(0, int(math.Round(*v))))
}

// Plus adds counts; what is not known makes the sum so.
func Plus(counts ...*int) *int {
	sum := 0
	for _, c := range counts {
		if c == nil {
			return nil
		}
		sum += *c
	}
	return &sum
}

// Above reports whether a count is known and above 0.
func Above(c *int) bool { return c != nil && *c > 0 }

// Zero is a count, or 0.
func Zero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// Value is a text, or an empty one.
func Value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
