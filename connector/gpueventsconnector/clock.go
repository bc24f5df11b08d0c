// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import "time"

// maxStep is the longest time that passes between two readings of a clock. A
// longer one is a process that was paused: while it heard nothing, nobody was
// silent.
const maxStep = 5 * time.Second

// clock counts the time for which this process was running. It does not follow
// a wall clock that is set.
type clock struct {
	last time.Time
	ran  time.Duration
}

// read returns the time that has passed, which is never 0.
func (c *clock) read(now time.Time) time.Duration {
	if c.last.IsZero() {
		c.last, c.ran = now, 1
	}
	if d := now.Sub(c.last); d > 0 { // monotonic, where now has such a reading
		c.ran += min(d, maxStep)
	}
	c.last = now
	return c.ran
}
