// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"context"
	"time"
)

// answerWithin is how long a flush waits for a disk.
const answerWithin = 10 * time.Second

// lone runs one call at a time. Few disks return for a context: a call that does not return
// is waited for by the next one, which is not made meanwhile.
type lone struct {
	pending chan error // has the result of a call that has not returned, nil without one
}

// run makes a call. late is the error of one that does not return within answerWithin, or
// has to wait as long for the one before.
func (l *lone) run(ctx context.Context, late error, call func() error) error {
	if err := l.wait(ctx, late); l.pending != nil {
		return err
	}
	done := make(chan error, 1)
	l.pending = done
	go func() { done <- call() }()
	return l.wait(ctx, late)
}

func (l *lone) wait(ctx context.Context, late error) error {
	if l.pending == nil {
		return nil
	}
	select {
	case err := <-l.pending:
		l.pending = nil
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(answerWithin):
		return late
	}
}
