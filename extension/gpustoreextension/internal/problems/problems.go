// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package problems remembers what a store could not keep, why and since when.
package problems // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/problems"

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

const (
	// quiet is how long nothing may be refused until a problem that concerns
	// only some of what arrives is over.
	quiet = 10 * time.Minute
	// remembered is how long a problem is known after its end.
	remembered = 5 * time.Minute
)

// Source is how a problem was found: one that a look at the disk found ends
// with the next look, one that a failed write found ends with a write.
type Source string

const (
	Look    Source = "look"
	Write   Source = "write"
	Content Source = "content" // it concerns only some of what arrives
)

type key struct {
	part   store.Part
	source Source
	reason store.Refusal // of Content alone, which may have several at once
}

// Tracker remembers problems, at most one for each part, source and reason. It
// has no clock; it may be used by several goroutines.
type Tracker struct {
	mu  sync.Mutex
	all map[key]*store.Problem
}

// New makes a Tracker without problems.
func New() *Tracker { return &Tracker{all: map[key]*store.Problem{}} }

// Raise notes that n were refused, which may be none. It reports whether this is
// a new problem.
func (t *Tracker) Raise(source Source, now time.Time, p store.Problem) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := keyOf(source, &p)
	known := t.all[k]
	begins := known == nil || !known.Ended.IsZero() || known.Reason != p.Reason
	if begins {
		known = &store.Problem{Part: p.Part, Reason: p.Reason, Since: now}
		t.all[k] = known
	}
	known.Detail = p.Detail
	known.Refused += p.Refused
	if p.Refused > 0 {
		known.Last = now
	}
	return begins
}

func keyOf(source Source, p *store.Problem) key {
	k := key{p.Part, source, ""}
	if source == Content {
		k.reason = p.Reason
	}
	return k
}

// End ends the problems of a part that one of the sources found, and returns
// them.
func (t *Tracker) End(now time.Time, part store.Part, sources ...Source) []store.Problem {
	return t.end(now, func(k key, _ *store.Problem) bool { return k.part == part && slices.Contains(sources, k.source) })
}

// Settle ends problems of content that did not occur for a while, returns them,
// and forgets what ended long ago.
func (t *Tracker) Settle(now time.Time) []store.Problem {
	ended := t.end(now, func(k key, p *store.Problem) bool { return k.source == Content && now.Sub(p.Last) >= quiet })
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, p := range t.all {
		if !p.Ended.IsZero() && now.Sub(p.Ended) >= remembered {
			delete(t.all, k)
		}
	}
	return ended
}

func (t *Tracker) end(now time.Time, which func(key, *store.Problem) bool) []store.Problem {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ended []store.Problem
	for k, p := range t.all {
		if p.Ended.IsZero() && which(k, p) {
			p.Ended = now
			ended = append(ended, *p)
		}
	}
	return inOrder(ended)
}

// All returns the problems that last, and those that ended a short time ago.
func (t *Tracker) All() []store.Problem {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]store.Problem, 0, len(t.all))
	for _, p := range t.all {
		all = append(all, *p)
	}
	return inOrder(all)
}

// inOrder sorts: what lasts, what is the store's fault, and samples come first.
func inOrder(all []store.Problem) []store.Problem {
	no := func(b bool) int {
		if b {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b store.Problem) int {
		return cmp.Or(no(a.Ended.IsZero())-no(b.Ended.IsZero()), no(a.Whole())-no(b.Whole()), no(a.Fault())-no(b.Fault()),
			-cmp.Compare(a.Part, b.Part), a.Since.Compare(b.Since), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}
