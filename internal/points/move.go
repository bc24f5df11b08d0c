// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package points

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// movable is a data point of any type.
type movable[P any] interface {
	point
	SetTimestamp(pcommon.Timestamp)
	SetFlags(pmetric.DataPointFlags)
	MoveTo(P)
}

// movableSlice is the slice of a metric's data points.
type movableSlice[P any] interface {
	AppendEmpty() P
	RemoveIf(func(P) bool)
}

// Destination chooses the metric that a point goes to, which has the type of the metric
// that the point comes from. It counts only with the Fate Moved.
type Destination func(attrs pcommon.Map, ts pcommon.Timestamp, marker bool) (pmetric.Metric, Fate)

// Fate is what becomes of a point.
type Fate uint8

const (
	Stay Fate = iota
	Moved
	Dropped
)

// Move takes the points of src to where they go, in order.
func Move(src pmetric.Metric, where Destination) {
	switch src.Type() {
	case pmetric.MetricTypeGauge:
		move(src.Gauge().DataPoints(), where, func(m pmetric.Metric) pmetric.NumberDataPointSlice {
			return m.Gauge().DataPoints()
		})
	case pmetric.MetricTypeSum:
		move(src.Sum().DataPoints(), where, func(m pmetric.Metric) pmetric.NumberDataPointSlice {
			return m.Sum().DataPoints()
		})
	case pmetric.MetricTypeHistogram:
		move(src.Histogram().DataPoints(), where, func(m pmetric.Metric) pmetric.HistogramDataPointSlice {
			return m.Histogram().DataPoints()
		})
	case pmetric.MetricTypeExponentialHistogram:
		move(src.ExponentialHistogram().DataPoints(), where, func(m pmetric.Metric) pmetric.ExponentialHistogramDataPointSlice {
			return m.ExponentialHistogram().DataPoints()
		})
	case pmetric.MetricTypeSummary:
		move(src.Summary().DataPoints(), where, func(m pmetric.Metric) pmetric.SummaryDataPointSlice {
			return m.Summary().DataPoints()
		})
	}
}

func move[P movable[P], S movableSlice[P]](src S, where Destination, slice func(pmetric.Metric) S) {
	src.RemoveIf(func(p P) bool {
		to, fate := where(p.Attributes(), p.Timestamp(), p.Flags().NoRecordedValue())
		if fate == Moved {
			p.MoveTo(slice(to).AppendEmpty())
		}
		return fate != Stay
	})
}

// Describe gives dst the name, unit, description, type and temporality of src,
// and no points.
func Describe(src, dst pmetric.Metric) {
	dst.SetName(src.Name())
	dst.SetUnit(src.Unit())
	dst.SetDescription(src.Description())
	src.Metadata().CopyTo(dst.Metadata())
	switch src.Type() {
	case pmetric.MetricTypeGauge:
		dst.SetEmptyGauge()
	case pmetric.MetricTypeSum:
		sum := dst.SetEmptySum()
		sum.SetAggregationTemporality(src.Sum().AggregationTemporality())
		sum.SetIsMonotonic(src.Sum().IsMonotonic())
	case pmetric.MetricTypeHistogram:
		dst.SetEmptyHistogram().SetAggregationTemporality(src.Histogram().AggregationTemporality())
	case pmetric.MetricTypeExponentialHistogram:
		dst.SetEmptyExponentialHistogram().SetAggregationTemporality(src.ExponentialHistogram().AggregationTemporality())
	case pmetric.MetricTypeSummary:
		dst.SetEmptySummary()
	}
}

// AppendMarker adds a point to m that ends the series attrs at ts, of a histogram with these
// bounds.
func AppendMarker(m pmetric.Metric, attrs pcommon.Map, ts pcommon.Timestamp, bounds []float64) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		mark(m.Gauge().DataPoints().AppendEmpty(), attrs, ts)
	case pmetric.MetricTypeSum:
		mark(m.Sum().DataPoints().AppendEmpty(), attrs, ts)
	case pmetric.MetricTypeHistogram:
		p := m.Histogram().DataPoints().AppendEmpty()
		mark(p, attrs, ts)
		EndHistogram(p, bounds)
	case pmetric.MetricTypeExponentialHistogram:
		mark(m.ExponentialHistogram().DataPoints().AppendEmpty(), attrs, ts)
	case pmetric.MetricTypeSummary:
		mark(m.Summary().DataPoints().AppendEmpty(), attrs, ts)
	}
}

func mark[P movable[P]](p P, attrs pcommon.Map, ts pcommon.Timestamp) {
	attrs.CopyTo(p.Attributes())
	p.SetTimestamp(ts)
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
}

// RemoveEmpty takes out the metrics and scopes that have no points left.
func RemoveEmpty(rm pmetric.ResourceMetrics) {
	rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
		sm.Metrics().RemoveIf(func(m pmetric.Metric) bool { return Count(m) == 0 })
		return sm.Metrics().Len() == 0
	})
}
