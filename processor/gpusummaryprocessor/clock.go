// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import "time"

// leastStep is the difference between wall and monotonic clock that is a step: the
// wall clock was set. NTP slews both alike.
const leastStep = time.Second

// clock returns the wall clock's time, and whether that clock was set since the last
// call. It is not safe for concurrent use.
type clock struct {
	// read returns the wall clock's time and the time since some fixed moment.
	read   func() (wall time.Time, monotonic time.Duration)
	offset time.Duration // wall minus monotonic, since the first wall time
	origin time.Time
}

func newClock(read func() (time.Time, time.Duration)) *clock {
	wall, monotonic := read()
	return &clock{read: read, origin: wall.Add(-monotonic)}
}

// systemClock reads this machine's clocks.
func systemClock() func() (time.Time, time.Duration) {
	base := time.Now()
	return func() (time.Time, time.Duration) {
		now := time.Now()
		return now.Round(0), now.Sub(base) // Round drops the monotonic reading
	}
}

// now returns the wall clock's time and by how much it was set since the last
// call; 0 if it was not.
func (c *clock) now() (now time.Time, step time.Duration) {
	wall, monotonic := c.read()
	offset := wall.Sub(c.origin) - monotonic
	if step = offset - c.offset; step.Abs() < leastStep {
		return wall, 0
	}
	c.offset = offset
	return wall, step
}
