// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

const (
	defaultInitialInterval = 5 * time.Second
	defaultMaxInterval     = time.Hour
	defaultMaxElapsedTime  = 24 * time.Hour
	defaultMaxAttempts     = 10
	maxMaxAttempts         = 100

	// MinInterval refuses a number without a unit, which means nanoseconds.
	MinInterval = time.Millisecond

	// retryMultiplier: 5 s, 15 s, 45 s, 2 min, 7 min, 20 min, then the
	// greatest interval, less up to half of each.
	retryMultiplier = 3
)

// RetryConfig configures whether and when a delivery is tried again. The keys are
// those that Collector exporters share.
type RetryConfig struct {
	// Enabled adds further attempts to the first.
	Enabled bool `mapstructure:"enabled"`
	// InitialInterval is the time until the second attempt; each further one
	// is three times as long. Up to half of it is taken away by chance.
	InitialInterval time.Duration `mapstructure:"initial_interval"`
	// MaxInterval is the longest such time. Retry-After may ask for more, at
	// most an hour.
	MaxInterval time.Duration `mapstructure:"max_interval"`
	// MaxElapsedTime since its first attempt after which a delivery is given
	// up; 0 is no limit but MaxAttempts.
	MaxElapsedTime time.Duration `mapstructure:"max_elapsed_time"`
	// MaxAttempts counts the first one too; 1 to 100.
	MaxAttempts int `mapstructure:"max_attempts"`
}

func DefaultRetry() RetryConfig {
	return RetryConfig{
		InitialInterval: defaultInitialInterval,
		MaxInterval:     defaultMaxInterval,
		MaxElapsedTime:  defaultMaxElapsedTime,
		MaxAttempts:     defaultMaxAttempts,
	}
}

// Check also judges what is not enabled: a mistake does not wait. Its error names
// the keys of the section that was written.
func (c *RetryConfig) Check(section string) error {
	switch {
	case c.InitialInterval <= 0:
		return fmt.Errorf("%s::initial_interval: %v is not positive; leave it out for %v", section, c.InitialInterval, defaultInitialInterval)
	case c.InitialInterval < MinInterval:
		return fmt.Errorf("%s::initial_interval: %v is shorter than %v; write it with its unit, as in 5s", section, c.InitialInterval, MinInterval)
	case c.MaxInterval < c.InitialInterval:
		return fmt.Errorf("%s::max_interval: %v is shorter than initial_interval, %v; raise it, or leave both out for %v and %v", section, c.MaxInterval, c.InitialInterval, defaultMaxInterval, defaultInitialInterval)
	case c.MaxElapsedTime < 0 || c.MaxElapsedTime > 0 && c.MaxElapsedTime < c.InitialInterval:
		return fmt.Errorf("%s::max_elapsed_time: %v is shorter than initial_interval, %v; raise it, or set 0 for no limit but max_attempts", section, c.MaxElapsedTime, c.InitialInterval)
	case c.MaxAttempts < 1 || c.MaxAttempts > maxMaxAttempts:
		return fmt.Errorf("retry::max_attempts: %d is not within 1 and %d; leave it out for %d", c.MaxAttempts, maxMaxAttempts, defaultMaxAttempts)
	}
	return nil
}

// Attempts is how many one delivery may have.
func (c *RetryConfig) Attempts() int {
	if !c.Enabled {
		return 1
	}
	return c.MaxAttempts
}

// After returns when the delivery is tried again, zero if it is given up: what
// cannot get better by waiting, or has been tried often and long enough.
// asked is what the receiver asked for.
func (c *RetryConfig) After(s *State, kind audit.ErrorType, status int, asked time.Duration, now time.Time) time.Time {
	if !temporary(kind, status) || s.Attempts >= c.Attempts() {
		return time.Time{}
	}
	wait := c.backoff(s.Attempts)
	if kind == audit.ErrorInterrupted || kind == audit.ErrorShutdown {
		wait = 0 // it was not the receiver's fault, and a restart is pause enough
	}
	next := now.Add(max(wait, asked))
	if c.MaxElapsedTime > 0 && next.Sub(s.First) > c.MaxElapsedTime {
		return time.Time{}
	}
	return next
}

// backoff is the time after that many attempts.
func (c *RetryConfig) backoff(attempts int) time.Duration {
	interval := float64(c.InitialInterval)
	for range attempts - 1 {
		interval = min(interval*retryMultiplier, float64(c.MaxInterval))
	}
	return UpTo(time.Duration(interval))
}

// UpTo subtracts a random part, up to half.
func UpTo(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + rand.Float64()/2)) //nolint:gosec // chance, not secrecy
}

// temporary reports whether another attempt may succeed.
func temporary(kind audit.ErrorType, status int) bool {
	switch kind {
	case audit.ErrorDNS, audit.ErrorConnect, audit.ErrorTLS, audit.ErrorTimeout,
		audit.ErrorRateLimited, audit.ErrorHTTP5xx, audit.ErrorShutdown, audit.ErrorInterrupted:
		return true
	case audit.ErrorHTTP4xx:
		return status == http.StatusRequestTimeout || status == http.StatusTooEarly
	default:
		return false
	}
}
