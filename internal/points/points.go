// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package points reads data points and attributes as all components do.
package points // import "github.com/otelcol-gpu/otelcol-gpu/internal/points"

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Str is the text of an attribute, empty where there is none or it is of another type.
func Str(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok && v.Type() == pcommon.ValueTypeStr {
		return v.Str()
	}
	return ""
}

// Numbers are the points of a gauge or a sum; ok is false for every other type.
func Numbers(m pmetric.Metric) (points pmetric.NumberDataPointSlice, ok bool) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints(), true
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints(), true
	}
	return points, false
}

// IsDelta reports whether points of the metric are changes since the ones before
// and no values.
func IsDelta(m pmetric.Metric) bool {
	return m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta
}

// Value is the point's number, NaN where there is none: in a stale marker too.
func Value(p pmetric.NumberDataPoint) float64 {
	switch {
	case p.Flags().NoRecordedValue():
		return math.NaN()
	case p.ValueType() == pmetric.NumberDataPointValueTypeInt:
		return float64(p.IntValue())
	case p.ValueType() == pmetric.NumberDataPointValueTypeDouble:
		return p.DoubleValue()
	}
	return math.NaN()
}

// Visit gets what data points of every type have. A stale marker has the flag
// NoRecordedValue: it ends its series.
type Visit func(attrs pcommon.Map, ts pcommon.Timestamp, stale bool)

// Each calls f with every data point of m, in order.
func Each(m pmetric.Metric, f Visit) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		eachNumber(m.Gauge().DataPoints(), f)
	case pmetric.MetricTypeSum:
		eachNumber(m.Sum().DataPoints(), f)
	case pmetric.MetricTypeHistogram:
		each(m.Histogram().DataPoints(), f)
	case pmetric.MetricTypeExponentialHistogram:
		each(m.ExponentialHistogram().DataPoints(), f)
	case pmetric.MetricTypeSummary:
		each(m.Summary().DataPoints(), f)
	}
}

// Count is the number of data points of m.
func Count(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().Len()
	}
	return 0
}

// eachNumber is each for nearly all points that exist: generic code calls every method
// through a dictionary, which is measurably slower.
func eachNumber(s pmetric.NumberDataPointSlice, f Visit) {
	for i := range s.Len() {
		p := s.At(i)
		f(p.Attributes(), p.Timestamp(), p.Flags().NoRecordedValue())
	}
}

type point interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	Flags() pmetric.DataPointFlags
}

func each[P point](s interface {
	Len() int
	At(i int) P
}, f Visit) {
	for i := range s.Len() {
		p := s.At(i)
		f(p.Attributes(), p.Timestamp(), p.Flags().NoRecordedValue())
	}
}
