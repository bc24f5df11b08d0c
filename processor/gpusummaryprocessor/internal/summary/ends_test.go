// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The stock prometheus exporter stops reading a metric at the first end in it.
func TestEachEndIsAMetricOfItsOwn(t *testing.T) {
	var ended seriesSet
	for s := range numSeries {
		ended |= 1 << s
	}
	e := Evaluation{at: time.Unix(100, 0), services: []serviceFigures{{key: serviceKey{namespace: "ns", name: "svc"}, ended: ended}}}
	md := e.Metrics("test")
	metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	assert.Equal(t, int(numSeries), metrics.Len())
	for _, m := range metrics.All() {
		var points pmetric.NumberDataPointSlice
		if m.Type() == pmetric.MetricTypeGauge {
			points = m.Gauge().DataPoints()
		} else {
			points = m.Sum().DataPoints()
		}
		if assert.Equal(t, 1, points.Len(), m.Name()) {
			assert.True(t, points.At(0).Flags().NoRecordedValue(), m.Name())
		}
	}
}
