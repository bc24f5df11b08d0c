// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"
)

// normalised is what becomes of a page of one engine, without what no text format has.
func normalised(t *testing.T, rm pmetric.ResourceMetrics) map[string]pmetric.Metric {
	t.Helper()
	tr := New(families.NewIndex([]*families.Engine{acme()}), Options{Normalised: true, MaxBounds: 4, MaxModels: 3, Series: series.NewBudget(100)})
	tr.Page(rm, 1, clock.AsTime())
	out := map[string]pmetric.Metric{}
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			out[m.Name()] = m
		}
	}
	return out
}

func TestExemplarsAndExtremesAreConverted(t *testing.T) {
	clock = 1000e9
	rm := pageOf("acme:e2e_ms h 3 1500 100:1,500:2")
	p := rm.ScopeMetrics().At(0).Metrics().At(0).Histogram().DataPoints().At(0)
	p.SetMin(20)
	p.SetMax(900)
	p.Exemplars().AppendEmpty().SetDoubleValue(900)
	p.Exemplars().AppendEmpty().SetIntValue(20)
	got := normalised(t, rm)[names.GenAIRequestDuration.Name].Histogram().DataPoints().At(0)
	assert.Equal(t, []float64{0.02, 0.9}, []float64{got.Min(), got.Max()})
	assert.Equal(t, []float64{0.9, 0.02}, []float64{got.Exemplars().At(0).DoubleValue(), got.Exemplars().At(1).DoubleValue()})
}

func TestLabelsAndValuesOfOtherTypes(t *testing.T) {
	clock = 1000e9
	rm := pageOf("acme:running 1e19\nacme:load 3")
	rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes().PutInt("engine", 7)
	got := normalised(t, rm)[names.InferenceRequests.Name].Sum().DataPoints().At(0)
	rank, _ := got.Attributes().Get(names.InferenceEngineRank)
	assert.Equal(t, "7", rank.Str())
	assert.InDelta(t, 1e19, got.DoubleValue(), 0)
}

func TestExponentialHistograms(t *testing.T) {
	clock = 1000e9
	page := func(workers ...string) pmetric.ResourceMetrics {
		rm := pageOf("acme:running 1")
		m := rm.ScopeMetrics().At(0).Metrics().AppendEmpty()
		m.SetName("acme:ttft")
		h := m.SetEmptyExponentialHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for _, w := range workers {
			p := h.DataPoints().AppendEmpty()
			p.SetTimestamp(clock)
			p.Attributes().PutStr("w", w)
			p.SetCount(2)
			p.SetSum(3)
			p.Positive().BucketCounts().Append(2)
		}
		return rm
	}
	got := normalised(t, page("a"))
	require.Contains(t, got, names.GenAITimeToFirstToken.Name)
	assert.NotContains(t, got, "acme:ttft")
	got = normalised(t, page("a", "b"))
	assert.NotContains(t, got, names.GenAITimeToFirstToken.Name, "they cannot be added")
	assert.Equal(t, 2, got["acme:ttft"].ExponentialHistogram().DataPoints().Len())
}

func TestExponentialHistogramsOfOneLabelValue(t *testing.T) {
	e := &families.Engine{Name: "acme", Prefixes: []string{"acme:"}, Rows: []families.Row{
		{Metric: &names.GenAITimeToFirstToken, From: []string{"ttft"}, Where: families.Selector{Label: "status", Value: "ok"}},
	}}
	rm := pmetric.NewMetrics().ResourceMetrics().AppendEmpty()
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("acme:ttft")
	h := m.SetEmptyExponentialHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	h.DataPoints().AppendEmpty().Attributes().PutStr("status", "bad")
	tr := New(families.NewIndex([]*families.Engine{e}), Options{Normalised: true, MaxBounds: 4, MaxModels: 3, Series: series.NewBudget(100)})
	assert.Zero(t, tr.Page(rm, 1, time.Unix(1000, 0)).Engines[0].Normalised)
}

func TestAPageIsTranslatedOnce(t *testing.T) {
	clock = 1000e9
	o := Options{Normalised: true, Raw: true, MaxBounds: 4, MaxModels: 3, Series: series.NewBudget(100)}
	index := families.NewIndex([]*families.Engine{acme()})
	rm := pageOf("acme:running 1")
	New(index, o).Page(rm, 1, clock.AsTime())
	once := text(rm)
	New(index, o).Page(rm, 1, clock.AsTime())
	assert.Equal(t, once, text(rm))
}

func TestAnEngineThatIsSwitchedOffIsNotUp(t *testing.T) {
	clock = 1000e9
	rm := pageOf("up 1")
	rm.Resource().Attributes().PutStr(names.InferenceEngineHint, "vllm")
	assert.NotContains(t, normalised(t, rm), names.InferenceServerUp.Name)
}

// A page from elsewhere may have several points of one series.
func TestTheNewestPointOfASeriesCounts(t *testing.T) {
	clock = 1000e9
	rm := pageOf("acme:new_tokens_total{w=a} 9\nacme:new_tokens_total{w=a} 7\nacme:new_tokens_total{w=b} 1\nacme:running 2\nacme:running 3\n" +
		"acme:e2e_ms h 2 1000 100:1\nacme:e2e_ms h 3 1500 100:2")
	metrics := rm.ScopeMetrics().At(0).Metrics()
	metrics.At(0).Sum().DataPoints().At(1).SetTimestamp(clock - 5e9)
	metrics.At(1).Gauge().DataPoints().At(0).SetTimestamp(clock - 5e9)
	metrics.At(2).Histogram().DataPoints().At(0).SetTimestamp(clock - 5e9)
	got := normalised(t, rm)
	assert.EqualValues(t, 10, got[names.InferenceTokens.Name].Sum().DataPoints().At(0).IntValue())
	assert.EqualValues(t, 3, got[names.InferenceRequests.Name].Sum().DataPoints().At(0).IntValue())
	h := got[names.GenAIRequestDuration.Name].Histogram().DataPoints()
	assert.Equal(t, 1, h.Len())
	assert.Equal(t, []uint64{2, 1}, h.At(0).BucketCounts().AsRaw())
}
