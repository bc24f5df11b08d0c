// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Metrics are written as text in these tests, one line a resource, scope, metric
// or point:
//
//	resource KEY=VALUE…
//	scope NAME
//	metric NAME KIND UNIT
//	VALUE @SECONDS KEY=VALUE…        VALUE is "stale" for a marker
func parse(text string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	var rm pmetric.ResourceMetrics
	var sm pmetric.ScopeMetrics
	var m pmetric.Metric
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		switch f[0] {
		case "resource":
			rm, sm = md.ResourceMetrics().AppendEmpty(), pmetric.ScopeMetrics{}
			putAll(rm.Resource().Attributes(), f[1:])
		case "scope":
			sm = rm.ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(f[1])
		case "metric":
			if sm == (pmetric.ScopeMetrics{}) {
				sm = rm.ScopeMetrics().AppendEmpty()
			}
			m = sm.Metrics().AppendEmpty()
			m.SetName(f[1])
			m.SetUnit(f[3])
			m.SetDescription("about " + f[1])
			setKind(m, f[2])
		default:
			addPoint(m, f)
		}
	}
	return md
}

func putAll(attrs pcommon.Map, pairs []string) {
	for _, pair := range pairs {
		k, v, _ := strings.Cut(pair, "=")
		if k == "dcgm.holders" {
			attrs.PutEmptySlice(k).AppendEmpty().SetEmptyMap().PutStr("pod", v)
			continue
		}
		if k == names.GPUAllocationResolved || k == names.GPUAllocationNested {
			attrs.PutBool(k, v == "true")
			continue
		}
		attrs.PutStr(k, v)
	}
}

func setKind(m pmetric.Metric, kind string) {
	switch kind {
	case "gauge":
		m.SetEmptyGauge()
	case "sum", "counter":
		s := m.SetEmptySum()
		s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		s.SetIsMonotonic(kind == "counter")
	case "histogram":
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	case "exponential":
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	case "summary":
		m.SetEmptySummary()
	default:
		panic("kind " + kind)
	}
}

func addPoint(m pmetric.Metric, f []string) {
	value, _ := strconv.ParseFloat(f[0], 64)
	seconds, err := strconv.ParseInt(f[1][1:], 10, 64)
	if err != nil {
		panic(err)
	}
	flags := pmetric.DefaultDataPointFlags.WithNoRecordedValue(f[0] == "stale")
	ts := pcommon.Timestamp(seconds * 1e9)
	switch m.Type() {
	case pmetric.MetricTypeGauge, pmetric.MetricTypeSum:
		p := numbers(m).AppendEmpty()
		fill(p, ts, flags, f[2:])
		p.SetDoubleValue(value)
	case pmetric.MetricTypeHistogram:
		p := m.Histogram().DataPoints().AppendEmpty()
		fill(p, ts, flags, f[2:])
		p.SetCount(uint64(value))
	case pmetric.MetricTypeExponentialHistogram:
		p := m.ExponentialHistogram().DataPoints().AppendEmpty()
		fill(p, ts, flags, f[2:])
		p.SetCount(uint64(value))
	case pmetric.MetricTypeSummary:
		p := m.Summary().DataPoints().AppendEmpty()
		fill(p, ts, flags, f[2:])
		p.SetCount(uint64(value))
	}
}

func numbers(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeGauge {
		return m.Gauge().DataPoints()
	}
	return m.Sum().DataPoints()
}

func fill[P point[P]](p P, ts pcommon.Timestamp, flags pmetric.DataPointFlags, pairs []string) {
	p.SetTimestamp(ts)
	p.SetFlags(flags)
	putAll(p.Attributes(), pairs)
}

// format is the inverse of parse, with sorted keys.
func format(md pmetric.Metrics) string {
	var b strings.Builder
	for _, rm := range md.ResourceMetrics().All() {
		b.WriteString("resource" + formatAttrs(rm.Resource().Attributes()) + "\n")
		for _, sm := range rm.ScopeMetrics().All() {
			if sm.Scope().Name() != "" {
				b.WriteString("scope " + sm.Scope().Name() + "\n")
			}
			for _, m := range sm.Metrics().All() {
				fmt.Fprintf(&b, "metric %s %s %s\n", m.Name(), kindOf(m), m.Unit())
				if m.Description() != "about "+m.Name() {
					b.WriteString("description lost\n")
				}
				formatPoints(&b, m)
			}
		}
	}
	return b.String()
}

func kindOf(m pmetric.Metric) string {
	cumulative := pmetric.AggregationTemporalityCumulative
	delta := pmetric.AggregationTemporalityDelta
	switch {
	case m.Type() == pmetric.MetricTypeGauge:
		return "gauge"
	case m.Type() == pmetric.MetricTypeSummary:
		return "summary"
	case m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == cumulative:
		if m.Sum().IsMonotonic() {
			return "counter"
		}
		return "sum"
	case m.Type() == pmetric.MetricTypeHistogram && m.Histogram().AggregationTemporality() == delta:
		return "histogram"
	case m.Type() == pmetric.MetricTypeExponentialHistogram && m.ExponentialHistogram().AggregationTemporality() == delta:
		return "exponential"
	}
	return "lost"
}

func formatPoints(b *strings.Builder, m pmetric.Metric) {
	line := func(value string, marker bool, ts pcommon.Timestamp, attrs pcommon.Map) {
		if marker {
			value = "stale"
		}
		fmt.Fprintf(b, "%s @%d%s\n", value, ts/1e9, formatAttrs(attrs))
	}
	count := func(n uint64) string { return strconv.FormatUint(n, 10) }
	switch m.Type() {
	case pmetric.MetricTypeGauge, pmetric.MetricTypeSum:
		for _, p := range numbers(m).All() {
			line(strconv.FormatFloat(p.DoubleValue(), 'g', -1, 64), p.Flags().NoRecordedValue(), p.Timestamp(), p.Attributes())
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			line(count(p.Count()), p.Flags().NoRecordedValue(), p.Timestamp(), p.Attributes())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			line(count(p.Count()), p.Flags().NoRecordedValue(), p.Timestamp(), p.Attributes())
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			line(count(p.Count()), p.Flags().NoRecordedValue(), p.Timestamp(), p.Attributes())
		}
	}
}

func formatAttrs(attrs pcommon.Map) string {
	pairs := make([]string, 0, attrs.Len())
	for k, v := range attrs.All() {
		pairs = append(pairs, k+"="+v.AsString())
	}
	slices.Sort(pairs)
	if len(pairs) == 0 {
		return ""
	}
	return " " + strings.Join(pairs, " ")
}
