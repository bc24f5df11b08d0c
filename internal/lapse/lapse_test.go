// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package lapse

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLapses(t *testing.T) {
	const s = time.Second
	wall, monotonic := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), 5*s
	var w Watch
	assert.Equal(t, Tick{}, w.Take(wall, monotonic), "nothing is known before the first time")
	for _, tt := range []struct {
		name            string
		wall, monotonic time.Duration // that pass
		step            time.Duration
		lapsed          bool // of 45 s
	}{
		{"a tick", 15 * s, 15 * s, 0, false},
		{"at once", 0, 0, 0, false},
		{"a late tick", 45 * s, 45 * s, 0, false},
		{"a stopped process", 75 * s, 75 * s, 0, true},
		{"a suspended machine", 76 * s, s, 75 * s, true},
		{"a clock that is set back by an hour", -time.Hour, s, -time.Hour - s, true},
		{"the next tick after it", s, s, 0, false},
		{"a clock that is set forward by two seconds", 3 * s, s, 2 * s, false},
		{"half a second, which is no step yet", 1500 * time.Millisecond, s, 0, false},
		{"another half", 1500 * time.Millisecond, s, s, false},
	} {
		wall, monotonic = wall.Add(tt.wall), monotonic+tt.monotonic
		got := w.Take(wall, monotonic)
		assert.Equal(t, Tick{Since: tt.monotonic, Step: tt.step}, got, tt.name)
		assert.Equal(t, tt.lapsed, got.Lapsed(45*s), tt.name)
	}
}
