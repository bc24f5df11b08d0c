// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/event"
)

// numberPoints returns the points of a gauge or sum.
func numberPoints(m pmetric.Metric) (points pmetric.NumberDataPointSlice, ok bool) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints(), true
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints(), true
	}
	return points, false
}

// isDelta reports whether the points of the metric are what was added since the points
// before.
func isDelta(m pmetric.Metric) bool {
	return m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta
}

// eachPoint calls f with every gauge and sum point of md.
func eachPoint(md pmetric.Metrics, f func(metric string, resource pcommon.Map, p pmetric.NumberDataPoint)) {
	for _, rm := range md.ResourceMetrics().All() {
		resource := rm.Resource().Attributes()
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				points, ok := numberPoints(m)
				if !ok {
					continue
				}
				for _, p := range points.All() {
					f(m.Name(), resource, p)
				}
			}
		}
	}
}

// number is the point's value; NaN: it has none.
func number(p pmetric.NumberDataPoint) float64 {
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

// str is a text attribute; empty: it is absent or no text.
func str(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok && v.Type() == pcommon.ValueTypeStr {
		return v.Str()
	}
	return ""
}

// text is a text attribute of the point, or else of the resource.
func text(key string, resource, point pcommon.Map) string {
	for _, attrs := range [...]pcommon.Map{point, resource} {
		if v := str(attrs, key); v != "" {
			return event.Bounded(v)
		}
	}
	return ""
}
