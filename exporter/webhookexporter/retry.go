// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

const (
	defaultInitialInterval = 5 * time.Second
	defaultMaxInterval     = time.Hour
	defaultMaxElapsedTime  = 24 * time.Hour
	defaultMaxAttempts     = 10
	maxMaxAttempts         = 100

	// retryMultiplier: 5 s, 15 s, 45 s, 2 min, 7 min, 20 min, then the
	// greatest interval, less up to half of each.
	retryMultiplier = 3
	// maxRetryAfter bounds what a receiver may ask for, so that a mistake of
	// its cannot silence it for good.
	maxRetryAfter = time.Hour
	// maxUnnamedPause bounds how long a receiver that answered 429 without
	// Retry-After gets nothing; up to half of it is taken away by chance.
	maxUnnamedPause = time.Minute
)

// RetryConfig says whether and when a delivery is tried again. The keys are
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

func defaultRetry() RetryConfig {
	return RetryConfig{
		InitialInterval: defaultInitialInterval,
		MaxInterval:     defaultMaxInterval,
		MaxElapsedTime:  defaultMaxElapsedTime,
		MaxAttempts:     defaultMaxAttempts,
	}
}

// check also judges what is not enabled: a mistake does not wait.
func (c *RetryConfig) check() error {
	switch {
	case c.InitialInterval <= 0:
		return fmt.Errorf("retry::initial_interval: %v is not positive; leave it out for %v", c.InitialInterval, defaultInitialInterval)
	case c.InitialInterval < minDuration:
		return fmt.Errorf("retry::initial_interval: %v is shorter than %v; write it with its unit, as in 5s", c.InitialInterval, minDuration)
	case c.MaxInterval < c.InitialInterval:
		return fmt.Errorf("retry::max_interval: %v is shorter than initial_interval, %v; raise it, or leave both out for %v and %v", c.MaxInterval, c.InitialInterval, defaultMaxInterval, defaultInitialInterval)
	case c.MaxElapsedTime < 0 || c.MaxElapsedTime > 0 && c.MaxElapsedTime < c.InitialInterval:
		return fmt.Errorf("retry::max_elapsed_time: %v is shorter than initial_interval, %v; raise it, or set 0 for no limit but max_attempts", c.MaxElapsedTime, c.InitialInterval)
	case c.MaxAttempts < 1 || c.MaxAttempts > maxMaxAttempts:
		return fmt.Errorf("retry::max_attempts: %d is not within 1 and %d; leave it out for %d", c.MaxAttempts, maxMaxAttempts, defaultMaxAttempts)
	}
	return nil
}

// validateDelivery checks the keys that say when deliveries are made.
func (c *Config) validateDelivery() error {
	errs := []error{c.Retry.check()}
	if c.GroupWait < 0 || c.GroupWait > maxGroupWait {
		errs = append(errs, fmt.Errorf("group_wait: %v is not within 0s and %v; leave it out to send every event at once", c.GroupWait, maxGroupWait))
	}
	if c.GroupWait > 0 && c.GroupWait < minDuration {
		errs = append(errs, fmt.Errorf("group_wait: %v is shorter than %v; write it with its unit, as in 5s", c.GroupWait, minDuration))
	}
	if c.ReplayEvents < 0 || c.ReplayEvents > maxReplayEvents {
		errs = append(errs, fmt.Errorf("replay_events: %d is not within 0 and %d; leave it out for %d", c.ReplayEvents, maxReplayEvents, defaultReplayEvents))
	}
	return errors.Join(errs...)
}

// attempts is how many one delivery may have.
func (c *RetryConfig) attempts() int {
	if !c.Enabled {
		return 1
	}
	return c.MaxAttempts
}

// after returns when the delivery is tried again, zero if it is given up: what
// cannot get better by waiting, or has been tried often and long enough.
// asked is what the receiver asked for.
func (c *RetryConfig) after(s *state, kind audit.ErrorType, status int, asked time.Duration, now time.Time) time.Time {
	if !temporary(kind, status) || s.Attempts >= c.attempts() {
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
	return upTo(time.Duration(interval))
}

// upTo takes up to half away by chance.
func upTo(d time.Duration) time.Duration {
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

// retryAfter reads the header of that name: seconds, or a date. 0 is what says
// nothing, and what is over; the most is maxRetryAfter.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseUint(text, 10, 32)
		if err != nil { // more than that
			return maxRetryAfter
		}
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// limitsRate reports whether the answer says that the receiver wants nothing
// else either for a while.
func limitsRate(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}
