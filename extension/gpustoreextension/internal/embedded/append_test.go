// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// What cannot be stored is counted and skipped, and its neighbours in the batch
// are stored.
func TestRefusedSamplesCostNeighboursNothing(t *testing.T) {
	w := open(t, t.TempDir(), func(o *Options) { o.MaxSeries = 5 })
	require.Empty(t, w.write(one("m", begin, 1), one("late", begin, 1)))
	good := func(i int) store.Series { return one("good", begin.Add(time.Duration(i)*time.Second), 1) }
	for i, tc := range []struct {
		what   string
		series store.Series
		why    store.Refusal
	}{
		{"another value", one("m", begin, 2), store.Duplicate},
		{"late beyond the window", one("m", begin.Add(-11*time.Minute), 1), store.TooOld},
		{"beyond the retention", one("m", begin.Add(-25*time.Hour), 1), store.TooOld},
		{"1970", one("m", time.UnixMilli(0), 1), store.TooOld},
		{"the end of time", one("m", time.UnixMilli(math.MaxInt64), 1), store.TooNew},
		{"the beginning of time", one("m", time.UnixMilli(math.MinInt64), 1), store.TooOld},
		{"ahead", one("m", begin.Add(11*time.Minute), 1), store.TooNew},
		{"no name", store.Series{Labels: labels.FromStrings("a", "b"), Samples: []store.Sample{{Time: begin.UnixMilli()}}}, store.Invalid},
		{"no labels", store.Series{Samples: []store.Sample{{Time: begin.UnixMilli()}}}, store.Invalid},
		{"no UTF-8", one("x", begin, 1, "a", "\xff"), store.Invalid},
		{"name twice", one("x", begin, 1, "a", "b", "a", "c"), store.Invalid},
		{"too large", one("x", begin, 1, "a", strings.Repeat("x", 40<<10)), store.TooLarge},
		{"histogram that contradicts itself", store.Series{
			Labels:     labels.FromStrings("__name__", "h"),
			Histograms: []store.Histogram{{Time: begin.UnixMilli(), Integer: &histogram.Histogram{Count: 5, ZeroCount: 9}}},
		}, store.Invalid},
		{"histogram of nothing", store.Series{Labels: labels.FromStrings("__name__", "h"), Histograms: []store.Histogram{{Time: begin.UnixMilli()}}}, store.Invalid},
	} {
		assert.Equal(t, map[store.Refusal]int{tc.why: 1}, w.write(good(2*i), tc.series, good(2*i+1)), tc.what)
		assert.Equal(t, float64(2*i+2), w.value(`count_over_time(good[1m])`, begin.Add(time.Duration(2*i+1)*time.Second)), tc.what)
	}
	// The same again is no duplicate: an agent that is unsure sends again.
	assert.Empty(t, w.write(one("m", begin, 1)))
	// Late within the window is in order again.
	assert.Empty(t, w.write(one("late", begin.Add(-9*time.Minute), 7)))
	assert.Equal(t, 7.0, w.value(`late`, begin.Add(-8*time.Minute)))
	assert.Equal(t, 1.0, w.value(`late`, begin))
	assert.NoError(t, w.Health(t.Context()))
}

func TestWithoutAWindowEverythingLateIsRefused(t *testing.T) {
	w := open(t, t.TempDir(), func(o *Options) { o.OutOfOrder = 0 })
	require.Empty(t, w.write(one("m", begin, 1)))
	assert.Equal(t, map[store.Refusal]int{store.OutOfOrder: 1}, w.write(one("m", begin.Add(-time.Second), 1), one("n", begin, 1)))
	assert.Equal(t, 1.0, w.value(`n`, begin))
}

func TestSeriesHaveALimit(t *testing.T) {
	directory := t.TempDir()
	w := open(t, directory, func(o *Options) { o.MaxSeries = 10 })
	for i := range 15 {
		refused := w.write(one("m", begin, float64(i), "i", strconv.Itoa(i)))
		if i < 10 {
			assert.Empty(t, refused)
		} else {
			assert.Equal(t, map[store.Refusal]int{store.SeriesLimit: 1}, refused)
		}
	}
	assert.EqualValues(t, 10, w.Stats().Series)
	assert.Empty(t, w.write(one("m", begin.Add(time.Second), 1, "i", "3")), "what is there goes on")
	require.NoError(t, w.Close())

	// A lower limit does not lose what is there.
	w = open(t, directory, func(o *Options) { o.MaxSeries = 5 })
	assert.Equal(t, 10, w.count(`m`, begin))
	assert.Equal(t, map[store.Refusal]int{store.SeriesLimit: 1}, w.write(one("m", begin, 1, "i", "new")))
	assert.Empty(t, w.write(one("m", begin.Add(2*time.Second), 1, "i", "3")))
}

func TestMetadataIsBounded(t *testing.T) {
	w := open(t, t.TempDir(), nil)
	for i := range maxFamilies + 10 {
		w.Describe(map[string]store.Metadata{strconv.Itoa(i): {Type: "gauge"}})
	}
	w.Describe(map[string]store.Metadata{"0": {Type: "counter"}, "1": {Help: strings.Repeat("x", 5000)}})
	all, err := w.Metadata(t.Context(), "", 0)
	require.NoError(t, err)
	assert.Len(t, all, maxFamilies)
	assert.Equal(t, []store.Metadata{{Type: "counter"}}, all["0"])
	assert.Equal(t, []store.Metadata{{Type: "gauge"}}, all["1"])
	some, err := w.Metadata(t.Context(), "", 7)
	require.NoError(t, err)
	assert.Len(t, some, 7)
	none, err := w.Metadata(t.Context(), "none", 0)
	require.NoError(t, err)
	assert.Empty(t, none)
}

func TestWritersAndReadersAtOnce(t *testing.T) {
	w := open(t, t.TempDir(), nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for s := range 50 {
				a, err := w.Append(t.Context(), []store.Series{one("m", begin.Add(time.Duration(s)*time.Second), 1, "i", strconv.Itoa(i))})
				assert.NoError(t, err)
				assert.Equal(t, 1, a.Stored)
			}
		})
		wg.Go(func() {
			for range 20 {
				_, err := w.Range(t.Context(), `sum(m)`, store.Range{Start: begin, End: begin.Add(time.Minute), Step: time.Second})
				assert.NoError(t, err)
				w.Describe(map[string]store.Metadata{"m": {}})
				_, err = w.Metadata(t.Context(), "m", 0)
				assert.NoError(t, err)
				_ = w.Info()
			}
		})
	}
	wg.Wait()
	assert.Equal(t, 200.0, w.value(`sum(count_over_time(m[1m]))`, begin.Add(50*time.Second)))
	assert.Equal(t, begin.Add(49*time.Second), w.Info().NewestSample)
}
