// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package branch

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestForwardReturnsWithTheConsumer(t *testing.T) {
	full := errors.New("sending queue is full")
	for _, want := range []error{nil, full} {
		b := New(func(_ context.Context, v int) error {
			assert.Equal(t, 7, v)
			return want
		}, time.Second, 1)
		for range 3 { // the one slot is free again each time
			calls := 0
			assert.False(t, b.Forward(t.Context(), 7, func(err error) {
				calls++
				assert.Equal(t, want, err)
			}))
			assert.Equal(t, 1, calls)
		}
		assert.True(t, b.Shutdown())
	}
}

func TestForwardLeavesAConsumerThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := New(func(context.Context, int) error {
			<-release
			return nil
		}, time.Second, 2)
		var busy, done atomic.Int32
		forward := func() (late bool, waited time.Duration) {
			start := time.Now()
			late = b.Forward(t.Context(), 1, func(err error) {
				if done.Add(1); errors.Is(err, ErrBusy) {
					busy.Add(1)
				}
			})
			return late, time.Since(start)
		}
		for range 2 {
			late, waited := forward()
			assert.True(t, late)
			assert.Equal(t, time.Second, waited)
		}
		for range 100 {
			late, waited := forward()
			assert.False(t, late)
			assert.Zero(t, waited, "what must go on is not held any more")
		}
		assert.EqualValues(t, 100, busy.Load())
		close(release)
		synctest.Wait()
		assert.EqualValues(t, 102, done.Load())
		late, waited := forward()
		assert.False(t, late)
		assert.Zero(t, waited)
		assert.EqualValues(t, 100, busy.Load())
	})
}

// Many callers at once on a consumer that is well wait for one another.
func TestForwardAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at, most, refused atomic.Int32
		b := New(func(context.Context, int) error {
			if now := at.Add(1); now > most.Load() {
				most.Store(now)
			}
			time.Sleep(10 * time.Millisecond)
			at.Add(-1)
			return nil
		}, time.Second, 4)
		for range 40 {
			go b.Forward(t.Context(), 1, func(err error) {
				if err != nil {
					refused.Add(1)
				}
			})
		}
		time.Sleep(time.Minute)
		assert.EqualValues(t, 4, most.Load())
		assert.Zero(t, refused.Load())
	})
}

func TestForwardOutlivesTheCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := New(func(ctx context.Context, _ int) error { return ctx.Err() }, time.Second, 1)
	b.Forward(ctx, 1, func(err error) { assert.NoError(t, err) })
}

func TestShutdown(t *testing.T) {
	for name, ends := range map[string]bool{"ends with its context": true, "never ends": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				b := New(func(ctx context.Context, _ int) error {
					if ends {
						<-ctx.Done()
						return ctx.Err()
					}
					<-release
					return nil
				}, time.Second, 1)
				assert.True(t, b.Forward(t.Context(), 1, func(error) {}))
				start := time.Now()
				assert.Equal(t, ends, b.Shutdown())
				assert.LessOrEqual(t, time.Since(start), 2*time.Second)
				close(release)
			})
		})
	}
}
