// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package page // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"

import (
	"iter"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// only is the point of a metric with one.
func only(m pmetric.Metric) (pmetric.NumberDataPoint, bool) {
	points, ok := Numbers(m)
	if !ok || points.Len() != 1 {
		return pmetric.NumberDataPoint{}, false
	}
	return points.At(0), true
}

// common is the value of a label that all points have; empty if they differ.
func common(metrics []pmetric.Metric, label string) (value string) {
	for _, m := range metrics {
		points, ok := Numbers(m)
		if !ok {
			return ""
		}
		goesOn := live(m)
		for _, p := range points.All() {
			if goesOn && p.Flags().NoRecordedValue() {
				continue
			}
			v, ok := p.Attributes().Get(label)
			if !ok || value != "" && v.AsString() != value {
				return ""
			}
			value = v.AsString()
		}
	}
	return value
}

// live reports whether a metric has a point that is no marker.
func live(m pmetric.Metric) bool {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return has(m.Gauge().DataPoints().All())
	case pmetric.MetricTypeSum:
		return has(m.Sum().DataPoints().All())
	case pmetric.MetricTypeHistogram:
		return has(m.Histogram().DataPoints().All())
	case pmetric.MetricTypeExponentialHistogram:
		return has(m.ExponentialHistogram().DataPoints().All())
	case pmetric.MetricTypeSummary:
		return has(m.Summary().DataPoints().All())
	default:
		return false
	}
}

func has[P interface{ Flags() pmetric.DataPointFlags }](points iter.Seq2[int, P]) bool {
	for _, p := range points {
		if !p.Flags().NoRecordedValue() {
			return true
		}
	}
	return false
}

// Numbers are the points of a gauge or a sum; not ok for other types.
func Numbers(m pmetric.Metric) (pmetric.NumberDataPointSlice, bool) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints(), true
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints(), true
	default:
		return pmetric.NumberDataPointSlice{}, false
	}
}

// Value is the value of a point, whatever its type.
func Value(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}
