// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package points

import "go.opentelemetry.io/collector/pdata/pmetric"

// EndHistogram makes p the end of a histogram with these bounds. In stores each bucket, the
// sum and the count are a series of their own, and an end reaches those that it names.
func EndHistogram(p pmetric.HistogramDataPoint, bounds []float64) {
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	p.ExplicitBounds().FromRaw(bounds)
	completeEnd(p)
}

// CompleteEnds adds to the ends in m what they need to reach all series of a store: the
// ends of the prometheus receiver have no sum.
func CompleteEnds(m pmetric.Metric) {
	if m.Type() != pmetric.MetricTypeHistogram {
		return
	}
	for _, p := range m.Histogram().DataPoints().All() {
		if p.Flags().NoRecordedValue() {
			completeEnd(p)
		}
	}
}

func completeEnd(p pmetric.HistogramDataPoint) {
	p.SetSum(0)
	if n := p.ExplicitBounds().Len() + 1; p.BucketCounts().Len() != n {
		p.BucketCounts().FromRaw(make([]uint64, n))
	}
}

// Bounds are those of the first point of a histogram; nil for every other metric.
func Bounds(m pmetric.Metric) []float64 {
	if m.Type() != pmetric.MetricTypeHistogram || m.Histogram().DataPoints().Len() == 0 {
		return nil
	}
	return m.Histogram().DataPoints().At(0).ExplicitBounds().AsRaw()
}
