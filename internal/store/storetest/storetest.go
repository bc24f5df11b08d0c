// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package storetest is the contract of store.Querier as tests that every engine
// passes: the embedded one, a Prometheus server, and the embedded one through its
// own API.
package storetest // import "github.com/otelcol-gpu/otelcol-gpu/internal/store/storetest"

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// MaxSamples is what a subject's query may hold; its timeout is Timeout, its
// lookback 5 minutes.
const (
	MaxSamples = 50_000
	Timeout    = 5 * time.Second
)

// Subject is an empty store.
type Subject struct {
	Store store.Querier
	// Write stores series so that they can be read when it returns.
	Write func(t *testing.T, series ...store.Series)
}

// Stale ends a series.
var Stale = math.Float64frombits(value.StaleNaN)

// Hostile are values of labels that were chosen to do harm.
var Hostile = map[string]string{
	"html":    `<script>alert("x")</script>`,
	"quotes":  `a"b'c\d` + "`" + `{}=~`,
	"slashes": `../../etc/passwd/a\b`,
	"regex":   `.*|(a+)+$`,
	"lines":   "a\nb\tc\x00d",
	"unicode": "größe-模型-🚀-\u202eabc",
	"percent": "%s%2f%00&a=b;c#d?e",
	"long":    string(make253()),
}

func make253() []byte {
	b := make([]byte, 253)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return b
}

// Run runs the contract. begin is about now: samples are written in the half
// hour before it.
func Run(t *testing.T, s Subject) {
	begin := time.Now().Truncate(time.Minute).Add(-30 * time.Minute)
	c := contract{Subject: s, begin: begin}
	s.Write(t, c.world()...)
	for name, test := range map[string]func(*testing.T){
		"instant":           c.instant,
		"lookback":          c.lookback,
		"range":             c.ranges,
		"ended series":      c.ended,
		"special values":    c.special,
		"native histograms": c.histograms,
		"series and labels": c.labels,
		"hostile names":     c.hostile,
		"limits of lists":   c.limits,
		"bad questions":     c.bad,
		"too much":          c.tooMuch,
		"canceled":          c.canceled,
		"healthy":           c.healthy,
	} {
		t.Run(name, test)
	}
}

type contract struct {
	Subject
	begin time.Time
}

func (c *contract) at(d time.Duration) time.Time { return c.begin.Add(d) }

// every returns samples at an interval, until a time before the end.
func (c *contract) every(interval, from, until time.Duration, f func(i int) float64) []store.Sample {
	var out []store.Sample
	for i, d := 0, from; d < until; i, d = i+1, d+interval {
		out = append(out, store.Sample{Time: c.at(d).UnixMilli(), Value: f(i)})
	}
	return out
}

func constant(v float64) func(int) float64 { return func(int) float64 { return v } }

// world is what all tests ask about.
func (c *contract) world() []store.Series {
	gpu := func(pod, hw string) labels.Labels {
		return labels.FromStrings(model.MetricNameLabel, "util", "service_name", "llama", "k8s_pod_name", pod, "hw_id", hw)
	}
	gap := append(c.every(15*time.Second, 0, 5*time.Minute, constant(0.5)), c.every(15*time.Second, 20*time.Minute, 25*time.Minute, constant(0.7))...)
	ended := append(c.every(15*time.Second, 0, 10*time.Minute, constant(1)), store.Sample{Time: c.at(10 * time.Minute).UnixMilli(), Value: Stale})
	back := c.every(15*time.Second, 12*time.Minute, 13*time.Minute, constant(2))
	world := []store.Series{
		{Labels: gpu("llama-0", "GPU-0"), Samples: c.every(15*time.Second, 0, 25*time.Minute, constant(0.25))},
		{Labels: gpu("llama-0", "GPU-1"), Samples: c.every(15*time.Second, 0, 25*time.Minute, constant(0))},
		{Labels: gpu("llama-1", "GPU-2"), Samples: gap},
		{Labels: labels.FromStrings(model.MetricNameLabel, "energy_total"), Samples: c.every(15*time.Second, 0, 25*time.Minute, func(i int) float64 { return float64(i) * 150 })},
		{Labels: labels.FromStrings(model.MetricNameLabel, "ended"), Samples: append(ended, back...)},
		{Labels: labels.FromStrings(model.MetricNameLabel, "special", "of", "nan"), Samples: c.every(time.Minute, 0, time.Minute, constant(math.NaN()))},
		{Labels: labels.FromStrings(model.MetricNameLabel, "special", "of", "inf"), Samples: c.every(time.Minute, 0, time.Minute, constant(math.Inf(-1)))},
		{Labels: labels.FromStrings(model.MetricNameLabel, "special", "of", "large"), Samples: c.every(time.Minute, 0, time.Minute, constant(85_899_345_920))},
		{Labels: labels.FromStrings(model.MetricNameLabel, "special", "of", "small"), Samples: c.every(time.Minute, 0, time.Minute, constant(5e-324))},
		{Labels: labels.FromStrings(model.MetricNameLabel, "metric.with.dots", "label.with.dots", "v"), Samples: c.every(time.Minute, 0, time.Minute, constant(1))},
		{Labels: labels.FromStrings(model.MetricNameLabel, "latency"), Histograms: []store.Histogram{{Time: c.begin.UnixMilli(), Integer: nativeHistogram()}}},
	}
	for name, v := range Hostile {
		world = append(world, store.Series{
			Labels:  labels.FromStrings(model.MetricNameLabel, "hostile", "kind", name, "text", v),
			Samples: c.every(time.Minute, 0, time.Minute, constant(1)),
		})
	}
	return world
}

