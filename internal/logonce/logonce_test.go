// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package logonce

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// Each step asks for a cause at a time; both ways of asking are held to it.
func TestCauses(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	steps := []struct {
		after      time.Duration
		cause      string
		first, due bool
	}{
		{0, "full", true, true},
		{0, "full", false, false},
		{0, "gone", true, true},
		{Every - 1, "full", false, false},
		{Every, "full", false, true}, // lasts: First stays silent, Due repeats it
		{2*Every - 1, "gone", false, true},
		{3 * Every, "full", true, true}, // quiet for Every
		{2 * Every, "full", true, true}, // the clock was set back
	}
	var first, due Causes
	for i, s := range steps {
		assert.Equal(t, s.first, first.First(s.cause, start.Add(s.after)), "First, step %d", i)
		assert.Equal(t, s.due, due.Due(s.cause, start.Add(s.after)), "Due, step %d", i)
	}
}

func TestCausesAreBounded(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for most, want := range map[int]int{0: 16, 3: 3} {
		first, due := Causes{Most: most}, Causes{Most: most}
		logged, repeated := 0, 0
		for i := range 100 {
			if first.First(strconv.Itoa(i), start) {
				logged++
			}
			if due.Due(strconv.Itoa(i), start) {
				repeated++
			}
		}
		assert.Equal(t, want, logged)
		assert.Equal(t, want, repeated)
	}
}

func TestForget(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var c Causes
	assert.True(t, c.Due("full", now))
	c.Forget()
	assert.True(t, c.Due("full", now), "the failure was over")
}

func TestLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, lines := observer.New(zap.InfoLevel)
		logger := Logger(zap.New(core))
		for n, want := range []int{1, 1, 2} {
			time.Sleep(time.Duration(n) * Every / 2)
			logger.Warn("full", zap.Int("n", n))
			assert.Equal(t, want, lines.Len())
		}
		logger.Warn("gone")
		assert.Equal(t, 3, lines.Len())
	})
}
