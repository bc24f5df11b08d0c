// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package storetest // import "github.com/otelcol-gpu/otelcol-gpu/internal/store/storetest"

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

func (c *contract) labels(t *testing.T) {
	whole := store.Selection{Start: c.begin, End: c.at(30 * time.Minute)}
	s := whole
	s.Matchers = []string{`util{k8s_pod_name="llama-0"}`, `{__name__="ended"}`}
	found, _, err := c.Store.Series(t.Context(), s)
	require.NoError(t, err)
	assert.ElementsMatch(t, []model.LabelSet{
		{"__name__": "util", "service_name": "llama", "k8s_pod_name": "llama-0", "hw_id": "GPU-0"},
		{"__name__": "util", "service_name": "llama", "k8s_pod_name": "llama-0", "hw_id": "GPU-1"},
		{"__name__": "ended"},
	}, found)

	names, _, err := c.Store.LabelNames(t.Context(), s)
	require.NoError(t, err)
	assert.Equal(t, []string{"__name__", "hw_id", "k8s_pod_name", "service_name"}, names)
	names, _, err = c.Store.LabelNames(t.Context(), whole)
	require.NoError(t, err)
	assert.Subset(t, names, []string{"__name__", "kind", "label.with.dots", "of", "text"})

	values, _, err := c.Store.LabelValues(t.Context(), "hw_id", whole)
	require.NoError(t, err)
	assert.Equal(t, []string{"GPU-0", "GPU-1", "GPU-2"}, values)
	values, _, err = c.Store.LabelValues(t.Context(), "hw_id", s)
	require.NoError(t, err)
	assert.Equal(t, []string{"GPU-0", "GPU-1"}, values)
	values, _, err = c.Store.LabelValues(t.Context(), "no_such_label", whole)
	require.NoError(t, err)
	assert.Empty(t, values)
	values, _, err = c.Store.LabelValues(t.Context(), "label.with.dots", whole)
	require.NoError(t, err)
	assert.Equal(t, []string{"v"}, values)
	assert.Len(t, c.vector(t, `{"metric.with.dots", "label.with.dots"="v"}`, c.at(0)), 1)
}

func (c *contract) hostile(t *testing.T) {
	values, _, err := c.Store.LabelValues(t.Context(), "text", store.Selection{})
	require.NoError(t, err)
	for name, text := range Hostile {
		assert.Contains(t, values, text, name)
		v := c.vector(t, `hostile{text=`+strconv.Quote(text)+`}`, c.at(time.Second))
		if assert.Len(t, v, 1, name) {
			assert.Equal(t, model.LabelValue(text), v[0].Metric["text"])
			assert.Equal(t, model.LabelValue(name), v[0].Metric["kind"])
		}
	}
}

func (c *contract) limits(t *testing.T) {
	found, warnings, err := c.Store.Series(t.Context(), store.Selection{Matchers: []string{`hostile`}, Limit: 3})
	require.NoError(t, err)
	assert.Len(t, found, 3)
	assert.NotEmpty(t, warnings, "what is cut is reported")
	values, warnings, err := c.Store.LabelValues(t.Context(), "text", store.Selection{Limit: 3})
	require.NoError(t, err)
	assert.Len(t, values, 3)
	assert.NotEmpty(t, warnings)
	names, warnings, err := c.Store.LabelNames(t.Context(), store.Selection{Limit: 1})
	require.NoError(t, err)
	assert.Len(t, names, 1)
	assert.NotEmpty(t, warnings)
	_, warnings, err = c.Store.LabelNames(t.Context(), store.Selection{Limit: 1000})
	require.NoError(t, err)
	assert.Empty(t, warnings)
}

func (c *contract) bad(t *testing.T) {
	for _, query := range []string{
		``, `util{`, `no_such_function(util)`, `util + `, `sum(`, `"unfinished`, `util[5m`, `rate(util)`, `{}`,
		strings.Repeat("(", 10_000), strings.Repeat("x", 100_000),
	} {
		_, err := c.Store.Instant(t.Context(), query, c.at(0))
		kind(t, store.BadQuery, err)
	}
	for name, r := range map[string]store.Range{
		"no step":         {Start: c.at(0), End: c.at(time.Minute)},
		"negative step":   {Start: c.at(0), End: c.at(time.Minute), Step: -time.Second},
		"end before":      {Start: c.at(time.Minute), End: c.at(0), Step: time.Second},
		"too many points": {Start: c.at(0), End: c.at(24 * time.Hour), Step: time.Second},
		"absurd":          {Start: time.Unix(math.MinInt32, 0), End: time.Unix(math.MaxInt32, 0), Step: time.Nanosecond},
	} {
		_, err := c.Store.Range(t.Context(), `util`, r)
		kind(t, store.BadQuery, err, name)
	}
	_, _, err := c.Store.Series(t.Context(), store.Selection{})
	kind(t, store.BadQuery, err)
	for _, selector := range []string{`util[5m]`, `rate(util[5m])`, `{`, `{a=~".*"}`, `{a=~"("}`, strings.Repeat("x", 100_000)} {
		_, _, err = c.Store.Series(t.Context(), store.Selection{Matchers: []string{selector}})
		kind(t, store.BadQuery, err, selector[:min(20, len(selector))])
	}
	_, _, err = c.Store.LabelNames(t.Context(), store.Selection{Start: c.at(time.Minute), End: c.at(0)})
	kind(t, store.BadQuery, err)
	_, _, err = c.Store.LabelValues(t.Context(), "", store.Selection{})
	kind(t, store.BadQuery, err)
}

func (c *contract) tooMuch(t *testing.T) {
	_, err := c.Store.Instant(t.Context(), `util + on(service_name) util`, c.at(0))
	kind(t, store.TooMuch, err, "many to many")
	_, err = c.Store.Instant(t.Context(), `count_over_time(vector(1)[1d:1s])`, c.at(0))
	kind(t, store.TooMuch, err)
	assert.ErrorContains(t, err, "samples")
	_, err = c.Store.Range(t.Context(), `util or hostile or special`, store.Range{Start: c.at(0), End: c.at(5 * time.Minute), Step: 30 * time.Millisecond})
	kind(t, store.TooMuch, err)
	// It answers others all the same.
	assert.NotEmpty(t, c.vector(t, `util`, c.at(0)))
}

func kind(t *testing.T, want store.Kind, err error, about ...any) {
	t.Helper()
	if assert.Error(t, err, about...) {
		assert.IsType(t, &store.Error{}, err)
		assert.Equal(t, want, store.KindOf(err), "%v: %v", about, err)
	}
}

// nativeHistogram has buckets on both sides of zero, and an empty one.
func nativeHistogram() *histogram.Histogram {
	return &histogram.Histogram{
		Schema: 1, ZeroThreshold: 0.001, ZeroCount: 2, Count: 12, Sum: 18.4,
		PositiveSpans:   []histogram.Span{{Offset: 0, Length: 3}, {Offset: 1, Length: 1}},
		PositiveBuckets: []int64{1, 1, -2, 3},
		NegativeSpans:   []histogram.Span{{Offset: 0, Length: 1}, {Offset: 1, Length: 1}},
		NegativeBuckets: []int64{2, 0},
	}
}

func rounded(v []float64) []float64 {
	out := make([]float64, 0, len(v))
	for _, f := range v {
		out = append(out, math.Round(f*1e15)/1e15)
	}
	return out
}
