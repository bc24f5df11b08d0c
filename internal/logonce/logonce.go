// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package logonce decides what is logged of something that happens again and
// again: its cause, once.
package logonce // import "github.com/otelcol-gpu/otelcol-gpu/internal/logonce"

import (
	"sync"
	"time"
)

const (
	// most bounds the causes that are remembered: text from outside may be one.
	most = 16
	// QuietFor is after how long without any cause all of them are news again.
	QuietFor = 10 * time.Minute
)

// Causes are those that were logged. The zero value is ready. It may be used from
// several goroutines.
type Causes struct {
	mu     sync.Mutex
	logged map[string]struct{}
	last   time.Time
}

// First reports whether the cause is to be logged now: it was not since there was
// last none for QuietFor. Of more than 16 causes those after them are not.
func (c *Causes) First(cause string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.logged == nil || now.Sub(c.last) >= QuietFor {
		c.logged = map[string]struct{}{}
	}
	c.last = now
	if _, found := c.logged[cause]; found || len(c.logged) == most {
		return false
	}
	c.logged[cause] = struct{}{}
	return true
}
