// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func TestCompareSums(t *testing.T) {
	// Second k: GPU-1 uses k bytes, GPU-2 2k. No utilization, no power.
	truth := &Chronicle{}
	for k := range 100 {
		reading := Reading{"GPU-1": float64(k), "GPU-2": float64(2 * k)}
		truth.Note("a", at(float64(k)), map[string]Reading{names.GPUMemoryUsage.Name: reading})
		truth.Note("a", at(float64(k)+.99), map[string]Reading{names.GPUMemoryUsage.Name: maps.Clone(reading)})
	}
	page := func(second, one, two float64) []Point {
		p, q := usage(second, ann), usage(second, bob)
		q.Device = "GPU-2"
		p.Value, q.Value = one, two
		return []Point{p, q}
	}
	late := func(points []Point) []Point {
		for i := range points {
			points[i].Arrived = at(53)
		}
		return points
	}
	logical := with(usage(50, ann), func(p *Point) { p.Device, p.Parent = "GPU-1::0", "GPU-1" })
	for name, tc := range map[string]struct {
		points []Point
		want   string
	}{
		"that second":                       {points: page(50, 50, 100)},
		"the second before":                 {points: page(50, 49, 98)},
		"the second after":                  {points: page(50.9, 51, 102)},
		"before it arrived late":            {points: late(page(50, 53, 106))},
		"after it arrived late":             {points: late(page(50, 54, 108)), want: "GPU-1 has 54"},
		"two seconds off":                   {points: page(50, 48, 96), want: "GPU-1 has 48"},
		"two seconds in one page":           {points: page(50, 49, 102), want: "in truth"},
		"a device is missing":               {points: page(50, 50, 100)[:1], want: "GPU-2 is missing"},
		"a device twice":                    {points: append(page(50, 50, 100), page(50, 50, 100)[0]), want: "in truth"},
		"logical devices are no part of it": {points: append(page(50, 50, 100), logical)},
		"a device too much":                 {points: append(page(50, 50, 100), with(usage(50, ann), func(p *Point) { p.Device = "GPU-3" })), want: "too much"},
	} {
		t.Run(name, func(t *testing.T) {
			s := CompareSums(tc.points, truth)
			assert.Equal(t, 1, s.Batches)
			assert.Equal(t, 1, s.Sums, "of what neither has there is no sum")
			if tc.want == "" {
				assert.Zero(t, s.Wrong, s.Findings)
			} else if assert.Equal(t, 1, s.Wrong) {
				assert.Contains(t, s.Findings[0], tc.want)
			}
		})
	}
}

func TestChronicle(t *testing.T) {
	var c Chronicle
	one, two := map[string]Reading{"m": {"GPU-1": 1}}, map[string]Reading{"m": {"GPU-1": 2}}
	c.Note("a", at(1), one)
	c.Note("a", at(2), maps.Clone(one))
	c.Note("a", at(3), two)
	c.Note("b", at(3), two)
	assert.Equal(t, []map[string]Reading{one}, c.Between("a", at(1.5), at(1.6)), "the same at both sides")
	assert.Equal(t, []map[string]Reading{two, one}, c.Between("a", at(1.5), at(3)))
	assert.Empty(t, c.Between("a", at(2.1), at(2.9)), "between two states nothing is known")
	assert.Empty(t, c.Between("c", at(1), at(3)))
}
