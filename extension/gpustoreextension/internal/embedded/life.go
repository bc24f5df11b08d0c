// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"

import (
	"context"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// life keeps the TSDB open while it is used. Closing cancels the context under which
// queries run, and waits for them: what a query reads is mapped from files.
type life struct {
	mu     sync.Mutex
	closed bool
	inUse  sync.WaitGroup
	ended  context.Context
	end    context.CancelFunc
}

func newLife() *life {
	l := &life{}
	l.ended, l.end = context.WithCancel(context.Background())
	return l
}

// use keeps the TSDB open until the function that it returns is called.
func (l *life) use() (func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, store.Errorf(store.Unavailable, "the store is shut down")
	}
	l.inUse.Add(1)
	return l.inUse.Done, nil
}

// enter begins a query. The context that it returns ends at the timeout and at close.
func (l *life) enter(ctx context.Context, timeout time.Duration) (_ context.Context, leave func(), err error) {
	release, err := l.use()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	stop := context.AfterFunc(l.ended, cancel)
	return ctx, func() {
		stop()
		cancel()
		release()
	}, nil
}

// close ends every use and waits for it. It reports false if it was called before.
func (l *life) close() bool {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false
	}
	l.closed = true
	l.mu.Unlock()
	l.end()
	l.inUse.Wait()
	return true
}
