// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// at is a time in seconds.
func at(seconds float64) pcommon.Timestamp { return pcommon.Timestamp(1e18 + seconds*1e9) }

// TestConditions: each line is one point and the level after it.
func TestConditions(t *testing.T) {
	two := &Spec{Levels: []Level{{For: 100 * time.Second}, {For: 40 * time.Second}}, ClearFor: 20 * time.Second}
	at0 := &Spec{Levels: []Level{{}}}
	type point struct {
		at   float64
		met  uint8
		over bool
		want uint8
	}
	for _, tt := range []struct {
		name   string
		spec   *Spec
		points []point
	}{
		{"without duration", at0, []point{{0, 0, true, 0}, {1, 1, false, 1}, {2, 0, false, 1}, {3, 0, true, 0}}},
		{"one tick short", two, []point{{0, 1, false, 0}, {99.999, 1, false, 0}, {100, 1, false, 1}}},
		{"interrupted", two, []point{{0, 1, false, 0}, {60, 0, true, 0}, {100, 1, false, 0}, {199, 1, false, 0}, {200, 1, false, 1}}},
		{"straight to the higher level", two, []point{{0, 3, false, 0}, {39, 3, false, 0}, {40, 3, false, 2}, {100, 3, false, 2}}},
		{"up, and not down to the lower level", two, []point{{0, 1, false, 0}, {100, 3, false, 1}, {140, 3, false, 2}, {200, 1, false, 2}, {500, 1, false, 2}}},
		{"hysteresis", two, []point{{0, 1, false, 0}, {100, 1, false, 1}, {110, 0, false, 1}, {300, 0, false, 1}, {310, 0, true, 1}, {330, 0, true, 0}}},
		{"over for too short", two, []point{{0, 1, false, 0}, {100, 1, false, 1}, {110, 0, true, 1}, {129, 0, true, 1}, {129.5, 1, false, 1}, {130, 0, true, 1}, {150, 0, true, 0}}},
		{"raised again only after the whole duration", two, []point{{0, 1, false, 0}, {100, 1, false, 1}, {110, 0, true, 1}, {130, 0, true, 0}, {131, 1, false, 0}, {230, 1, false, 0}, {231, 1, false, 1}}},
		{"nothing is known of a long gap", two, []point{{0, 1, false, 0}, {90, 1, false, 0}, {500, 1, false, 0}, {600, 1, false, 1}}},
		{"a clock that is set back", two, []point{{0, 1, false, 0}, {-50, 1, false, 0}, {49, 1, false, 0}, {50, 1, false, 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c Condition
			for i, p := range tt.points {
				c.Take(at(p.at), Verdict{Known: true, Met: p.met, Over: p.over})
				c.Level = c.Next(tt.spec, at(p.at))
				require.Equal(t, p.want, c.Level, "point %d", i)
				if due := c.Due(tt.spec); due != 0 { // nothing changes before
					require.Greater(t, due, at(p.at))
					require.Equal(t, c.Level, c.Next(tt.spec, due-1))
					require.NotEqual(t, c.Level, c.Next(tt.spec, due))
				}
			}
		})
	}
}

func TestNotices(t *testing.T) {
	const every = 5 * time.Minute
	var n Notice
	n.Happened(2)
	require.Zero(t, n.Due(at(0), every), "the first is reported at once")
	n.Report(at(0))
	require.Zero(t, n.Pending)
	n.Happened(1)
	require.Equal(t, at(300), n.Due(at(10), every))
	require.Zero(t, n.Due(at(-61), every), "the clock was ahead, and is set")
}

func TestCounters(t *testing.T) {
	var c Counter
	var rises []float64
	for _, v := range []float64{5, 5, 7, 0, 1, 1, 0.5} {
		rises = append(rises, c.Rise(v))
	}
	require.Equal(t, []float64{0, 0, 2, 0, 1, 0, 0}, rises, "neither the first value nor a reset is a rise")
}