func (c *contract) instant(t *testing.T) {
	v := c.vector(t, `avg by (service_name) (util)`, c.at(4*time.Minute))
	require.Len(t, v, 1)
	assert.Equal(t, model.Metric{"service_name": "llama"}, v[0].Metric)
	assert.Equal(t, 0.25, float64(v[0].Value))
	assert.Equal(t, model.Time(c.at(4*time.Minute).UnixMilli()), v[0].Timestamp)

	// 0 is data, and a series with it is there.
	v = c.vector(t, `util{hw_id="GPU-1"}`, c.at(4*time.Minute))
	require.Len(t, v, 1)
	assert.Equal(t, model.SampleValue(0), v[0].Value)
	assert.Equal(t, model.Metric{"__name__": "util", "service_name": "llama", "k8s_pod_name": "llama-0", "hw_id": "GPU-1"}, v[0].Metric)

	v = c.vector(t, `rate(energy_total[1m])`, c.at(4*time.Minute))
	require.Len(t, v, 1)
	assert.InDelta(t, 10, float64(v[0].Value), 1e-9)

	// The age of data is known.
	v = c.vector(t, `time() - timestamp(util{hw_id="GPU-2"})`, c.at(6*time.Minute))
	require.Len(t, v, 1)
	assert.Equal(t, model.SampleValue(75), v[0].Value)

	r := c.ask(t, `1 + 1`, c.at(0))
	assert.Equal(t, &model.Scalar{Value: 2, Timestamp: model.Time(c.begin.UnixMilli())}, r)
	r = c.ask(t, `energy_total[31s]`, c.at(time.Minute))
	require.IsType(t, model.Matrix{}, r)
	require.Len(t, r, 1)
	assert.Len(t, r.(model.Matrix)[0].Values, 3)

	assert.Empty(t, c.vector(t, `nothing_of_this_name`, c.at(0)))
	assert.Empty(t, c.vector(t, `util`, c.at(-time.Hour)))
}

func (c *contract) lookback(t *testing.T) {
	last := 5*time.Minute - 15*time.Second // of llama-1 before its gap
	assert.Len(t, c.vector(t, `util{hw_id="GPU-2"}`, c.at(last+5*time.Minute-time.Second)), 1)
	assert.Empty(t, c.vector(t, `util{hw_id="GPU-2"}`, c.at(last+5*time.Minute+time.Second)))
}

