// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
)

// valuesOf are the values of a line; NaN is no data.
func valuesOf(line []*float64) []float64 {
	var out []float64
	for _, v := range line {
		if v == nil {
			out = append(out, math.NaN())
		} else {
			out = append(out, *v)
		}
	}
	return out
}

func same(t *testing.T, want []float64, line []*float64) {
	t.Helper()
	assert.InDeltaSlice(t, want, valuesOf(line), 0)
}

func lineOf(values ...float64) []*float64 {
	var out []*float64
	for _, v := range values {
		if math.IsNaN(v) {
			out = append(out, nil)
		} else {
			out = append(out, &v)
		}
	}
	return out
}

var none = math.NaN()

// A line has a place for every step, and gaps where nothing is stored, or no number.
func TestGrid(t *testing.T) {
	at := time.Date(2026, 3, 4, 12, 0, 47, 0, time.UTC)
	g := NewGrid(at, 3*time.Minute, time.Minute)
	assert.Equal(t, NewGrid(at.Add(10*time.Second), 3*time.Minute, time.Minute), g, "a later one has the same times")
	assert.Equal(t, 4, g.Points)
	assert.Equal(t, at.Truncate(time.Minute), g.End())
	assert.Equal(t, 1, NewGrid(at, 0, time.Minute).Points)

	sample := func(minute int, value float64) model.SamplePair {
		return model.SamplePair{Timestamp: model.TimeFromUnixNano(g.Start.Add(time.Duration(minute) * time.Minute).UnixNano()), Value: model.SampleValue(value)}
	}
	for name, test := range map[string]struct {
		stored []model.SamplePair
		end    time.Time
		want   []float64
	}{
		"nothing is stored": {want: []float64{none, none, none, none}},
		"gaps":              {stored: []model.SamplePair{sample(0, 1), sample(3, 4)}, want: []float64{1, none, none, 4}},
		"no numbers":        {stored: []model.SamplePair{sample(0, math.NaN()), sample(1, math.Inf(1)), sample(2, 0)}, want: []float64{none, none, 0, none}},
		"outside of it":     {stored: []model.SamplePair{sample(-1, 1), sample(4, 1)}, want: []float64{none, none, none, none}},
		"stale at its end":  {stored: []model.SamplePair{sample(1, 1), sample(2, 2), sample(3, 3)}, end: g.Start.Add(time.Minute), want: []float64{none, 1, none, none}},
		"ends ahead":        {stored: []model.SamplePair{sample(3, 3)}, end: at.Add(time.Hour), want: []float64{none, none, none, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			got := g.Line()
			g.Fill(got, &model.SampleStream{Values: test.stored})
			g.EndAt(got, test.end)
			same(t, test.want, got)
		})
	}
}

func TestCommon(t *testing.T) {
	g := Grid{Points: 3}
	limits := map[string][]*float64{"a": lineOf(700, none, 700), "b": lineOf(none, 700, 700), "c": lineOf(none, 500, none), "empty": lineOf(none, none, none)}
	same(t, []float64{700, 700, 700}, g.Common(limits, []string{"a", "b"}))
	same(t, []float64{700, none, 700}, g.Common(limits, []string{"a", "empty", "unknown"}))
	assert.Nil(t, g.Common(limits, []string{"b", "c"}), "they differ")
	assert.Nil(t, g.Common(limits, []string{"empty", "unknown"}), "none is stored")
	assert.Nil(t, g.Common(limits, nil))
}
