// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

const second = pcommon.Timestamp(time.Second)

// reading is one at a time, of a source that began at another, in seconds.
func reading(source uint64, count float64, start, at pcommon.Timestamp) Reading {
	return Reading{Source: source, Count: count, Start: start * second, Time: at * second}
}

func torn(r Reading) Reading {
	r.Histogram = true
	return r
}

// Each page has the readings of one series; what is wanted is its count and its start.
func TestCount(t *testing.T) {
	type result struct {
		count float64
		start pcommon.Timestamp
	}
	refused := result{-1, 0}
	for name, tt := range map[string]struct {
		pages [][]Reading
		want  []result
	}{
		"a start that moves a little, or becomes known, is no restart": {
			pages: [][]Reading{{reading(1, 7, 0, 10)}, {reading(1, 8, 5, 20)}, {reading(1, 9, 6, 30)}},
			want:  []result{{7, 10}, {8, 10}, {9, 10}},
		},
		"… even where the process is as young as the last reading": {
			pages: [][]Reading{{reading(1, 7, 10, 10)}, {reading(1, 8, 11, 20)}},
			want:  []result{{7, 10}, {8, 10}},
		},
		"a start after the last reading is one, whatever the count": {
			pages: [][]Reading{{reading(1, 7, 1, 10)}, {reading(1, 9, 15, 20)}},
			want:  []result{{7, 1}, {9, 15}},
		},
		"a counter that fell began again": {
			pages: [][]Reading{{reading(1, 7, 1, 10)}, {reading(1, 3, 1, 20)}, {reading(1, 2, 28, 30)}},
			want:  []result{{7, 1}, {3, 20}, {2, 28}},
		},
		"… since the later start, which another clock may have before the last reading": {
			pages: [][]Reading{{reading(1, 7, 1, 10)}, {reading(1, 3, 9, 20)}},
			want:  []result{{7, 1}, {3, 9}},
		},
		"a histogram that fell is refused once": {
			pages: [][]Reading{
				{torn(reading(1, 7, 1, 10))}, {torn(reading(1, 3, 1, 20))}, {torn(reading(1, 4, 1, 30))}, {torn(reading(1, 3, 1, 40))}, {torn(reading(1, 5, 1, 50))},
			},
			want: []result{{7, 1}, refused, {4, 30}, refused, {5, 30}},
		},
		"another source in the place of one": {
			pages: [][]Reading{{reading(1, 7, 1, 10)}, {reading(2, 9, 1, 20)}, {reading(1, 8, 25, 30)}},
			want:  []result{{7, 1}, {9, 20}, {8, 25}},
		},
		"the clock is set back": {
			pages: [][]Reading{{reading(1, 7, 0, 100)}, {reading(1, 8, 0, 50)}, {reading(1, 9, 0, 60)}},
			want:  []result{{7, 100}, {8, 50}, {9, 50}},
		},
		"the clock is set back, several sources": {
			pages: [][]Reading{{reading(1, 7, 0, 100), reading(2, 1, 0, 100)}, {reading(1, 8, 0, 50), reading(2, 1, 0, 50)}},
			want:  []result{{8, 100}, {9, 50}},
		},
		"a source that is missing on a page goes on": {
			pages: [][]Reading{
				{reading(1, 7, 0, 10), reading(2, 3, 0, 10)}, {reading(1, 8, 0, 20)}, {reading(1, 8, 0, 30), reading(2, 5, 0, 30)},
			},
			want: []result{{10, 10}, {11, 10}, {13, 10}},
		},
		"… unless it began again meanwhile": {
			pages: [][]Reading{
				{reading(1, 7, 1, 10), reading(2, 3, 1, 10)}, {reading(1, 8, 1, 20)}, {reading(1, 8, 1, 30), reading(2, 5, 15, 30)},
			},
			want: []result{{10, 1}, {11, 1}, {16, 1}},
		},
		"a series of which no source goes on begins again": {
			pages: [][]Reading{
				{reading(1, 7, 0, 10), reading(2, 3, 0, 10)}, {reading(1, 2, 0, 20), reading(2, 1, 0, 20)},
				{reading(1, 5, 23, 30), reading(2, 1, 22, 30)},
			},
			want: []result{{10, 10}, {3, 20}, {6, 22}},
		},
		"… also with other sources, which began since": {
			pages: [][]Reading{{reading(1, 7, 1, 10), reading(2, 3, 1, 10)}, {reading(3, 4, 15, 20)}, {reading(3, 5, 15, 30), reading(4, 1, 15, 30)}},
			want:  []result{{10, 1}, {4, 15}, {6, 15}},
		},
		"a source that is new alone on a page, and the others are back on the next": {
			pages: [][]Reading{
				{reading(1, 100, 0, 10), reading(2, 50, 0, 10)}, {reading(3, 4, 0, 20)}, {reading(1, 101, 0, 30), reading(2, 52, 0, 30), reading(3, 5, 0, 30)},
			},
			want: []result{{150, 10}, {154, 10}, {158, 10}},
		},
		"… whenever it began": {
			pages: [][]Reading{
				{reading(1, 100, 1, 10), reading(2, 50, 1, 10)}, {reading(3, 4, 1, 20)}, {reading(1, 101, 1, 30), reading(2, 52, 1, 30), reading(3, 5, 1, 30)},
			},
			want: []result{{150, 1}, {154, 1}, {158, 1}},
		},
		"a histogram of several that fell is left out once": {
			pages: [][]Reading{
				{torn(reading(1, 7, 1, 10)), torn(reading(2, 3, 1, 10))}, {torn(reading(1, 6, 1, 20)), torn(reading(2, 4, 1, 20))},
				{torn(reading(1, 9, 1, 30)), torn(reading(2, 4, 1, 30))},
			},
			want: []result{{10, 1}, {11, 1}, {13, 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMemory(NewBudget(10))
			var got []result
			for _, readings := range tt.pages {
				total, r := m.Target(1, time.Unix(0, 0)).Count(1, 1, 0, readings)
				if r == Fell {
					got = append(got, refused)
					continue
				}
				got = append(got, result{total.Count, total.Start / second})
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestSourcesAreForgotten(t *testing.T) {
	m := NewMemory(NewBudget(10))
	count := func(readings ...Reading) float64 {
		total, _ := m.Target(1, time.Unix(0, 0)).Count(1, 1, 0, readings)
		return total.Count
	}
	assert.InDelta(t, 10, count(reading(1, 7, 0, 10), reading(2, 3, 0, 10)), 0)
	for range keepPages + 1 {
		assert.InDelta(t, 10, count(reading(1, 7, 0, 10)), 0)
	}
	assert.InDelta(t, 13, count(reading(1, 7, 0, 10), reading(2, 3, 0, 10)), 0)
}

func TestMemoriesShareABudget(t *testing.T) {
	budget := NewBudget(2)
	one, other := NewMemory(budget), NewMemory(budget)
	count := func(m *Memory, key uint64, now int64) Result {
		_, result := m.Target(1, time.Unix(now, 0)).Count(key, key, 0, []Reading{reading(1, 1, 0, 1)})
		return result
	}
	assert.Equal(t, OK, count(one, 1, 0))
	assert.Equal(t, OK, count(one, 2, 0))
	assert.Equal(t, Full, count(other, 1, 0))
	one.Sweep(time.Unix(3600, 0))
	assert.Equal(t, OK, count(other, 1, 3600))
	assert.Equal(t, 1, budget.Used())
	other.Sweep(time.Unix(60, 0))
	other.Sweep(time.Unix(660, 0))
	assert.Zero(t, budget.Used(), "the clock was set back")
}

// A page of which the sources of one series are others every time is remembered no more
// than twice, and takes no more than the budget.
func TestSourcesHaveALimit(t *testing.T) {
	budget := NewBudget(1000)
	m, next := NewMemory(budget), uint64(0)
	page := func(sources int) Result {
		var readings []Reading
		for range sources {
			next++
			readings = append(readings, reading(next, 1, 0, pcommon.Timestamp(next)))
		}
		_, result := m.Target(1, time.Unix(0, 0)).Count(1, 1, 0, readings)
		return result
	}
	for range 100 {
		assert.Equal(t, OK, page(200))
		assert.LessOrEqual(t, budget.Used(), 1+2*200+mostAbsent)
	}
	assert.Equal(t, Full, page(1000))
	assert.LessOrEqual(t, budget.Used(), 1+2*200+mostAbsent)
	m.Sweep(time.Unix(3600, 0))
	assert.Zero(t, budget.Used())
	assert.Equal(t, Full, page(1000), "one for the series itself")
	assert.Zero(t, budget.Used())
}

// Sources that come back are known, as long as few others are absent.
func TestAbsentSources(t *testing.T) {
	f := &fold{sources: map[uint64]*counted{}}
	for i := range uint64(100) {
		f.sources[i] = &counted{page: uint32(min(i, 39))}
	}
	assert.Equal(t, 100-(2*2+mostAbsent), f.forget(39, 2))
	assert.Zero(t, f.forget(39, 2))
	assert.NotNil(t, f.sources[32])
	assert.Nil(t, f.sources[31], "absent for longest")
}
