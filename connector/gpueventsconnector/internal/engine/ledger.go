// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/kernellog"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/lapse"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	// settle is how long the parts of one scrape may arrive one after the other.
	// Points of one time are judged together, when this has passed or the first
	// point of a later time arrives.
	settle = time.Second
	// grace is how long after the end of a duration to wait for a point that
	// denies it.
	grace = 2 * time.Second
	// clockSet is after how long without a later point an earlier one is used again:
	// the clock of its source was set back.
	clockSet = 2 * time.Minute
	// MaxWaiting is how many events wait for the next component.
	MaxWaiting = 10_000
)

// Counts is what was left out since the last TakeCounts.
type Counts struct {
	Late           int64            // points older than what was judged
	Invalid        int64            // points without a subject or a valid value
	InvalidExample string           // the metric of one of them
	Duplicate      int64            // counts of XIDs that two exporters have in turn
	DuplicateOn    subject.DeviceID // one of their devices
	HeldOnly       HeldOnly         // the first exporter of all that prints devices with an owner alone
	LeftOut        int64            // reasons against boards that events do not list
	LeftOutOf      subject.DeviceID // one of those boards
	Refused        map[string]int64 // events that were not raised or cleared, by name
	Subjects       map[string]int64 // subjects that are not watched, by kind
	Lines          map[kernellog.Outcome]int64
	UnknownGPU     kernellog.Line // one of those with that outcome
	Apart          time.Duration  // between pages that are too rare to find stragglers; 0: none are
}

// HeldOnly is an exporter that prints devices with an owner alone, and how many others its node has.
type HeldOnly struct {
	Exporter subject.ExporterID
	Withheld int64
}

// ledger has the time, the events that wait for the next component, the limits of both,
// and counts what they refuse. All subjects share it.
type ledger struct {
	clock       clock
	now         time.Duration // of clock, at the last call
	wall        time.Time     // likewise
	staleness   time.Duration
	maxSubjects int

	waiting []event.Event
	raised  int  // conditions
	changed bool // since the state was stored
	counts  Counts
}

// advance moves time on, and reports whether this process did not run, or its clock was set, for
// longer than a point is true.
func (l *ledger) advance(now time.Time) (lapsed bool) {
	passed := l.clock.read(now)
	l.now, l.wall = l.clock.ran, now
	return passed.Lapsed(l.staleness)
}

// due reports whether the time t of a subject, with its newest point of the time at that
// arrived at seen, has passed here, and whether that point is fresh enough to
// decide.
func (l *ledger) due(t, at pcommon.Timestamp, seen time.Duration) (passed, fresh bool) {
	local := seen + grace
	if t > at {
		local += time.Duration(t - at)
	}
	return l.now >= local, local-grace-seen <= l.staleness
}

// move gives a condition its next level and queues the event about it, which describe
// completes. At a limit nothing is changed, so that the next point or tick tries
// again.
func (l *ledger) move(c *condition.Condition, s *condition.Spec, name string, next uint8, at pcommon.Timestamp, describe func(*event.Event)) {
	if next != c.Level {
		l.change(c, s, name, next, at, describe)
	}
}

// change is move for conditions of which a change within a level is an event too. It
// reports whether there was room for the event.
func (l *ledger) change(c *condition.Condition, s *condition.Spec, name string, next uint8, at pcommon.Timestamp, describe func(*event.Event)) bool {
	raise := next > 0
	if raise && c.Level == 0 && l.raised >= l.maxSubjects || len(l.waiting) >= MaxWaiting {
		l.refuse(name)
		return false
	}
	ev := event.Event{Name: name, State: names.EventCleared, Severity: plog.SeverityNumberInfo, At: at, Level: next}
	switch {
	case raise:
		ev.State, ev.Severity = names.EventRaised, s.Levels[next-1].Severity
		if c.Level == 0 {
			l.raised++
		}
	case c.Level > 0:
		l.raised--
	}
	c.Level = next
	describe(&ev)
	l.waiting = append(l.waiting, ev)
	l.changed = true
	return true
}

// notify queues a notice, and reports whether there was room.
func (l *ledger) notify(ev event.Event) bool {
	if len(l.waiting) >= MaxWaiting {
		l.refuse(ev.Name)
		return false
	}
	l.waiting = append(l.waiting, ev)
	l.changed = true
	return true
}

func (l *ledger) refuse(name string) {
	if l.counts.Refused == nil {
		l.counts.Refused = map[string]int64{}
	}
	l.counts.Refused[name]++
}

// unwatched counts a subject for which there is no room.
func (l *ledger) unwatched(kind string) {
	if l.counts.Subjects == nil {
		l.counts.Subjects = map[string]int64{}
	}
	l.counts.Subjects[kind]++
}

func (l *ledger) invalid(metric string) {
	l.counts.Invalid++
	l.counts.InvalidExample = metric
}

// isNew reports whether a point of the time at is later than what a subject has, or its
// source's clock was set back; otherwise it is counted as late. newest and judged are the
// times that the subject has, and seen is when the newest arrived.
func (l *ledger) isNew(at, newest, judged pcommon.Timestamp, seen time.Duration) bool {
	if (at < newest || at <= judged) && l.now-seen < clockSet {
		l.counts.Late++
		return false
	}
	return true
}

// maxStep is the longest time that passes between two readings of a clock. In a longer
// one the process was paused: it received nothing, which is no silence of a subject.
const maxStep = 5 * time.Second

// clock counts the time for which this process was running. It does not follow
// a wall clock that is set.
type clock struct {
	first time.Time
	watch lapse.Watch
	ran   time.Duration // never 0
}

// read moves the clock on, and returns what passed.
func (c *clock) read(now time.Time) lapse.Tick {
	if c.first.IsZero() {
		c.first, c.ran = now, 1
	}
	passed := c.watch.Take(now.Round(0), now.Sub(c.first)) // monotonic, where now has such a reading
	c.ran += min(passed.Since, maxStep)
	return passed
}
