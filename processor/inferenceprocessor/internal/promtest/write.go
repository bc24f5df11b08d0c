// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package promtest writes the points of a page as text, for tests.
package promtest // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/promtest"

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Text writes the points of a resource, by metric, sorted: under a line with the
// metric's name, kind and unit stands a line for each point with its attributes and its
// value, or with count and sum, bounds, and the buckets' counts. What the operation and
// the provider of gen_ai metrics always are is left out, and the hash of bounds. A
// family that has passed as it came is a line with its name.
func Text(rm pmetric.ResourceMetrics) string {
	var made, passed []string
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if sm.Scope().Name() == "" {
				passed = append(passed, m.Name()+" passes\n")
				continue
			}
			points := points(m)
			slices.Sort(points)
			made = append(made, fmt.Sprintf("%s (%s, %s)\n  %s\n", m.Name(), kind(m), m.Unit(), strings.Join(points, "\n  ")))
		}
	}
	slices.Sort(made)
	slices.Sort(passed)
	return strings.Join(append(made, slices.Compact(passed)...), "")
}

func kind(m pmetric.Metric) string {
	switch m.Type() {
	case pmetric.MetricTypeHistogram:
		return "histogram"
	case pmetric.MetricTypeGauge:
		return "gauge"
	}
	if m.Sum().IsMonotonic() {
		return "counter"
	}
	return "updowncounter"
}

func points(m pmetric.Metric) (lines []string) {
	if m.Type() == pmetric.MetricTypeHistogram {
		for _, p := range m.Histogram().DataPoints().All() {
			lines = append(lines, fmt.Sprintf("%s count %d sum %v bounds %v buckets %v%s", keys(p.Attributes()), p.Count(), p.Sum(),
				p.ExplicitBounds().AsRaw(), p.BucketCounts().AsRaw(), since(p.StartTimestamp())))
		}
		return lines
	}
	numbers := m.Gauge().DataPoints
	if m.Type() == pmetric.MetricTypeSum {
		numbers = m.Sum().DataPoints
	}
	for _, p := range numbers().All() {
		value := p.DoubleValue()
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			value = float64(p.IntValue())
		}
		lines = append(lines, fmt.Sprintf("%s %v%s", keys(p.Attributes()), value, since(p.StartTimestamp())))
	}
	return lines
}

// since is when a series began, in seconds.
func since(start pcommon.Timestamp) string {
	if start == 0 {
		return ""
	}
	return fmt.Sprintf(" since %d", start.AsTime().Unix())
}

func keys(m pcommon.Map) string {
	var list []string
	for k, v := range m.All() {
		switch {
		case k == names.GenAIProviderName, k == names.GenAIOperationName && v.Str() == names.GenAIOperationAny:
		case k == names.InferenceBounds && v.Str() != "none":
		default:
			list = append(list, k+"="+v.Str())
		}
	}
	slices.Sort(list)
	return "{" + strings.Join(list, ", ") + "}"
}
