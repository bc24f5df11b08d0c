// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/pricing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// Prices of nodes and intensities of regions come as other receivers bring them.
func TestGauges(t *testing.T) {
	book, err := prices.New("USD", []prices.RuleConfig{{Match: map[string]string{"hw.model": "*"}, PriceMetric: "node_gpu_hourly_cost"}})
	require.NoError(t, err)
	carbon, err := prices.NewCarbon(prices.CarbonConfig{PUE: 1, FromMetric: &prices.FromMetricConfig{Metric: "grid.intensity", Kind: prices.Average}})
	require.NoError(t, err)
	p := pricing.New(book, carbon)
	cfg := config()
	cfg.Gauges = p.Gauges()
	x := New(cfg, ledger.New(ledgerConfig(p), t0), time.UnixMilli(t0))
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("k8s.cluster.name", "c")
	gauge := func(name, key, value string, v float64) {
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(name)
		dp := m.SetEmptyGauge().DataPoints().AppendEmpty()
		dp.SetTimestamp(pcommon.Timestamp(t0 * 1e6))
		dp.SetDoubleValue(v)
		dp.Attributes().PutStr(key, value)
	}
	gauge("node_gpu_hourly_cost", "node", "n", 2.5)
	gauge("node_gpu_hourly_cost", "node", "bad", -1)
	gauge("grid.intensity", "cloud.region", "eu-1", 45)
	x.Read(md, time.UnixMilli(t0))
	class := &ledger.Class{Cluster: "c", Model: "H100", Region: "eu-1"}
	price := p.Price(&ledger.Priced{Class: class, Node: "n"}, t0+minute)
	assert.InDelta(t, 2.5, price.Rate.Hour(), 0)
	assert.Equal(t, ledger.Price{Until: t0 + 2*minute}, p.Price(&ledger.Priced{Class: class, Node: "bad"}, t0+minute))
	mg, known := p.Carbon(class, t0+minute)
	assert.Equal(t, []any{int64(45_000), true}, []any{mg, known})
	assert.Equal(t, Counts{Invalid: 1}, x.Counts())
}
