// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"

import (
	"context"
	"sync"
	"time"
)

// listingFor is how long services are kept for further pages.
const listingFor = 30 * time.Second

// listing keeps the services of the last request, so that pages that follow are of one order and
// moment, and only what they show is read for them. It may be used by several goroutines.
type listing struct {
	mu       sync.Mutex
	match    string
	services *Services
	end      *time.Timer // forgets them
}

// keep replaces the services that are kept.
func (l *listing) keep(match string, s *Services) {
	again := *s
	r := *s.reading
	r.Questions = r.Unshared(context.Background())
	again.reading = &r
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end != nil {
		l.end.Stop() // which has those of before in memory
	}
	l.match, l.services = match, &again
	l.end = time.AfterFunc(listingFor, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.services == &again {
			l.services = nil
		}
	})
}

// kept returns the services that match, nil where they are not kept.
func (l *listing) kept(match string, now time.Time) *Services {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.services == nil || l.match != match || now.Sub(l.services.reading.Now) > listingFor {
		return nil
	}
	return l.services
}
