// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package age judges what is current, as of one moment.
package age // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"

import (
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/unstored"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

// Judge judges the age of what goes into one response, and remembers the newest of
// it. It may be used by several goroutines.
type Judge struct {
	// Unstored is what the store could not keep.
	Unstored *unstored.Unstored

	now        time.Time
	staleAfter time.Duration
	mu         sync.Mutex
	newest     time.Time // of the samples that went into it
}

// NewJudge makes a Judge of a moment. What is older than staleAfter then is not current.
func NewJudge(now time.Time, staleAfter time.Duration, u *unstored.Unstored) *Judge {
	return &Judge{Unstored: u, now: now, staleAfter: staleAfter}
}

// Reported returns how old something is, and notes it as used; a zero time is no data.
func (j *Judge) Reported(t time.Time) consoleapi.Told {
	if t.IsZero() {
		return consoleapi.Told{}
	}
	t = t.UTC().Truncate(time.Millisecond)
	age := j.Age(t)
	j.Used(t)
	return consoleapi.Told{DataTime: &t, DataAge: &age, Stale: age > j.staleAfter.Seconds()}
}

// Age is that of a time in seconds. A clock that is ahead makes nothing younger than 0.
func (j *Judge) Age(t time.Time) float64 { return max(0, j.now.Sub(t).Seconds()) }

// Used notes the time of a sample that went into the response.
func (j *Judge) Used(t time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if t.After(j.newest) {
		j.newest = t
	}
}

// OnlyUsed notes a time as the only one of a sample that counts as data.
func (j *Judge) OnlyUsed(t time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.newest = t
}

// Fresh reports whether what is of that time is current.
func (j *Judge) Fresh(t time.Time) bool {
	return !t.IsZero() && j.now.Sub(t) <= j.staleAfter
}

// Freshness is that of the whole response.
func (j *Judge) Freshness() consoleapi.Freshness {
	return consoleapi.Freshness{
		EvaluatedAt: j.now.UTC().Truncate(time.Millisecond), Told: j.Reported(j.newest), StaleAfter: j.staleAfter.Seconds(),
	}
}