func (c *contract) ranges(t *testing.T) {
	result, err := c.Store.Range(t.Context(), `util{hw_id="GPU-2"}`, store.Range{Start: c.at(0), End: c.at(25 * time.Minute), Step: time.Minute})
	require.NoError(t, err)
	require.IsType(t, model.Matrix{}, result.Value)
	m := result.Value.(model.Matrix)
	require.Len(t, m, 1)
	seen := map[time.Duration]float64{}
	for _, p := range m[0].Values {
		seen[p.Timestamp.Time().Sub(c.begin)] = float64(p.Value)
	}
	assert.Equal(t, 0.5, seen[0])
	assert.Equal(t, 0.5, seen[9*time.Minute], "the last value counts for the lookback")
	assert.NotContains(t, seen, 10*time.Minute, "then there is a gap")
	assert.NotContains(t, seen, 19*time.Minute)
	assert.Equal(t, 0.7, seen[20*time.Minute])
	assert.Contains(t, seen, 25*time.Minute, "both ends are in the range")

	// The mean is over who has data.
	result, err = c.Store.Range(t.Context(), `avg(util)`, store.Range{Start: c.at(15 * time.Minute), End: c.at(15 * time.Minute), Step: time.Minute})
	require.NoError(t, err)
	require.Len(t, result.Value, 1)
	assert.Equal(t, 0.125, float64(result.Value.(model.Matrix)[0].Values[0].Value))

	result, err = c.Store.Range(t.Context(), `nothing_of_this_name`, store.Range{Start: c.at(0), End: c.at(time.Minute), Step: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, model.ValMatrix, result.Value.Type())
	assert.Empty(t, result.Value)
}

func (c *contract) ended(t *testing.T) {
	assert.Len(t, c.vector(t, `ended`, c.at(10*time.Minute-time.Second)), 1)
	assert.Empty(t, c.vector(t, `ended`, c.at(10*time.Minute)), "a marker ends a series at once")
	assert.Empty(t, c.vector(t, `ended`, c.at(12*time.Minute-time.Second)))
	v := c.vector(t, `ended`, c.at(12*time.Minute))
	require.Len(t, v, 1)
	assert.Equal(t, model.SampleValue(2), v[0].Value)
	assert.Len(t, c.vector(t, `count_over_time(ended[30m])`, c.at(13*time.Minute)), 1)
	assert.Equal(t, model.SampleValue(44), c.vector(t, `count_over_time(ended[30m])`, c.at(13*time.Minute))[0].Value, "a marker is no sample")
}

func (c *contract) special(t *testing.T) {
	got := map[string]float64{}
	for _, s := range c.vector(t, `special`, c.at(time.Second)) {
		got[string(s.Metric["of"])] = float64(s.Value)
	}
	require.Len(t, got, 4)
	assert.True(t, math.IsNaN(got["nan"]))
	assert.True(t, math.IsInf(got["inf"], -1))
	assert.Equal(t, 85_899_345_920.0, got["large"])
	assert.Equal(t, 5e-324, got["small"])
}

func (c *contract) histograms(t *testing.T) {
	v := c.vector(t, `latency`, c.at(time.Second))
	require.Len(t, v, 1)
	require.NotNil(t, v[0].Histogram)
	assert.Equal(t, model.FloatString(12), v[0].Histogram.Count)
	assert.Equal(t, model.FloatString(18.4), v[0].Histogram.Sum)
	var upper []float64
	for _, b := range v[0].Histogram.Buckets {
		upper = append(upper, float64(b.Upper))
	}
	assert.Equal(t, []float64{-1.414213562373095, -0.707106781186548, 0.001, 1, 1.414213562373095, 4}, rounded(upper))
	m, err := c.Store.Range(t.Context(), `latency`, store.Range{Start: c.begin, End: c.at(time.Minute), Step: time.Minute})
	require.NoError(t, err)
	require.Len(t, m.Value, 1)
	require.Len(t, m.Value.(model.Matrix)[0].Histograms, 2)
	assert.Equal(t, v[0].Histogram, m.Value.(model.Matrix)[0].Histograms[0].Histogram)
	assert.Equal(t, model.SampleValue(12), c.vector(t, `histogram_count(latency)`, c.at(time.Second))[0].Value)
}

func (c *contract) healthy(t *testing.T) {
	assert.NoError(t, c.Store.Health(t.Context()))
	info := c.Store.Info()
	assert.Equal(t, 11_000, info.MaxPoints)
	assert.Equal(t, Timeout, info.QueryTimeout)
	assert.NotEmpty(t, info.Engine)
}

func (c *contract) ask(t *testing.T, query string, at time.Time) model.Value {
	t.Helper()
	r, err := c.Store.Instant(t.Context(), query, at)
	require.NoError(t, err, query)
	return r.Value
}

func (c *contract) vector(t *testing.T, query string, at time.Time) model.Vector {
	t.Helper()
	v := c.ask(t, query, at)
	require.IsType(t, model.Vector{}, v, query)
	return v.(model.Vector)
}

func (c *contract) canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Store.Instant(ctx, `util`, c.at(0))
	kind(t, store.Canceled, err)
}
