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
