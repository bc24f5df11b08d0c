// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package logonce

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPeriodic(t *testing.T) {
	var p Periodic
	now := time.Unix(100, 0)
	assert.True(t, p.Due("full", now))
	assert.False(t, p.Due("full", now.Add(QuietFor-1)))
	assert.True(t, p.Due("gone", now.Add(QuietFor-1)), "another cause")
	assert.True(t, p.Due("full", now.Add(QuietFor)), "it lasts")
	assert.False(t, p.Due("full", now.Add(QuietFor+1)))
	assert.True(t, p.Due("full", now), "a clock that was set back")
}
