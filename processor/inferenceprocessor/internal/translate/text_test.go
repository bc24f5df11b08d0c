// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// A page is written as lines: name{label=value,...} value, in the text format without
// quotes; a histogram is name{...} h count sum bound:count,..., with delta for h if it is
// one, and - for the sum if it has none; END is a marker, of a histogram before its bounds.
// A counter's name ends in _total, or in _created for when it began.
func pageOf(lines string) pmetric.ResourceMetrics {
	rm := pmetric.NewMetrics().ResourceMetrics().AppendEmpty()
	sm := rm.ScopeMetrics().AppendEmpty()
	metrics := map[string]pmetric.Metric{}
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		fields := strings.Fields(line)
		name, labels, _ := strings.Cut(strings.TrimSuffix(fields[0], "}"), "{")
		m, known := metrics[name]
		if !known {
			m = sm.Metrics().AppendEmpty()
			m.SetName(name)
			metrics[name] = m
			switch {
			case fields[1] == "h":
				m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			case fields[1] == "delta":
				m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			case strings.HasSuffix(name, "_total"):
				s := m.SetEmptySum()
				s.SetIsMonotonic(true)
				s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			default:
				m.SetEmptyGauge()
			}
		}
		if m.Type() == pmetric.MetricTypeHistogram {
			histogramOf(m.Histogram().DataPoints().AppendEmpty(), labels, fields[2:])
			continue
		}
		p := numbers(m).AppendEmpty()
		attributes(p.Attributes(), labels)
		p.SetTimestamp(clock)
		if fields[1] == "END" {
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			continue
		}
		var v float64
		_, _ = fmt.Sscan(fields[1], &v)
		p.SetDoubleValue(v)
	}
	return rm
}

var clock = pcommon.NewTimestampFromTime(time.Unix(1000, 0))

func attributes(to pcommon.Map, labels string) {
	for _, l := range strings.Split(labels, ",") {
		if k, v, ok := strings.Cut(l, "="); ok {
			to.PutStr(k, strings.NewReplacer(";", ",", "~", " ").Replace(v))
		}
	}
}

func histogramOf(p pmetric.HistogramDataPoint, labels string, fields []string) {
	attributes(p.Attributes(), labels)
	p.SetTimestamp(clock)
	if fields[0] == "END" {
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		bounds(p, fields[1:])
		return
	}
	var count uint64
	var sum float64
	_, _ = fmt.Sscan(fields[0], &count)
	_, _ = fmt.Sscan(fields[1], &sum)
	p.SetCount(count)
	if fields[1] != "-" {
		p.SetSum(sum)
	}
	bounds(p, fields[2:])
}

func bounds(p pmetric.HistogramDataPoint, fields []string) {
	if len(fields) == 0 {
		return
	}
	count := p.Count()
	var last uint64
	for _, b := range strings.Split(fields[0], ",") {
		bound, n, _ := strings.Cut(b, ":")
		var v float64
		var below uint64
		_, _ = fmt.Sscan(bound, &v)
		_, _ = fmt.Sscan(n, &below)
		p.ExplicitBounds().Append(v)
		p.BucketCounts().Append(below - last)
		last = below
	}
	p.BucketCounts().Append(count - last)
}

// text writes what a resource has as lines, sorted: those of the vocabulary without the
// attributes that all have.
func text(rm pmetric.ResourceMetrics) string {
	var lines []string
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeHistogram:
				for _, p := range m.Histogram().DataPoints().All() {
					lines = append(lines, m.Name()+labels(p.Attributes())+" "+histogramText(p))
				}
			default:
				for _, p := range numbers(m).All() {
					v := fmt.Sprint(p.DoubleValue())
					if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
						v = fmt.Sprint(p.IntValue())
					}
					if p.Flags().NoRecordedValue() {
						v = "END"
					}
					if p.StartTimestamp() != 0 {
						v += fmt.Sprintf(" since %d", p.StartTimestamp().AsTime().Unix())
					}
					if m.Unit() == "{block}" {
						v += " blocks"
					}
					lines = append(lines, m.Name()+labels(p.Attributes())+" "+v)
				}
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func histogramText(p pmetric.HistogramDataPoint) string {
	if p.Flags().NoRecordedValue() {
		return "END"
	}
	sum := "-"
	if p.HasSum() {
		sum = fmt.Sprint(p.Sum())
	}
	return fmt.Sprintf("%d %s %v %v since %d", p.Count(), sum, p.ExplicitBounds().AsRaw(), p.BucketCounts().AsRaw(), p.StartTimestamp().AsTime().Unix())
}

func labels(m pcommon.Map) string {
	var list []string
	for k, v := range m.All() {
		switch k {
		case names.InferenceEngine, names.GenAIProviderName, names.GenAIOperationName:
		case names.InferenceBounds:
			if v.Str() == "none" {
				list = append(list, "none")
			}
		default:
			list = append(list, k[strings.LastIndexByte(k, '.')+1:]+"="+v.Str())
		}
	}
	slices.Sort(list)
	return "{" + strings.Join(list, ",") + "}"
}
