// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package unstored knows what a reader of a store must not conclude from what is
// missing in it: it arrived, and could not be stored.
package unstored // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/unstored"

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// Unstored is what a store could not keep, as of one moment.
type Unstored struct {
	problems []store.Problem
	now      time.Time
	after    time.Duration // the age from which data is stale
	nothing  bool          // no sample at all was stored lately
}

// Of reads the problems of a store.
func Of(s store.Store, now time.Time, staleAfter time.Duration) *Unstored {
	u := &Unstored{problems: s.Problems(), now: now, after: staleAfter}
	if len(u.problems) > 0 {
		u.nothing = now.Sub(s.Info().NewestSample) > staleAfter
	}
	return u
}

// matters reports whether a problem of samples explains data that is missing now:
// after its end the next samples take a while.
func (u *Unstored) matters(p *store.Problem) bool {
	return p.Part == store.Samples && (p.Ended.IsZero() || u.now.Sub(p.Ended) <= u.after)
}

// Excuses reports whether the store took nothing when what was last seen at a
// time became stale: then it need not have fallen silent.
func (u *Unstored) Excuses(seen time.Time) bool {
	for i := range u.problems {
		if p := &u.problems[i]; p.Whole() && u.matters(p) && !seen.Before(p.Since.Add(-u.after)) {
			return true
		}
	}
	return false
}

// Blind reports whether the store took nothing of late, so that what is not in it
// may be there all the same.
func (u *Unstored) Blind() bool { return u.Excuses(u.now) }

// Arrived reports whether samples arrived lately and could not be stored.
// Duplicates do not count: another value was.
func (u *Unstored) Arrived() bool {
	for i := range u.problems {
		p := &u.problems[i]
		if p.Refused > 0 && u.matters(p) && p.Reason != store.Duplicate && (p.Fault() || u.nothing && u.now.Sub(p.Last) <= u.after) {
			return true
		}
	}
	return false
}

// Faults are the store's own problems that last.
func (u *Unstored) Faults() []consoleapi.StoreProblem {
	return u.shown(func(p *store.Problem) bool { return p.Fault() && p.Ended.IsZero() })
}

// Causes are also those of the senders, and those that have just ended.
func (u *Unstored) Causes() []consoleapi.StoreProblem {
	return u.shown(func(p *store.Problem) bool { return p.Fault() && p.Ended.IsZero() || u.matters(p) })
}

func (u *Unstored) shown(which func(*store.Problem) bool) []consoleapi.StoreProblem {
	list := []consoleapi.StoreProblem{}
	for i := range u.problems {
		p := &u.problems[i]
		if !which(p) {
			continue
		}
		list = append(list, consoleapi.StoreProblem{
			Part: string(p.Part), Reason: string(p.Reason), Since: p.Since.UTC().Truncate(time.Millisecond), Last: when(p.Last), Ended: when(p.Ended),
			Refused: p.Refused, Detail: p.Detail,
		})
	}
	return list
}

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Millisecond)
	return &t
}
