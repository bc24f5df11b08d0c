// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package logonce decides which causes of a repeated failure are logged.
package logonce // import "github.com/otelcol-gpu/otelcol-gpu/internal/logonce"

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	// Every is the time between two log lines about one cause, and the time without
	// any cause after which each of them is new again.
	Every = 10 * time.Minute
	// most bounds the causes that are remembered, since a cause may contain text from
	// outside.
	most = 16
)

// Causes are the causes that were logged. The zero value is ready and remembers 16 of
// them. It is safe for concurrent use. A clock that was set back makes a cause due.
type Causes struct {
	Most int // causes that are remembered, 0: 16
	// Every replaces the constant of that name for Due, if it is not 0.
	Every time.Duration

	mu     sync.Mutex
	logged map[string]time.Time // cause -> its last line
	last   time.Time            // the last cause, logged or not
}

// First reports whether a cause is logged now: once, and again after a time of Every
// without any cause. Further causes than Most are not logged.
func (c *Causes) First(cause string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.last) >= Every || now.Before(c.last) {
		clear(c.logged)
	}
	c.last = now
	if _, found := c.logged[cause]; found {
		return false
	}
	return c.note(cause, now)
}

// Due reports whether a cause that lasts is logged now: at most once in Every.
// Further causes than Most are logged when the others no longer last.
func (c *Causes) Due(cause string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	every := c.Every
	if every == 0 {
		every = Every
	}
	for known, at := range c.logged {
		if now.Sub(at) >= every || now.Before(at) {
			delete(c.logged, known)
		}
	}
	if _, found := c.logged[cause]; found {
		return false
	}
	return c.note(cause, now)
}

// Forget makes every cause new, for instance because the failure is over.
func (c *Causes) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.logged)
}

func (c *Causes) note(cause string, now time.Time) bool {
	limit := c.Most
	if limit == 0 {
		limit = most
	}
	if len(c.logged) >= limit {
		return false
	}
	if c.logged == nil {
		c.logged = map[string]time.Time{}
	}
	c.logged[cause] = now
	return true
}

// Logger returns a logger that passes a message once in Every, whatever its fields.
func Logger(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, Every, 1, 0)
	}))
}
