// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package stall finds jobs whose ranks have gone silent while they hold their devices. Inspector
// writes an operation when it has ended, so the one that hangs stands nowhere: silence is all that
// there is. It has no clock and no I/O.
package stall

import (
	"slices"
	"time"
)

// Stage is how sure a stall is.
type Stage uint8

// The stages.
const (
	None      Stage = iota
	Suspected       // nothing arrives
	Confirmed       // and the devices spin: busy, without tensor cores and NVLink
)

// Job watches one job. The zero value has seen nothing.
type Job struct {
	last  time.Time       // when something arrived
	gaps  []time.Duration // between arrivals, the newest maxGaps of them
	next  int
	stage Stage
}

// maxGaps is of how many gaps the usual one is known.
const maxGaps = 256

// Heard notes that something arrived of a rank.
func (j *Job) Heard(now time.Time) {
	gap := now.Sub(j.last)
	if !j.last.IsZero() && gap > 0 && j.stage == None {
		if len(j.gaps) < maxGaps {
			j.gaps = append(j.gaps, gap)
		} else {
			j.gaps[j.next] = gap
			j.next = (j.next + 1) % maxGaps
		}
	}
	if now.After(j.last) {
		j.last = now
	}
}

// Resume takes that nothing could arrive for some time until now. A job that was not silent before
// has the whole time again, as its agents have to connect again; the silence of another one goes on.
func (j *Job) Resume(now time.Time, away time.Duration) {
	if j.stage != None {
		j.last = j.last.Add(away)
	} else if !j.last.IsZero() {
		j.last = now
	}
}

// Stage is the one that Judge returned last.
func (j *Job) Stage() Stage { return j.stage }

// Last is when something arrived.
func (j *Job) Last() time.Time { return j.last }

// Bound is for how long a job may be silent: ten times what 99 of 100 of its gaps are below, and at
// least that long.
func (j *Job) Bound(least time.Duration) time.Duration {
	if len(j.gaps) == 0 {
		return least
	}
	sorted := slices.Sorted(slices.Values(j.gaps))
	return max(least, 10*sorted[(len(sorted)*99-1)/100])
}

// Devices is what is known of the devices of a job.
type Devices struct {
	Held     int // devices that it holds now
	Spinning int // of them
}

// Judge returns the stage that the job has now, and whether it had another. A job that holds no
// device is over.
func (j *Job) Judge(d Devices, least time.Duration, now time.Time) (stage Stage, changed bool) {
	old := j.stage
	switch {
	case d.Held == 0 || now.Sub(j.last) <= j.Bound(least):
		j.stage = None
	case d.Spinning == d.Held:
		j.stage = Confirmed
	case j.stage == None:
		j.stage = Suspected
	}
	return j.stage, j.stage != old
}
