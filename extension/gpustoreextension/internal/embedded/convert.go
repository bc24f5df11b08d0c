// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"

import (
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// convert turns a value of PromQL into one of the Prometheus API, which outlives
// the query.
func convert(v parser.Value) (model.Value, error) {
	switch v := v.(type) {
	case promql.Vector:
		out := make(model.Vector, 0, len(v))
		for _, s := range v {
			sample := &model.Sample{Metric: metric(s.Metric), Timestamp: model.Time(s.T), Value: model.SampleValue(s.F)}
			if s.H != nil {
				sample.Value, sample.Histogram = 0, buckets(s.H)
			}
			out = append(out, sample)
		}
		return out, nil
	case promql.Matrix:
		out := make(model.Matrix, 0, len(v))
		for _, s := range v {
			stream := &model.SampleStream{Metric: metric(s.Metric), Values: make([]model.SamplePair, 0, len(s.Floats))}
			for _, p := range s.Floats {
				stream.Values = append(stream.Values, model.SamplePair{Timestamp: model.Time(p.T), Value: model.SampleValue(p.F)})
			}
			for _, p := range s.Histograms {
				stream.Histograms = append(stream.Histograms, model.SampleHistogramPair{Timestamp: model.Time(p.T), Histogram: buckets(p.H)})
			}
			out = append(out, stream)
		}
		return out, nil
	case promql.Scalar:
		return &model.Scalar{Timestamp: model.Time(v.T), Value: model.SampleValue(v.V)}, nil
	case promql.String:
		return &model.String{Timestamp: model.Time(v.T), Value: v.V}, nil
	default:
		return nil, store.Errorf(store.Internal, "a query has a result of an unknown type (%s)", v.Type())
	}
}

func metric(l labels.Labels) model.Metric {
	m := make(model.Metric, l.Len())
	l.Range(func(label labels.Label) {
		m[model.LabelName(label.Name)] = model.LabelValue(label.Value)
	})
	return m
}

// Which ends of a bucket belong to it, as the API numbers it.
const (
	leftOpen = iota
	rightOpen
	bothOpen
	bothClosed
)

func buckets(h *histogram.FloatHistogram) *model.SampleHistogram {
	out := &model.SampleHistogram{Count: model.FloatString(h.Count), Sum: model.FloatString(h.Sum)}
	for it := h.AllBucketIterator(); it.Next(); {
		b := it.At()
		if b.Count == 0 {
			continue // the API has filled buckets only
		}
		ends := int32(bothOpen)
		switch {
		case b.LowerInclusive && b.UpperInclusive:
			ends = bothClosed
		case b.LowerInclusive:
			ends = rightOpen
		case b.UpperInclusive:
			ends = leftOpen
		}
		out.Buckets = append(out.Buckets, &model.HistogramBucket{
			Boundaries: ends, Lower: model.FloatString(b.Lower), Upper: model.FloatString(b.Upper), Count: model.FloatString(b.Count),
		})
	}
	return out
}
