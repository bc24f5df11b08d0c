// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"

import "go.opentelemetry.io/collector/pdata/pmetric"

// refusals are the points of a page of which no series could be made.
type refusals struct {
	result Result
	// refused are the numbers of the points that pass as they came.
	refused map[pmetric.Metric]map[int]bool
}

func (r *refusals) begin() {
	r.result.reset()
	clear(r.refused)
}

// sentinel counts a point that has no value.
func (r *refusals) sentinel() bool {
	r.result.now().Refused[Sentinel]++
	return false
}

// refuse counts a point that becomes no part of a series, and lets it pass as it came.
func (r *refusals) refuse(p *point, reason Reason) {
	r.result.now().Refused[reason]++
	r.keep(p)
}

// keep lets a point pass as it came.
func (r *refusals) keep(p *point) {
	kept := r.refused[p.metric]
	if kept == nil {
		kept = map[int]bool{}
		r.refused[p.metric] = kept
	}
	kept[p.number] = true
}

func (r *refusals) refuseAll(m pmetric.Metric, reason Reason) {
	n := 0
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		n = m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		n = m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		n = m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		n = m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		n = m.Summary().DataPoints().Len()
	}
	for i := range n {
		r.refuse(&point{metric: m, number: i}, reason)
	}
}
