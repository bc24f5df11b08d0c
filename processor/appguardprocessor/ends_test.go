// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package appguardprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The end of a series passes where its sender may send nothing more: a store would show the
// series for minutes.
func TestEndsPass(t *testing.T) {
	flags := func(ended bool) pmetric.DataPointFlags {
		return pmetric.DefaultDataPointFlags.WithNoRecordedValue(ended)
	}
	for name, c := range map[string]struct {
		series int
		put    func(m pmetric.Metric, ended bool)
	}{
		"gauge": {1, func(m pmetric.Metric, ended bool) {
			m.SetEmptyGauge().DataPoints().AppendEmpty().SetFlags(flags(ended))
		}},
		"sum": {1, func(m pmetric.Metric, ended bool) { m.SetEmptySum().DataPoints().AppendEmpty().SetFlags(flags(ended)) }},
		"histogram": {6, func(m pmetric.Metric, ended bool) {
			p := m.SetEmptyHistogram().DataPoints().AppendEmpty()
			p.SetFlags(flags(ended))
			p.ExplicitBounds().FromRaw([]float64{0.1, 1, 10})
			p.BucketCounts().FromRaw(make([]uint64, 4))
		}},
		"exponential histogram": {2, func(m pmetric.Metric, ended bool) {
			p := m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
			p.SetFlags(flags(ended))
			if !ended {
				p.SetCount(16)
			}
			p.Positive().BucketCounts().FromRaw([]uint64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
		}},
		"summary": {3, func(m pmetric.Metric, ended bool) {
			p := m.SetEmptySummary().DataPoints().AppendEmpty()
			p.SetFlags(flags(ended))
			p.QuantileValues().AppendEmpty().SetQuantile(0.5)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(cfg *Config) { cfg.MaxSeriesPerSender, cfg.MaxPointsPerMinutePerSender = c.series, 1 })
			p, sink := b.metrics()
			for _, ended := range []bool{false, true, true} {
				md := gauges("llm-1", "x")
				c.put(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0), ended)
				require.NoError(t, p.ConsumeMetrics(t.Context(), md))
			}
			assert.Len(t, sink.AllMetrics(), 2)
			assert.Equal(t, map[string]int64{"rate": 1}, b.dropped("app_guard_dropped_points"), "an end that comes again is a point")
		})
	}
}
