// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package branch calls a consumer without depending on it: the caller waits for a
// bounded time, and a bounded number of calls goes on without the caller.
package branch // import "github.com/otelcol-gpu/otelcol-gpu/connector/besteffortconnector/internal/branch"

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrBusy reports that a value was not given to the consumer, because it has not
// returned from as many others as it may have.
var ErrBusy = errors.New("the pipeline has not returned from earlier calls")

// Branch is the way to one consumer of values of type T.
type Branch[T any] struct {
	consume func(context.Context, T) error
	timeout time.Duration
	slots   chan struct{}
	late    atomic.Int64
	calls   sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelFunc
}

// New returns a branch to consume, which waits for timeout and has maxInFlight
// values in it at most.
func New[T any](consume func(context.Context, T) error, timeout time.Duration, maxInFlight int) *Branch[T] {
	b := &Branch[T]{consume: consume, timeout: timeout, slots: make(chan struct{}, maxInFlight)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// Forward gives v to the consumer, and calls done once with what it returned or
// with ErrBusy: before Forward returns, or later if late is true. The consumer does
// not learn that the caller's context ended: what it was given is its own.
func (b *Branch[T]) Forward(ctx context.Context, v T, done func(error)) (late bool) {
	if b.late.Load() >= int64(cap(b.slots)) {
		done(ErrBusy)
		return false
	}
	timer := time.NewTimer(b.timeout)
	defer timer.Stop()
	select {
	case b.slots <- struct{}{}:
	case <-timer.C:
		done(ErrBusy)
		return false
	}
	returned := make(chan struct{})
	var left atomic.Bool // by the side that was first: the caller, or the call
	b.calls.Go(func() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer context.AfterFunc(b.ctx, cancel)()
		defer cancel()
		done(b.consume(ctx, v))
		if !left.CompareAndSwap(false, true) {
			b.late.Add(-1)
		}
		<-b.slots
		close(returned)
	})
	select {
	case <-returned:
		return false
	case <-timer.C:
	}
	b.late.Add(1)
	if left.CompareAndSwap(false, true) {
		return true
	}
	b.late.Add(-1)
	return false
}

// Shutdown waits for the calls that are in the background, then ends their
// contexts, and reports whether all of them returned.
func (b *Branch[T]) Shutdown() bool {
	defer b.cancel()
	returned := make(chan struct{})
	go func() {
		b.calls.Wait()
		close(returned)
	}()
	for range 2 {
		select {
		case <-returned:
			return true
		case <-time.After(b.timeout):
			b.cancel()
		}
	}
	return false
}
