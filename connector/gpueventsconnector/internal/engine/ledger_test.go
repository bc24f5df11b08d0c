// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheClockSkipsPauses(t *testing.T) {
	var c clock
	now := time.Now()
	read := func(now time.Time) time.Duration {
		c.read(now)
		return c.ran
	}
	first := read(now)
	require.Positive(t, first)
	require.Equal(t, first+2*time.Second, read(now.Add(2*time.Second)))
	require.Equal(t, first+2*time.Second+maxStep, read(now.Add(time.Hour)))
	require.Equal(t, first+2*time.Second+maxStep, read(now), "it never goes back")
}
