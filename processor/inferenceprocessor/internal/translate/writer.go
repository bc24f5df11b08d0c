// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// writer has the metrics that are made of a page, one of each kind, and the markers of
// series that have ended, each in a metric of its own.
type writer struct {
	scope   pmetric.ScopeMetrics
	metrics []written
}

type written struct {
	metric      *names.Metric
	unit        string
	exponential bool
	to          pmetric.Metric
}

func (w *writer) begin() {
	w.scope = pmetric.NewScopeMetrics()
	w.scope.Scope().SetName(scopeName)
	w.metrics = w.metrics[:0]
}

// end adds what was made to the resource.
func (w *writer) end(rm pmetric.ResourceMetrics) {
	if w.scope.Metrics().Len() > 0 {
		w.scope.MoveTo(rm.ScopeMetrics().AppendEmpty())
	}
}

// metric finds the metric on this page, or begins it.
func (w *writer) metric(m *names.Metric, unit string, exponential bool) pmetric.Metric {
	for i := range w.metrics {
		if o := &w.metrics[i]; o.metric == m && o.unit == unit && o.exponential == exponential {
			return o.to
		}
	}
	to := w.begun(m, unit, exponential)
	w.metrics = append(w.metrics, written{m, unit, exponential, to})
	return to
}

func (w *writer) begun(m *names.Metric, unit string, exponential bool) pmetric.Metric {
	to := w.scope.Metrics().AppendEmpty()
	switch {
	case exponential:
		to.SetName(m.Name)
		to.SetUnit(m.Unit)
		to.SetDescription(m.Description)
		to.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	case m.Kind == names.Histogram:
		m.InitHistogram(to)
	default:
		m.Init(to)
	}
	if unit != "" {
		to.SetUnit(unit)
	}
	return to
}

func numbers(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeGauge {
		return m.Gauge().DataPoints()
	}
	return m.Sum().DataPoints()
}

func (w *writer) numbers(m *names.Metric, unit string) pmetric.NumberDataPointSlice {
	return numbers(w.metric(m, unit, false))
}

func (w *writer) histograms(m *names.Metric, unit string) pmetric.HistogramDataPointSlice {
	return w.metric(m, unit, false).Histogram().DataPoints()
}

func (w *writer) exponentials(m *names.Metric) pmetric.ExponentialHistogramDataPointSlice {
	return w.metric(m, "", true).ExponentialHistogram().DataPoints()
}

func (w *writer) marker(m *names.Metric, unit string) pmetric.NumberDataPoint {
	return numbers(w.begun(m, unit, false)).AppendEmpty()
}

func (w *writer) histogramMarker(m *names.Metric, unit string) pmetric.HistogramDataPoint {
	return w.begun(m, unit, false).Histogram().DataPoints().AppendEmpty()
}

func (w *writer) exponentialMarker(m *names.Metric) pmetric.ExponentialHistogramDataPoint {
	return w.begun(m, "", true).ExponentialHistogram().DataPoints().AppendEmpty()
}
