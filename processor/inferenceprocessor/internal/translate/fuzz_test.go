// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/histogram"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"
)

// FuzzPages feeds two pages of any content, of one target: nothing panics, what is made
// can be, counters do not fall without a later start, and nothing is made twice.
func FuzzPages(f *testing.F) {
	marshal := func(lines string) []byte {
		md := pmetric.NewMetrics()
		pageOf(lines).MoveTo(md.ResourceMetrics().AppendEmpty())
		text, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		require.NoError(f, err)
		return text
	}
	const page = "acme:e2e_ms{model=m,engine=0} h 3 1500 100:1,500:2\nacme_new_tokens_total{w=a} 7\nacme_new_tokens_total{w=b} 1\nup 1\n" +
		"acme:blocks{kind=used} 1\nacme:blocks{kind=max} 4\nacme:queue_us_total 3e6\nacme:done_total 2\nacme:lora_info{running=a;b} 10"
	f.Add(marshal(page), marshal(strings.ReplaceAll(page, "7", "3")))
	f.Add(marshal("acme:e2e_ms{w=a} h 3 1500 100:1\nacme:e2e_ms{w=b} h 3 1500 100:1"), marshal("acme:e2e_ms{w=a} h END\nacme:new_tokens_total END"))
	f.Add([]byte{}, marshal("acme:usage_perc NaN\nacme:cache_info{blocks=1e308,size=1e308} 1\nacme:running -1"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		budget, before := series.NewBudget(20), map[string]made{}
		tr := New(families.NewIndex([]*families.Engine{acme()}), Options{Normalised: true, MaxBounds: 4, MaxModels: 2, Series: budget})
		for i, text := range [][]byte{first, second} {
			md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(text)
			if err != nil {
				return
			}
			for _, rm := range md.ResourceMetrics().All() {
				tr.Page(rm, 1, time.Unix(int64(1000+15*i), 0))
				possible(t, rm)
				before = followed(t, rm, before)
			}
		}
		require.LessOrEqual(t, budget.Used(), 20)
	})
}

// possible fails if a point of the vocabulary cannot be.
func possible(t *testing.T, rm pmetric.ResourceMetrics) {
	for _, sm := range rm.ScopeMetrics().All() {
		if sm.Scope().Name() != scopeName {
			continue
		}
		for _, m := range sm.Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeGauge, pmetric.MetricTypeSum:
				for _, p := range numbers(m).All() {
					v := p.DoubleValue()
					require.False(t, math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || p.IntValue() < 0, "%s %v", m.Name(), v)
				}
			case pmetric.MetricTypeHistogram:
				for _, p := range m.Histogram().DataPoints().All() {
					require.True(t, p.Flags().NoRecordedValue() || histogram.Valid(p, func(v float64) float64 { return v }), m.Name())
				}
			}
		}
	}
}

// made is a point of a counter.
type made struct {
	value     float64
	start, at pcommon.Timestamp
}

// followed fails if a page has a series several times, or a counter that fell and does
// not start later. It returns the counters.
func followed(t *testing.T, rm pmetric.ResourceMetrics, before map[string]made) map[string]made {
	now, seen := map[string]made{}, map[string]bool{}
	add := func(m pmetric.Metric, attributes pcommon.Map, p made) {
		key := m.Name() + fmt.Sprint(attributes.AsRaw())
		require.False(t, seen[key], "%s is repeated", key)
		seen[key] = true
		if p.start == 0 {
			return // a gauge, or on a page without times
		}
		now[key] = p
		was := before[key]
		require.False(t, p.at > was.at && p.value < was.value && p.start <= was.start, "%s: %v, then %v", key, was, p)
	}
	for _, sm := range rm.ScopeMetrics().All() {
		if sm.Scope().Name() != scopeName {
			continue
		}
		for _, m := range sm.Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeGauge, pmetric.MetricTypeSum:
				for _, p := range numbers(m).All() {
					if !p.Flags().NoRecordedValue() {
						add(m, p.Attributes(), made{p.DoubleValue() + float64(p.IntValue()), p.StartTimestamp(), p.Timestamp()})
					}
				}
			case pmetric.MetricTypeHistogram:
				for _, p := range m.Histogram().DataPoints().All() {
					if !p.Flags().NoRecordedValue() {
						add(m, p.Attributes(), made{float64(p.Count()), p.StartTimestamp(), p.Timestamp()})
					}
				}
			}
		}
	}
	return now
}
