// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package condition has the states of a rule for one subject: conditions, which are
// raised and cleared, and notices, which are not cleared. Times are passed in.
package condition

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// MaxGap is the longest time between two points of one course of events. What
// happened in a longer gap is unknown, and durations start again after it.
const MaxGap = 6 * time.Minute

// maxLevels is how many levels a condition can have.
const maxLevels = 2

// Spec describes a condition.
type Spec struct {
	Levels   []Level // from low to high, at most two
	ClearFor time.Duration
}

// Level is how long an input has to meet it until the condition is raised, and the
// severity of that event.
type Level struct {
	For      time.Duration
	Severity plog.SeverityNumber
}

// Once is the Spec of a condition with one level that is raised and cleared by the
// first point.
func Once(severity plog.SeverityNumber) Spec { return Spec{Levels: []Level{{0, severity}}} }

// Verdict is what the input of one time means for a condition. The zero value is
// unknown, which changes nothing.
type Verdict struct {
	Known bool
	Met   uint8 // a bit for each level that holds
	Over  bool  // nothing of the condition is left; between Met and Over is hysteresis
}

// Holds is the verdict about a condition with one level and no hysteresis.
func Holds(is bool) Verdict {
	if is {
		return Verdict{Known: true, Met: 1}
	}
	return Verdict{Known: true, Over: true}
}

// Condition is the state of one rule for one subject. It rises from level to level,
// and is cleared as a whole. Times are those of the points.
type Condition struct {
	Level uint8 // that is raised; 0: none
	At    pcommon.Timestamp
	since [maxLevels]pcommon.Timestamp // since when each level is met; 0: it is not
	over  pcommon.Timestamp            // since when it is over; 0: it is not
}

// Take moves the condition to the time at, with the verdict of that time, which is
// known.
func (c *Condition) Take(at pcommon.Timestamp, v Verdict) {
	if at < c.At || at.AsTime().Sub(c.At.AsTime()) > MaxGap {
		c.Restart()
	}
	c.At = at
	for i := range c.since {
		switch {
		case v.Met&(1<<i) == 0:
			c.since[i] = 0
		case c.since[i] == 0:
			c.since[i] = at
		}
	}
	switch {
	case !v.Over:
		c.over = 0
	case c.over == 0:
		c.over = at
	}
}

// Restart starts all durations again: nothing is known of the time until the next point.
func (c *Condition) Restart() { c.since, c.over = [maxLevels]pcommon.Timestamp{}, 0 }

// Next is the level of the condition at the time at, if its input does not change
// until then.
func (c *Condition) Next(s *Spec, at pcommon.Timestamp) uint8 {
	if c.Level > 0 && c.over != 0 && at >= later(c.over, s.ClearFor) {
		return 0
	}
	for i := len(s.Levels); i > int(c.Level); i-- {
		if since := c.since[i-1]; since != 0 && at >= later(since, s.Levels[i-1].For) {
			return uint8(i)
		}
	}
	return c.Level
}

// Due is the next time at which the level changes if the input does not; 0 is
// never.
func (c *Condition) Due(s *Spec) (due pcommon.Timestamp) {
	consider := func(since pcommon.Timestamp, lasts time.Duration) {
		if t := later(since, lasts); since != 0 && (due == 0 || t < due) {
			due = t
		}
	}
	if c.Level > 0 {
		consider(c.over, s.ClearFor)
	}
	for i := int(c.Level); i < len(s.Levels); i++ {
		consider(c.since[i], s.Levels[i].For)
	}
	return due
}

func later(t pcommon.Timestamp, d time.Duration) pcommon.Timestamp {
	return t + pcommon.Timestamp(d)
}
