// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package lapse notices that a process did not run for a while, as when it is stopped, starved of
// CPU or suspended with its machine, and that its wall clock was set. What a component knows is
// then as old as after a restart (decision 0120). It reads no clock.
package lapse

import "time"

// leastStep is the difference between wall and monotonic clock that is a step: the wall clock was
// set. NTP slews both alike.
const leastStep = time.Second

// Watch compares the times of what a component does: its ticks, and what arrives. The zero Watch
// has seen none. It is not safe for concurrent use.
type Watch struct {
	began  bool
	last   time.Duration // monotonic
	origin time.Time
	offset time.Duration // wall minus monotonic, since the first time
}

// Tick is what has passed since the time before.
type Tick struct {
	// Since is the time that passed, by the monotonic clock.
	Since time.Duration
	// Step is by how much the wall clock was set, which is how a suspended machine looks where the
	// monotonic clock stood still; 0: it was not.
	Step time.Duration
}

// Take takes a time of both clocks; monotonic is the time since some fixed moment.
func (w *Watch) Take(wall time.Time, monotonic time.Duration) (t Tick) {
	if !w.began {
		w.began, w.last, w.origin = true, monotonic, wall.Add(-monotonic)
		return t
	}
	t.Since = max(0, monotonic-w.last)
	w.last = monotonic
	if offset := wall.Sub(w.origin) - monotonic; (offset - w.offset).Abs() >= leastStep {
		t.Step, w.offset = offset-w.offset, offset
	}
	return t
}

// Lapsed reports whether the component was away for longer than most, or lost that much time.
func (t Tick) Lapsed(most time.Duration) bool { return t.Since > most || t.Step.Abs() > most }
