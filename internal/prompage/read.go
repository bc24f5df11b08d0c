// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package prompage makes of a page in Prometheus' text format what the Prometheus
// receiver makes of it, without a server, a client and their clocks: for tests. That
// both give the same points is a test in testbed/inference.
package prompage // import "github.com/otelcol-gpu/otelcol-gpu/internal/prompage"

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// reader collects the series of a page by family.
type reader struct {
	types map[string]model.MetricType
	help  map[string]string
	to    pmetric.MetricSlice
	at    pcommon.Timestamp
	// metrics are those begun so far, and parts the series of histograms and summaries.
	metrics map[string]pmetric.Metric
	parts   []*part
	byKey   map[partKey]*part
	buffer  []byte
}

// partKey is a family and a hash of the labels of one of its series.
type partKey struct {
	family string
	labels uint64
}

// part is a series of a histogram or a summary, whose samples have names of their own.
type part struct {
	family     string
	attributes labels.Labels
	count, sum float64
	counted    bool
	buckets    []bucket
}

type bucket struct{ bound, below float64 }

// Read reads a page of the text format that was scraped at a time, into one scope of one
// resource. A family keeps its name on the page; one without a type is a gauge. The
// error is about a line that is not of the format.
func Read(page []byte, at time.Time) (pmetric.Metrics, error) {
	md := pmetric.NewMetrics()
	r := &reader{
		types: map[string]model.MetricType{}, help: map[string]string{}, metrics: map[string]pmetric.Metric{}, byKey: map[partKey]*part{},
		to: md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics(), at: pcommon.NewTimestampFromTime(at),
	}
	p := textparse.NewPromParser(append(slices.Clone(page), '\n'), labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return md, fmt.Errorf("page: %w", err)
		}
		switch entry {
		case textparse.EntryType:
			name, kind := p.Type()
			r.types[string(name)] = kind
		case textparse.EntryHelp:
			name, text := p.Help()
			r.help[string(name)] = string(text)
		case textparse.EntrySeries:
			var l labels.Labels
			p.Labels(&l)
			_, _, value := p.Series()
			if err := r.sample(l, value); err != nil {
				return md, fmt.Errorf("page: %s: %w", l.Get(model.MetricNameLabel), err)
			}
		}
	}
	for _, part := range r.parts {
		r.complex(part)
	}
	return md, nil
}

// family is the family of a sample: that of its name, or of the name without a suffix.
func (r *reader) family(name string) (family, suffix string) {
	if _, ok := r.types[name]; ok {
		return name, ""
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if stem, ok := strings.CutSuffix(name, suffix); ok {
			if kind := r.types[stem]; kind == model.MetricTypeHistogram || kind == model.MetricTypeSummary {
				return stem, suffix
			}
		}
	}
	return name, ""
}

func (r *reader) sample(l labels.Labels, value float64) error {
	family, suffix := r.family(l.Get(model.MetricNameLabel))
	kind := r.types[family]
	if kind != model.MetricTypeHistogram && kind != model.MetricTypeSummary {
		r.number(family, kind, l, value)
		return nil
	}
	p := r.part(family, l)
	switch suffix {
	case "_count":
		p.count, p.counted = value, true
	case "_sum":
		p.sum = value
	default:
		text := l.Get(model.BucketLabel) + l.Get(model.QuantileLabel)
		bound, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		p.buckets = append(p.buckets, bucket{bound, value})
	}
	return nil
}

func (r *reader) metric(name string) (m pmetric.Metric, known bool) {
	if m, known = r.metrics[name]; !known {
		m = r.to.AppendEmpty()
		m.SetName(name)
		m.SetDescription(r.help[name])
		r.metrics[name] = m
	}
	return m, known
}

func (r *reader) number(name string, kind model.MetricType, l labels.Labels, value float64) {
	m, known := r.metric(name)
	var points pmetric.NumberDataPointSlice
	switch {
	case kind == model.MetricTypeCounter && !known:
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		points = m.Sum().DataPoints()
	case kind == model.MetricTypeCounter:
		points = m.Sum().DataPoints()
	case !known:
		points = m.SetEmptyGauge().DataPoints()
	default:
		points = m.Gauge().DataPoints()
	}
	p := points.AppendEmpty()
	p.SetTimestamp(r.at)
	p.SetDoubleValue(value)
	attributes(l, p.Attributes())
}

func (r *reader) part(family string, l labels.Labels) *part {
	var hash uint64
	hash, r.buffer = l.HashWithoutLabels(r.buffer, model.BucketLabel, model.QuantileLabel)
	key := partKey{family, hash}
	p := r.byKey[key]
	if p == nil {
		p = &part{family: family, attributes: labels.NewBuilder(l).Del(model.MetricNameLabel, model.BucketLabel, model.QuantileLabel).Labels()}
		r.byKey[key] = p
		r.parts = append(r.parts, p)
	}
	return p
}

// complex writes a point of a histogram or a summary; none without a count.
func (r *reader) complex(p *part) {
	if !p.counted {
		return
	}
	slices.SortFunc(p.buckets, func(a, b bucket) int { return cmp.Compare(a.bound, b.bound) })
	m, known := r.metric(p.family)
	if r.types[p.family] == model.MetricTypeSummary {
		if !known {
			m.SetEmptySummary()
		}
		point := m.Summary().DataPoints().AppendEmpty()
		point.SetTimestamp(r.at)
		point.SetCount(uint64(p.count))
		point.SetSum(p.sum)
		for _, b := range p.buckets {
			q := point.QuantileValues().AppendEmpty()
			q.SetQuantile(b.bound)
			q.SetValue(b.below)
		}
		attributes(p.attributes, point.Attributes())
		return
	}
	if !known {
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	point := m.Histogram().DataPoints().AppendEmpty()
	point.SetTimestamp(r.at)
	point.SetCount(uint64(p.count))
	point.SetSum(p.sum)
	last := 0.0
	for _, b := range p.buckets {
		if math.IsInf(b.bound, 1) {
			break
		}
		point.ExplicitBounds().Append(b.bound)
		point.BucketCounts().Append(uint64(b.below - last)) // of a bucket that falls, a count beyond all
		last = b.below
	}
	point.BucketCounts().Append(uint64(p.count - last))
	attributes(p.attributes, point.Attributes())
}

// attributes are the labels of a series but its name; an empty one is absent.
func attributes(l labels.Labels, to pcommon.Map) {
	l.Range(func(l labels.Label) {
		if l.Name != model.MetricNameLabel && l.Value != "" {
			to.PutStr(l.Name, l.Value)
		}
	})
}
