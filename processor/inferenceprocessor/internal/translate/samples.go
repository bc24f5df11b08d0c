// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"

import "go.opentelemetry.io/collector/pdata/pmetric"

// scraped is the metric in which the scraper reports how many samples a page has.
const scraped = "scrape_samples_post_metric_relabeling"

// removal counts the samples that are left out on purpose.
type removal float64

// remove counts those of a metric, and reports that it goes.
func (r *removal) remove(m pmetric.Metric) bool {
	*r += removal(samples(m))
	return true
}

// subtract takes them off the scraper's count: what is missing of the rest was lost on
// the way.
func (r removal) subtract(rm pmetric.ResourceMetrics) {
	if r == 0 {
		return
	}
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if m.Name() != scraped || m.Type() != pmetric.MetricTypeGauge {
				continue
			}
			for _, p := range m.Gauge().DataPoints().All() {
				if v := p.DoubleValue(); v >= float64(r) {
					p.SetDoubleValue(v - float64(r))
				}
			}
		}
	}
}

// samples is how many samples on a page a metric was made of. A marker was none.
func samples(m pmetric.Metric) (n int) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return numberSamples(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		return numberSamples(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			if !p.Flags().NoRecordedValue() {
				n += p.BucketCounts().Len() + 2 // sum, count
			}
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			if !p.Flags().NoRecordedValue() {
				n += p.QuantileValues().Len() + 2 // sum, count
			}
		}
	}
	return n
}

func numberSamples(points pmetric.NumberDataPointSlice) (n int) {
	for _, p := range points.All() {
		if !p.Flags().NoRecordedValue() {
			n++
		}
	}
	return n
}
