// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What is touched and what is silent, and the input of the judge of owners.
func TestHistory(t *testing.T) {
	h := &History{}
	start := time.Now()
	h.Disturb("a", start)
	h.Silence("a", true, start)
	h.Deafen("b", true, start)
	h.Disturb("a", start) // it is already
	assert.True(t, h.WasDisturbed("a", start, start))
	assert.False(t, h.WasDisturbed("b", start, start))
	assert.True(t, h.WasSilent("a", start, start))
	assert.False(t, h.WasSilent("a", start.Add(-time.Second), start), "not from before it began")
	assert.Len(t, h.Silences([]string{"a", "b"}, true, start), 2)
	assert.Len(t, h.Silences([]string{"a", "b"}, false, start), 1)
	h.Silence("a", false, start)
	h.Deafen("b", false, start)
	h.Recovered(start)
	later := start.Add(time.Second)
	assert.False(t, h.WasSilent("a", later, later))
	assert.False(t, h.WasDisturbed("a", later, later))
	h.Stall(later, later)
	assert.True(t, h.WasDisturbed("a", later, later), "the machine is every place")
	assert.Len(t, h.Silences([]string{"a", "b"}, true, start), 4)
	h.Stall(later, later.Add(2*time.Second))
	h.Stall(later.Add(time.Second), later.Add(3*time.Second))
	assert.Equal(t, 3*time.Second, h.Stalled(), "a second counts once")
}
