// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prompage // import "github.com/otelcol-gpu/otelcol-gpu/internal/prompage"

import (
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Target is a page that is scraped again and again. A series that was on the page before
// and is not now has a marker, a point without a value. The zero value has not been
// scraped.
type Target struct {
	last pmetric.Metrics // with markers
	any  bool
}

// Scrape is what a scrape of the page at a time gives, up included; of what the scraper
// reports about itself there is nothing more. A nil page is one that could not be had.
// The metrics are the caller's.
func (t *Target) Scrape(page []byte, at time.Time) (pmetric.Metrics, error) {
	md, err := Read(page, at)
	if err != nil {
		return md, err
	}
	now := pcommon.NewTimestampFromTime(at)
	metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	next := pmetric.NewMetrics()
	md.CopyTo(next)
	if t.any {
		markers(t.last.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics(), metrics, now)
	}
	t.last, t.any = next, true
	up := metrics.AppendEmpty()
	up.SetName("up")
	p := up.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(now)
	p.SetDoubleValue(1)
	if page == nil {
		p.SetDoubleValue(0)
	}
	return md, nil
}

// markers adds one for each series of before that is not there.
func markers(before, to pmetric.MetricSlice, at pcommon.Timestamp) {
	there, byName := map[string]bool{}, map[string]pmetric.Metric{}
	for _, m := range to.All() {
		byName[m.Name()] = m
		for attributes := range series(m) {
			there[key(m.Name(), attributes)] = true
		}
	}
	for _, m := range before.All() {
		for attributes, end := range series(m) {
			if there[key(m.Name(), attributes)] {
				continue
			}
			into, ok := byName[m.Name()]
			if !ok {
				into = like(m, to.AppendEmpty())
				byName[m.Name()] = into
			}
			end(into, at)
		}
	}
}

func key(name string, attributes pcommon.Map) string {
	pairs := make([]string, 0, attributes.Len()+1)
	for k, v := range attributes.All() {
		pairs = append(pairs, k+"="+v.Str())
	}
	slices.Sort(pairs)
	return strings.Join(append(pairs, name), "\x00")
}

// like begins a metric that is as another but for the points.
func like(m, to pmetric.Metric) pmetric.Metric {
	to.SetName(m.Name())
	to.SetDescription(m.Description())
	switch m.Type() {
	case pmetric.MetricTypeSum:
		to.SetEmptySum().SetIsMonotonic(true)
		to.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	case pmetric.MetricTypeHistogram:
		to.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	case pmetric.MetricTypeSummary:
		to.SetEmptySummary()
	default:
		to.SetEmptyGauge()
	}
	return to
}

var ended = pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)

// series are the series of a metric, with what adds the marker of each to a metric of the
// same kind. A metric that has another kind now gets none.
func series(m pmetric.Metric) func(yield func(pcommon.Map, func(pmetric.Metric, pcommon.Timestamp)) bool) {
	return func(yield func(pcommon.Map, func(pmetric.Metric, pcommon.Timestamp)) bool) {
		number := func(p pmetric.NumberDataPoint, points func(pmetric.Metric) pmetric.NumberDataPointSlice) bool {
			return yield(p.Attributes(), func(to pmetric.Metric, at pcommon.Timestamp) {
				if to.Type() != m.Type() {
					return
				}
				e := points(to).AppendEmpty()
				p.Attributes().CopyTo(e.Attributes())
				e.SetTimestamp(at)
				e.SetFlags(ended)
			})
		}
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			for _, p := range m.Gauge().DataPoints().All() {
				if !number(p, func(to pmetric.Metric) pmetric.NumberDataPointSlice { return to.Gauge().DataPoints() }) {
					return
				}
			}
		case pmetric.MetricTypeSum:
			for _, p := range m.Sum().DataPoints().All() {
				if !number(p, func(to pmetric.Metric) pmetric.NumberDataPointSlice { return to.Sum().DataPoints() }) {
					return
				}
			}
		case pmetric.MetricTypeHistogram:
			for _, p := range m.Histogram().DataPoints().All() {
				if !yield(p.Attributes(), func(to pmetric.Metric, at pcommon.Timestamp) { endHistogram(p, to, at) }) {
					return
				}
			}
		case pmetric.MetricTypeSummary:
			for _, p := range m.Summary().DataPoints().All() {
				if !yield(p.Attributes(), func(to pmetric.Metric, at pcommon.Timestamp) { endSummary(p, to, at) }) {
					return
				}
			}
		}
	}
}

// endHistogram keeps the bounds, with buckets of 0.
func endHistogram(p pmetric.HistogramDataPoint, to pmetric.Metric, at pcommon.Timestamp) {
	if to.Type() != pmetric.MetricTypeHistogram {
		return
	}
	e := to.Histogram().DataPoints().AppendEmpty()
	p.Attributes().CopyTo(e.Attributes())
	p.ExplicitBounds().CopyTo(e.ExplicitBounds())
	e.BucketCounts().FromRaw(make([]uint64, p.BucketCounts().Len()))
	e.SetTimestamp(at)
	e.SetFlags(ended)
}

func endSummary(p pmetric.SummaryDataPoint, to pmetric.Metric, at pcommon.Timestamp) {
	if to.Type() != pmetric.MetricTypeSummary {
		return
	}
	e := to.Summary().DataPoints().AppendEmpty()
	p.Attributes().CopyTo(e.Attributes())
	for _, q := range p.QuantileValues().All() {
		e.QuantileValues().AppendEmpty().SetQuantile(q.Quantile())
	}
	e.SetTimestamp(at)
	e.SetFlags(ended)
}
