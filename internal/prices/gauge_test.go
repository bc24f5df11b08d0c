// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prices

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPriceOfAGauge(t *testing.T) {
	b, err := New("USD", []RuleConfig{
		{Match: map[string]string{MatchCapacity: "spot"}, PriceMetric: "node_gpu_hourly_cost", PriceFraction: "0.5"},
		{Match: map[string]string{MatchModel: "*"}, GPUHour: "1"},
	})
	require.NoError(t, err)
	require.Equal(t, []string{"node_gpu_hourly_cost"}, b.Gauges())
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	f := &Facts{Model: "H100", Capacity: "spot", Cluster: "c", Node: "n"}
	observe := func(node string, at time.Duration, value float64) bool {
		return b.Observe("node_gpu_hourly_cost", "c", node, noon.Add(at), value)
	}
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1), 1e10} {
		assert.False(t, observe("n", 0, bad))
	}
	assert.False(t, b.Observe("another", "c", "n", noon, 1))
	_, why := b.At(f, noon)
	assert.Equal(t, NotReported, why, "and no other rule's price")

	require.True(t, observe("n", 0, 2.5))
	require.True(t, observe("n", 10*time.Minute, 2.5))
	require.True(t, observe("n", 20*time.Minute, 3))
	require.True(t, observe("n", 5*time.Minute, 9), "late: it changes nothing")
	at := func(after time.Duration) (float64, time.Duration) {
		p, why := b.At(f, noon.Add(after))
		if why != Priced {
			assert.False(t, p.Rate.Known())
			return 0, p.Until.Sub(noon)
		}
		return p.Rate.Hour(), p.Until.Sub(noon)
	}
	for _, tt := range []struct {
		at, until time.Duration
		price     float64
	}{
		{-time.Second, 0, 0},
		{0, 20 * time.Minute, 1.25},
		{15 * time.Minute, 20 * time.Minute, 1.25},
		{20 * time.Minute, 21 * time.Minute, 1.5},
		{140 * time.Minute, 141 * time.Minute, 1.5},
		{141 * time.Minute, 142 * time.Minute, 0},
	} {
		price, until := at(tt.at)
		assert.InDelta(t, tt.price, price, 0, tt.at)
		assert.Equal(t, tt.until, until, tt.at)
	}
	f.Node = "other"
	_, why = b.At(f, noon)
	assert.Equal(t, NotReported, why)

	for i := range 3 * maxGaugeValues {
		require.True(t, observe("n", time.Duration(i+60)*time.Minute, float64(i+1)))
	}
	assert.LessOrEqual(t, len(b.gauges["node_gpu_hourly_cost"][nodeOf("c", "n")]), maxGaugeValues)
	for i := range maxGaugeKeys {
		observe(fmt.Sprint(i), 0, 1)
	}
	assert.False(t, observe("one more", 0, 1))
	assert.True(t, observe("one more", 3*time.Hour, 1), "those that are silent make room")
}

func TestReadingsOverARestart(t *testing.T) {
	book := func() *Book {
		b, err := New("USD", []RuleConfig{{Match: map[string]string{MatchModel: "*"}, PriceMetric: "cost"}})
		require.NoError(t, err)
		return b
	}
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	b := book()
	require.True(t, b.Observe("cost", "c", "n", noon, 2))
	require.True(t, b.Observe("cost", "c", "n", noon.Add(time.Hour), 3))
	require.True(t, b.Observe("cost", "c", "silent", noon.Add(-4*time.Hour), 3))
	stored := b.Readings(noon.Add(time.Hour))
	assert.Len(t, stored["cost"], 1, "what nothing asks for any more is not stored")
	again := book()
	require.True(t, again.Restore(stored, noon.Add(time.Hour)))
	f := &Facts{Model: "H100", Cluster: "c", Node: "n"}
	for _, after := range []time.Duration{0, time.Hour - 1, time.Hour, 3 * time.Hour, 3*time.Hour + 1} {
		want, why := b.At(f, noon.Add(after))
		got, same := again.At(f, noon.Add(after))
		assert.Equal(t, why, same, after)
		assert.Equal(t, []any{want.Rate, want.Until.UTC(), want.From.UTC()}, []any{got.Rate, got.Until.UTC(), got.From.UTC()}, after)
	}
	p, _ := again.At(f, noon.Add(90*time.Minute))
	assert.Equal(t, noon.Add(time.Hour), p.From.UTC(), "when it was first reported")

	ms := noon.UnixMilli()
	for name, values := range map[string][][3]int64{
		"of a clock that was ahead": {{ms, ms + 7_200_000, 1}}, "ends before it begins": {{ms, ms - 1, 1}}, "no price": {{ms, ms, 0}},
		"out of order": {{ms, ms, 1}, {ms - 10, ms, 2}},
	} {
		assert.False(t, book().Restore(Readings{"cost": {nodeOf("c", "n"): values}}, noon.Add(time.Hour)), name)
	}
}

func TestIntensityOfAGauge(t *testing.T) {
	c, err := NewCarbon(CarbonConfig{
		PUE: 1.5, FromMetric: &FromMetricConfig{Metric: "grid.intensity", Kind: Marginal},
		Intensity: []IntensityConfig{{Region: "eu-*", GramsPerKWh: 100, Kind: Average}},
	})
	require.NoError(t, err)
	name, attribute := c.Gauge()
	assert.Equal(t, []string{"grid.intensity", "cloud.region"}, []string{name, attribute})
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	assert.False(t, c.Observe("eu-1", noon, 4000))
	assert.False(t, c.Observe("", noon, 40))
	assert.True(t, c.Observe("eu-1", noon, 40))
	mg, kind, ok := c.At("eu-1", noon.Add(time.Hour))
	assert.Equal(t, []any{int64(60_000), Marginal, true}, []any{mg, kind, ok})
	again, err := NewCarbon(CarbonConfig{PUE: 1.5, FromMetric: &FromMetricConfig{Metric: "grid.intensity", Kind: Marginal}})
	require.NoError(t, err)
	require.True(t, again.Restore(c.Readings(noon), noon))
	mg, kind, ok = again.At("eu-1", noon.Add(time.Hour))
	assert.Equal(t, []any{int64(60_000), Marginal, true}, []any{mg, kind, ok}, "after a restart")
	mg, kind, ok = c.At("eu-1", noon.Add(3*time.Hour))
	assert.Equal(t, []any{int64(150_000), Average, true}, []any{mg, kind, ok}, "the table, where the gauge is silent")
	_, _, ok = c.At("us-1", noon)
	assert.False(t, ok)
}
