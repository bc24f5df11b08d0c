// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/prompage"
)

// What a store has of an engine under the common names is bounded: a row that gives more
// series is a decision, not an accident.
func TestSeriesOfAnEngine(t *testing.T) {
	text, err := os.ReadFile("../gpusim/engines/pages/testdata/vllm-0.21.prom")
	require.NoError(t, err)
	var target prompage.Target
	md, err := target.Scrape(text, time.Unix(2_000_000_000, 0))
	require.NoError(t, err)
	tr, err := newTranslator(fault{}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tr.Shutdown(context.Background())) })
	rm, err := tr.pass(md)
	require.NoError(t, err)
	made := 0
	for _, sm := range rm.ScopeMetrics().All() {
		if sm.Scope().Name() == "" {
			continue // as it came
		}
		for _, m := range sm.Metrics().All() {
			made += stored(m)
		}
	}
	assert.Greater(t, made, 250)
	assert.LessOrEqual(t, made, 260)
}

// stored is how many series a Prometheus server has of a metric.
func stored(m pmetric.Metric) (n int) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			n += p.BucketCounts().Len() + 2 // sum, count
		}
	}
	return n
}
