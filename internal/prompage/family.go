// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prompage // import "github.com/otelcol-gpu/otelcol-gpu/internal/prompage"

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// family is a metric and its points.
type family struct {
	described
	name    string
	created string // the name of samples that are starts
	points  []*point
	byHash  map[uint64]*point
	native  bool
}

// point is made of a sample, or of the samples of a histogram or a summary. It is a
// marker if its value, its count or its sum is stale.
type point struct {
	labels         labels.Labels
	value, sum     float64 // value is a count, if there are buckets
	valued, summed bool
	created        float64
	buckets        []bucket // or quantiles
}

type bucket struct{ bound, value float64 }

func (d *described) complex() bool {
	return d.kind == model.MetricTypeHistogram || d.kind == model.MetricTypeSummary
}

var suffixes = []string{"_bucket", "_count", "_sum", "_total", "_info", "_created"}

// family finds the family of a sample: what is described under its name, or under the
// name without a suffix.
func (r *reader) family(name string) *family {
	d, known := r.described[name]
	own, base := name, name
	for _, suffix := range suffixes {
		stem, ok := strings.CutSuffix(name, suffix)
		if known || !ok {
			continue
		}
		if d, known = r.described[stem]; known {
			base = stem
			switch {
			case d.kind != model.MetricTypeCounter:
				own = stem
			case suffix == "_created":
				own = stem + "_total"
			}
		}
		break
	}
	if d.kind == "" {
		d.kind = model.MetricTypeUnknown
	}
	f := r.byName[own]
	if f == nil {
		f = &family{described: d, name: own, created: base + "_created", byHash: map[uint64]*point{}}
		r.byName[own] = f
		r.families = append(r.families, f)
	}
	return f
}

// sample adds a sample, unless it is a bucket or a quantile without a bound.
func (r *reader) sample(l labels.Labels, v float64) bool {
	name := l.Get(model.MetricNameLabel)
	f := r.family(name)
	var bound string
	switch f.kind {
	case model.MetricTypeHistogram:
		bound = model.BucketLabel
	case model.MetricTypeSummary:
		bound = model.QuantileLabel
	}
	var hash uint64
	hash, r.buffer = l.HashWithoutLabels(r.buffer, bound)
	p := f.byHash[hash]
	if p == nil {
		p = &point{labels: labels.NewBuilder(l).Del(model.MetricNameLabel, bound).Labels()}
		f.byHash[hash] = p
		f.points = append(f.points, p)
	}
	switch {
	case f.complex() && strings.HasSuffix(name, "_sum"):
		p.sum, p.summed = v, true
	case f.complex() && strings.HasSuffix(name, "_count"):
		p.value, p.valued = v, true
	case (f.complex() || f.kind == model.MetricTypeCounter) && name == f.created:
		p.created = v
	case f.complex():
		b, err := strconv.ParseFloat(l.Get(bound), 64)
		if err != nil {
			return false
		}
		p.buckets = append(p.buckets, bucket{b, v})
	default:
		p.value, p.valued = v, true
	}
	return true
}

// end adds what ends a series. One that has the name of a histogram itself is taken for a
// native histogram, which no page of the text format has.
func (r *reader) end(l labels.Labels) {
	name := l.Get(model.MetricNameLabel)
	if r.described[name].kind != model.MetricTypeHistogram {
		r.sample(l, math.Float64frombits(value.StaleNaN))
		return
	}
	const native = "native histogram "
	f := r.byName[native+name]
	if f == nil {
		f = &family{described: r.described[name], name: name, native: true}
		r.byName[native+name] = f
		r.families = append(r.families, f)
	}
	f.points = append(f.points, &point{labels: labels.NewBuilder(l).Del(model.MetricNameLabel, model.BucketLabel).Labels(), valued: true})
}

