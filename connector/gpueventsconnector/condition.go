// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// maxGap is the longest time between two points that still belong together. What
// was in between is unknown then, and durations start anew.
const maxGap = 6 * time.Minute

// maxLevels is how many levels a condition can have.
const maxLevels = 2

// rule is one event that is raised and cleared.
type rule struct {
	event    string
	part     string  // last part of the key, of several conditions of one subject
	levels   []level // from low to high, at most maxLevels
	clearFor time.Duration
}

// level is how long something has to hold until it is raised, and how bad it is.
type level struct {
	lasts    time.Duration
	severity plog.SeverityNumber
}

// condition is the state of one rule about one subject. Times are those of the
// points. A condition goes up from level to level, and is cleared as a whole.
type condition struct {
	level uint8 // what is raised: 0 is nothing
	at    pcommon.Timestamp
	since [maxLevels]pcommon.Timestamp // when each level was met first; 0: it is not met
	over  pcommon.Timestamp            // since when it is over; 0: it is not
}

// take moves the condition to the time at: met has a bit for each level that
// holds, and over says that none of it is left. Between the two lies hysteresis.
func (c *condition) take(at pcommon.Timestamp, met uint8, over bool) {
	if at < c.at || at.AsTime().Sub(c.at.AsTime()) > maxGap {
		c.since, c.over = [maxLevels]pcommon.Timestamp{}, 0
	}
	c.at = at
	for i := range c.since {
		switch {
		case met&(1<<i) == 0:
			c.since[i] = 0
		case c.since[i] == 0:
			c.since[i] = at
		}
	}
	switch {
	case !over:
		c.over = 0
	case c.over == 0:
		c.over = at
	}
}

// next is the level that the condition has at the time at, if nothing changes
// until then.
func (c *condition) next(r *rule, at pcommon.Timestamp) uint8 {
	if c.level > 0 && c.over != 0 && at >= later(c.over, r.clearFor) {
		return 0
	}
	for i := len(r.levels); i > int(c.level); i-- {
		if since := c.since[i-1]; since != 0 && at >= later(since, r.levels[i-1].lasts) {
			return uint8(i)
		}
	}
	return c.level
}

// due is the next time at which the level changes if nothing else does; 0 is
// never.
func (c *condition) due(r *rule) (due pcommon.Timestamp) {
	offer := func(since pcommon.Timestamp, lasts time.Duration) {
		if t := later(since, lasts); since != 0 && (due == 0 || t < due) {
			due = t
		}
	}
	if c.level > 0 {
		offer(c.over, r.clearFor)
	}
	for i := int(c.level); i < len(r.levels); i++ {
		offer(c.since[i], r.levels[i].lasts)
	}
	return due
}

func later(t pcommon.Timestamp, d time.Duration) pcommon.Timestamp {
	return t + pcommon.Timestamp(d)
}
