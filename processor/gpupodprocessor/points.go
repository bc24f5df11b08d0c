// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"encoding/binary"
	"hash/maphash"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// point is a data point of any type.
type point[P any] interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	SetTimestamp(pcommon.Timestamp)
	Flags() pmetric.DataPointFlags
	SetFlags(pmetric.DataPointFlags)
	MoveTo(P)
}

// points is the slice of a metric's data points.
type points[P point[P]] interface {
	Len() int
	At(int) P
	AppendEmpty() P
	RemoveIf(func(P) bool)
}

// visit is called with what all types of data points have. A marker is a point
// with the flag NoRecordedValue: it ends its series.
type visit func(attrs pcommon.Map, ts pcommon.Timestamp, marker bool)

// eachPoint calls f with every data point of m, in order.
func eachPoint(m pmetric.Metric, f visit) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		visitNumbers(m.Gauge().DataPoints(), f)
	case pmetric.MetricTypeSum:
		visitNumbers(m.Sum().DataPoints(), f)
	case pmetric.MetricTypeHistogram:
		each(m.Histogram().DataPoints(), f)
	case pmetric.MetricTypeExponentialHistogram:
		each(m.ExponentialHistogram().DataPoints(), f)
	case pmetric.MetricTypeSummary:
		each(m.Summary().DataPoints(), f)
	}
}

// visitNumbers is each for nearly all points that there are. Code for any type of
// point calls each method through a table.
func visitNumbers(s pmetric.NumberDataPointSlice, f visit) {
	for i := range s.Len() {
		p := s.At(i)
		f(p.Attributes(), p.Timestamp(), p.Flags().NoRecordedValue())
	}
}

func each[P point[P], S points[P]](s S, f visit) {
	for i := range s.Len() {
		p := s.At(i)
		f(p.Attributes(), p.Timestamp(), p.Flags().NoRecordedValue())
	}
}

// contents is what kinds of points a resource has.
type contents struct {
	live    bool              // points that are no markers
	newest  pcommon.Timestamp // of the live ones
	markers bool
}

func contentsOf(rm pmetric.ResourceMetrics) (c contents) {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			eachPoint(m, func(_ pcommon.Map, ts pcommon.Timestamp, marker bool) {
				if marker {
					c.markers = true
				} else {
					c.live, c.newest = true, max(c.newest, ts)
				}
			})
		}
	}
	return c
}

// pointCount is the number of m's data points.
func pointCount(m pmetric.Metric) int {
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

// destination says which metric a point goes to; it has the type of the metric
// that the point comes from, and counts only with the fate moved.
type destination func(attrs pcommon.Map, ts pcommon.Timestamp, marker bool) (pmetric.Metric, fate)

type fate uint8

const (
	stay fate = iota
	moved
	dropped
)

// movePoints takes the points of src to where they go.
func movePoints(src pmetric.Metric, where destination) {
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

func move[P point[P], S points[P]](src S, where destination, slice func(pmetric.Metric) S) {
	src.RemoveIf(func(p P) bool {
		to, fate := where(p.Attributes(), p.Timestamp(), p.Flags().NoRecordedValue())
		if fate == moved {
			p.MoveTo(slice(to).AppendEmpty())
		}
		return fate != stay
	})
}

// describe gives dst the name, unit, description, type and temporality of src,
// and no points.
func describe(src, dst pmetric.Metric) {
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

// appendMarker adds a point to m that ends the series attrs at ts.
func appendMarker(m pmetric.Metric, attrs pcommon.Map, ts pcommon.Timestamp) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		mark(m.Gauge().DataPoints().AppendEmpty(), attrs, ts)
	case pmetric.MetricTypeSum:
		mark(m.Sum().DataPoints().AppendEmpty(), attrs, ts)
	case pmetric.MetricTypeHistogram:
		mark(m.Histogram().DataPoints().AppendEmpty(), attrs, ts)
	case pmetric.MetricTypeExponentialHistogram:
		mark(m.ExponentialHistogram().DataPoints().AppendEmpty(), attrs, ts)
	case pmetric.MetricTypeSummary:
		mark(m.Summary().DataPoints().AppendEmpty(), attrs, ts)
	}
}

func mark[P point[P]](p P, attrs pcommon.Map, ts pcommon.Timestamp) {
	attrs.CopyTo(p.Attributes())
	p.SetTimestamp(ts)
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
}

var seed = maphash.MakeSeed()

// seriesKey identifies a series of one device: the metric's name and the
// point's attributes, whatever their order.
func seriesKey(metric string, attrs pcommon.Map) uint64 {
	key := maphash.String(seed, metric)
	for k, v := range attrs.All() {
		key += hashAttribute(k, v) // the sum does not depend on the order
	}
	return key
}

// hashAttribute multiplies, so that the key's hash and the value's cannot be
// exchanged.
func hashAttribute(k string, v pcommon.Value) uint64 {
	return maphash.String(seed, k)*0x9E3779B97F4A7C15 ^ hashValue(v)
}

func hashValue(v pcommon.Value) uint64 {
	var number uint64
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return maphash.String(seed, v.Str())
	case pcommon.ValueTypeInt:
		number = uint64(v.Int())
	case pcommon.ValueTypeDouble:
		number = math.Float64bits(v.Double())
	case pcommon.ValueTypeBool:
		if v.Bool() {
			number = 1
		}
	default:
		return maphash.String(seed, v.AsString())
	}
	var b [9]byte
	b[0] = byte(v.Type())
	binary.LittleEndian.PutUint64(b[1:], number)
	return maphash.Bytes(seed, b[:])
}
