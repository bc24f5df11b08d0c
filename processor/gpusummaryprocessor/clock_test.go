// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// t0 is some time.
var t0 = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func TestClockReportsStepsFromTimeGoingBy(t *testing.T) {
	wall, mono := t0, 5*time.Second
	c := newClock(func() (time.Time, time.Duration) { return wall, mono })
	for _, tt := range []struct{ wall, mono, step time.Duration }{
		{15 * time.Second, 15 * time.Second, 0},
		{-time.Hour, time.Second, -time.Hour - time.Second},
		{time.Second, time.Second, 0},
		{time.Hour, time.Second, time.Hour - time.Second},
		{1500 * time.Millisecond, time.Second, 0}, // half a second is no step yet
		{1500 * time.Millisecond, time.Second, time.Second},
	} {
		wall, mono = wall.Add(tt.wall), mono+tt.mono
		now, step := c.now()
		require.Equal(t, wall, now)
		require.Equal(t, tt.step, step)
	}
}
