// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A receiver that limits the rate gets nothing at all until the time that it
// names, with retry or without; what waits is sent then.
func TestRateLimitHoldsBackTheOthers(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		for _, retry := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d retry %t", status, retry), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := &answers{next: []answer{{status: status, retryAfter: "90"}}}
					h := startWith(t, a, func(c *Config, _ *environment) { c.Retry.Enabled = retry })
					h.send(keyed("first"))
					rec := <-h.records
					assert.Equal(t, 90*time.Second, rec.RetryAfter)
					for i := range 5 {
						h.send(keyed(fmt.Sprint(i)))
					}
					time.Sleep(89 * time.Second)
					synctest.Wait()
					assert.Len(t, a.received(), 1)
					time.Sleep(time.Hour)
					want := 6
					if retry {
						want = 7
						assert.GreaterOrEqual(t, rec.NextAttempt.Sub(rec.Time), 90*time.Second)
					} else {
						assert.Zero(t, rec.NextAttempt)
					}
					calls := a.received()
					assert.Len(t, calls, want)
					for _, c := range calls[1:] {
						assert.GreaterOrEqual(t, c.at, 90*time.Second)
					}
				})
			})
		}
	}
}

// A receiver that limits the rate without naming a time is asked again within a
// minute, however far the back-off of the delivery has grown: what happens after
// it is well again leaves then.
func TestARateLimitWithoutATimePausesForAMinuteAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{next: []answer{{status: http.StatusTooManyRequests}}}
		h := startWith(t, a, retrying, func(c *Config, _ *environment) { c.Retry.InitialInterval = 30 * time.Minute })
		h.send(keyed("limited"))
		rec := <-h.records
		assert.GreaterOrEqual(t, rec.NextAttempt.Sub(rec.Time), 15*time.Minute)
		h.send(keyed("new"))
		time.Sleep(29 * time.Second)
		synctest.Wait()
		assert.Len(t, a.received(), 1)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		assert.Len(t, a.received(), 2)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		assert.Len(t, a.received(), 3)
	})
}

// The rate limit of a receiver survives a restart and a reload, with retry or without. A receiver with
// another configuration is asked at once.
func TestARestartKeepsTheRateLimit(t *testing.T) {
	for name, tt := range map[string]struct {
		retry  bool
		other  bool // configuration after the restart
		kill   bool
		limits bool // after it
	}{
		"kill":                  {retry: true, kill: true, limits: true},
		"kill, without retry":   {kill: true, limits: true},
		"shutdown":              {retry: true, limits: true},
		"another URL, and kill": {retry: true, kill: true, other: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisk()
				retry := func(c *Config, _ *environment) { c.Retry.Enabled = tt.retry }
				first := &answers{next: []answer{{status: http.StatusTooManyRequests, retryAfter: "1800"}}}
				h := d.bootWith(t, nil, first, hooks, retry)
				h.send(keyed("first"))
				<-h.records
				for i := range 5 { // they wait for the receiver
					h.send(keyed(fmt.Sprint(i)))
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				assert.Len(t, first.received(), 1)

				after, second, receivers := d, &answers{}, hooks
				if tt.other {
					receivers = only(to("https://other.example.com"))
				}
				if tt.kill {
					after = d.copied()
					defer shutdownNow(t, h)
				} else {
					shutdownNow(t, h)
				}
				after.bootWith(t, nil, second, receivers, retry)
				time.Sleep(28 * time.Minute)
				synctest.Wait()
				if tt.limits {
					assert.Empty(t, second.received())
				} else {
					assert.Len(t, second.received(), 5, "all but the first, which has a time of its own")
				}
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				want := 5
				if tt.retry {
					want = 6
				}
				assert.Len(t, second.received(), want)
			})
		})
	}
}
