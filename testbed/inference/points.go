// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// point is one of the vocabulary.
type point struct {
	kind    kind
	value   float64 // or the count of a histogram
	sum     float64
	bounds  []float64
	buckets []uint64
	layout  string
	start   time.Time
}

// scope is that of the processor's points.
const scope = "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor"

// output is what the processor made of a page.
type output struct {
	points map[string]*point
	ends   map[string]int // markers, by series
	up     float64        // of the engine
	ups    []string
	downs  []string // ups that have ended
	wrong  []string
	// whole are the series of histograms, each without its bounds.
	passed map[string]bool // families under their own names
}

func read(rm pmetric.ResourceMetrics, engine string) *output {
	o := &output{points: map[string]*point{}, ends: map[string]int{}, passed: map[string]bool{}}
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if sm.Scope().Name() != scope {
				o.passed[m.Name()] = true
				continue
			}
			o.metric(m, engine)
		}
	}
	return o
}

func (o *output) metric(m pmetric.Metric, engine string) {
	number := func(p pmetric.NumberDataPoint, k kind) {
		v := p.DoubleValue()
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			v = float64(p.IntValue())
		}
		if strings.HasSuffix(m.Name(), ".up") {
			e, _ := p.Attributes().Get("inference.engine")
			if name := m.Name() + " " + e.Str(); p.Flags().NoRecordedValue() {
				o.downs = append(o.downs, name)
			} else {
				o.up, o.ups = v, append(o.ups, name)
			}
			return
		}
		o.add(m.Name(), p.Attributes(), p.Flags(), engine, &point{kind: k, value: v, start: p.StartTimestamp().AsTime()})
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			number(p, gauge)
		}
	case pmetric.MetricTypeSum:
		k := gauge
		if m.Sum().IsMonotonic() {
			k = counter
		}
		for _, p := range m.Sum().DataPoints().All() {
			number(p, k)
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			o.add(m.Name(), p.Attributes(), p.Flags(), engine, &point{
				kind: histogram, value: float64(p.Count()), sum: p.Sum(), bounds: p.ExplicitBounds().AsRaw(), buckets: p.BucketCounts().AsRaw(),
				start: p.StartTimestamp().AsTime(),
			})
		}
	default:
		o.wrong = append(o.wrong, fmt.Sprintf("%s is a %s", m.Name(), m.Type()))
	}
}

func (o *output) add(metric string, attributes pcommon.Map, flags pmetric.DataPointFlags, engine string, p *point) {
	var pairs []string
	genAI := strings.HasPrefix(metric, "gen_ai.")
	for k, v := range attributes.All() {
		switch {
		case k == "inference.bounds":
			p.layout = v.Str()
		case genAI && k == "gen_ai.provider.name":
			if own, _ := attributes.Get("inference.engine"); v.Str() != own.Str() || v.Str() != engine && engine != "" && !flags.NoRecordedValue() {
				o.wrong = append(o.wrong, fmt.Sprintf("%s: provider %s", metric, v.Str()))
			}
		case genAI && k == "gen_ai.operation.name":
			if v.Str() != "inference" {
				o.wrong = append(o.wrong, fmt.Sprintf("%s: operation %s", metric, v.Str()))
			}
		default:
			pairs = append(pairs, k+"="+v.Str())
		}
	}
	if n, _ := attributes.Get("gen_ai.provider.name"); genAI && n.Str() == "" {
		o.wrong = append(o.wrong, metric+": no provider")
	}
	key := identity(metric, pairs)
	if flags.NoRecordedValue() {
		o.ends[key+p.layout]++
		return
	}
	if o.points[key] != nil {
		o.wrong = append(o.wrong, key+" is there twice")
	}
	o.points[key] = p
}

// below is how many observations of a histogram are at most its bound i.
func (p *point) below(i int) float64 {
	n := uint64(0)
	for _, b := range p.buckets[:i+1] {
		n += b
	}
	return float64(n)
}

// quantile is what Prometheus' histogram_quantile gives.
func quantile(q float64, bounds, below []float64, count float64) float64 {
	rank, from, lower := q*count, 0.0, 0.0
	for i, b := range bounds {
		if below[i] >= rank {
			if below[i] == from || i == 0 && b <= 0 {
				return b
			}
			return lower + (b-lower)*(rank-from)/(below[i]-from)
		}
		from, lower = below[i], b
	}
	return bounds[len(bounds)-1]
}
