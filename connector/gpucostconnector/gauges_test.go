// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// The price of a gauge is stored with the time at which it was read: a restart leaves no time
// without a price, and a price that is not reported for two hours ends all the same.
func TestPriceOfAGaugeOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gauge = "node_gpu_hourly_cost"
		w := newWorld(t)
		priced := func(cfg *Config) {
			cfg.Prices = []prices.RuleConfig{{Match: map[string]string{prices.MatchModel: "*"}, PriceMetric: gauge}}
		}
		boot := func() *bench { return w.boot(priced) }
		unpriced := func() float64 { return w.sum("gpu.usage.held") - w.sum("gpu.usage.cost")*3600/2.5 }
		b := boot()
		reported := pmetric.NewMetrics()
		rm := reported.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr(names.K8sClusterName, "c")
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(gauge)
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		p.SetDoubleValue(2.5)
		p.Attributes().PutStr("node", "n")
		b.read(reported)
		b.run(5*time.Minute, chat)
		require.NoError(t, b.stop())
		b = boot()
		b.run(5*time.Minute, chat)
		require.NoError(t, b.stop())
		assert.InDelta(t, (10*time.Minute - unsettled).Seconds(), w.sum("gpu.usage.held"), 0)
		assert.InDelta(t, 0, unpriced(), 1e-3)

		time.Sleep(3 * time.Hour)
		b = boot()
		b.run(5*time.Minute, chat)
		require.NoError(t, b.stop())
		assert.Greater(t, unpriced(), 200., "it was not reported for three hours")

		w.values[readingsKey] = w.values[readingsKey][1:]
		b = boot()
		assert.Equal(t, 1, b.logs.FilterMessageSnippet("stored values of price_metric").Len())
		assert.Equal(t, int64(1), b.counter("otelcol_gpu_cost_store_failures"))
		require.NoError(t, b.stop())
	})
}
