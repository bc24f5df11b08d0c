// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package k8swatch

import (
	"sync"
	"time"
)

// age is how old the objects of a Store are: they are as the API has them while a
// watch is open, and as they were when it ended.
type age struct {
	mu      sync.Mutex
	opened  time.Time // since when a watch is open; zero where none is
	streams bool      // the open watch has not yet streamed the objects that there were
	last    time.Time // zero: never listed
}

// minWatch is how long a watch has to be open to have been one: where a proxy answers
// instead of the API, watches end at once.
const minWatch = time.Second

// listed notes that the objects were replaced by those of the API.
func (a *age) listed(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last, a.streams = now, false
}

// began notes that a watch is open. One that streams has no news until listed.
func (a *age) began(now time.Time, streams bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened, a.streams = now, streams
}

func (a *age) ended(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.streams && now.Sub(a.opened) >= minWatch {
		a.last = now
	}
	a.opened, a.streams = time.Time{}, false
}

// AsOf is the time at which the objects were last as the API has them, which is now
// while a watch is open; false where they were never listed.
func (s *Store[T]) AsOf(now time.Time) (time.Time, bool) {
	s.age.mu.Lock()
	defer s.age.mu.Unlock()
	if s.age.last.IsZero() {
		return time.Time{}, false
	}
	if !s.age.opened.IsZero() && !s.age.streams {
		return now, true
	}
	return s.age.last, true
}