// write writes the points of all families. One without a value or a count is none.
func (r *reader) write(to pmetric.MetricSlice, at pcommon.Timestamp) {
	for _, f := range r.families {
		points := slices.DeleteFunc(f.points, func(p *point) bool { return !p.valued })
		if len(points) == 0 {
			continue
		}
		m := to.AppendEmpty()
		describe(m, f.name, f.described)
		var numbers pmetric.NumberDataPointSlice
		switch {
		case f.native:
			m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			for _, p := range points {
				e := m.ExponentialHistogram().DataPoints().AppendEmpty()
				e.SetTimestamp(at)
				e.SetFlags(ended)
				p.attributes(e.Attributes())
			}
			continue
		case f.kind == model.MetricTypeHistogram:
			m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			for _, p := range points {
				p.histogram(m.Histogram().DataPoints().AppendEmpty(), at)
			}
			continue
		case f.kind == model.MetricTypeSummary:
			m.SetEmptySummary()
			for _, p := range points {
				p.summary(m.Summary().DataPoints().AppendEmpty(), at)
			}
			continue
		case f.kind == model.MetricTypeCounter:
			m.SetEmptySum().SetIsMonotonic(true)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			numbers = m.Sum().DataPoints()
		default:
			numbers = m.SetEmptyGauge().DataPoints()
		}
		for _, p := range points {
			p.number(numbers.AppendEmpty(), at)
		}
	}
}

// describe sets what a metric has beside its points.
func describe(m pmetric.Metric, name string, d described) {
	m.SetName(name)
	m.SetDescription(d.help)
	m.Metadata().PutStr("prometheus.type", string(d.kind))
}

var ended = pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)

func (p *point) stale() bool { return value.IsStaleNaN(p.value) || value.IsStaleNaN(p.sum) }

func (p *point) start() pcommon.Timestamp { return pcommon.Timestamp(p.created * 1e9) }

func (p *point) number(to pmetric.NumberDataPoint, at pcommon.Timestamp) {
	to.SetTimestamp(at)
	to.SetStartTimestamp(p.start())
	if p.stale() {
		to.SetFlags(ended)
	} else {
		to.SetDoubleValue(p.value)
	}
	p.attributes(to.Attributes())
}

// histogram writes one. A bucket that falls, and one that ended while others did not,
// becomes a count that cannot be; a marker keeps its bounds, with buckets of 0.
func (p *point) histogram(to pmetric.HistogramDataPoint, at pcommon.Timestamp) {
	to.SetTimestamp(at)
	to.SetStartTimestamp(p.start())
	p.attributes(to.Attributes())
	p.sort()
	if n := len(p.buckets); n > 0 && math.IsInf(p.buckets[n-1].bound, 1) {
		p.buckets = p.buckets[:n-1]
	}
	for _, b := range p.buckets {
		to.ExplicitBounds().Append(b.bound)
	}
	if p.stale() {
		to.SetFlags(ended)
		to.BucketCounts().FromRaw(make([]uint64, len(p.buckets)+1))
		return
	}
	to.SetCount(uint64(p.value))
	if p.summed {
		to.SetSum(p.sum)
	}
	last := 0.0
	for _, b := range p.buckets {
		to.BucketCounts().Append(uint64(b.value - last))
		last = b.value
	}
	to.BucketCounts().Append(uint64(p.value - last))
}

func (p *point) summary(to pmetric.SummaryDataPoint, at pcommon.Timestamp) {
	to.SetTimestamp(at)
	to.SetStartTimestamp(p.start())
	p.attributes(to.Attributes())
	p.sort()
	stale := p.stale()
	if stale {
		to.SetFlags(ended)
	} else {
		to.SetCount(uint64(p.value))
		to.SetSum(p.sum)
	}
	for _, b := range p.buckets {
		q := to.QuantileValues().AppendEmpty()
		q.SetQuantile(b.bound)
		if !stale {
			q.SetValue(b.value)
		}
	}
}

func (p *point) sort() {
	slices.SortFunc(p.buckets, func(a, b bucket) int { return cmp.Compare(a.bound, b.bound) })
}

func (p *point) attributes(to pcommon.Map) {
	to.EnsureCapacity(p.labels.Len())
	p.labels.Range(func(l labels.Label) { to.PutStr(l.Name, l.Value) })
}
