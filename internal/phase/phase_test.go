// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOffset: moments are spread over the interval, and the same after a restart.
func TestOffset(t *testing.T) {
	const interval = 15 * time.Second
	now := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	quarters := [4]int{}
	for i := range 400 {
		of := "host\x00dcgm\x00http://10.0.0." + string(rune('a'+i))
		first := Offset(now, interval, of)
		require.GreaterOrEqual(t, first, time.Duration(0))
		require.Less(t, first, interval)
		quarters[first*4/interval]++
		later := now.Add(7 * time.Hour).Add(time.Second)
		assert.Zero(t, later.Add(Offset(later, interval, of)).Sub(now.Add(first))%interval)
	}
	for _, n := range quarters {
		assert.Greater(t, n, 50)
	}
}
