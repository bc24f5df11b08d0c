// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package durable // import "github.com/otelcol-gpu/otelcol-gpu/internal/durable"

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

const (
	// ReadWithin is how long Get waits for a storage.
	ReadWithin = 30 * time.Second
	// CloseWithin is how long a component waits for its storage at its shutdown, which
	// the Collector does not bound.
	CloseWithin = 5 * time.Second
)

// ErrSilent is that of a storage that does not answer Get. It would not close either.
var ErrSilent = fmt.Errorf("storage: it does not answer for %s: see that its disk or server does; what it holds is untouched", ReadWithin)

// Get reads a key at the start. A storage that hangs ends the start and does not hang it.
func Get(ctx context.Context, client storage.Client, key string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, ReadWithin)
	type answer struct {
		text []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		defer cancel()
		text, err := client.Get(ctx, key)
		answers <- answer{text, err}
	}()
	select {
	case a := <-answers:
		return a.text, a.err
	case <-time.After(ReadWithin + time.Second):
		return nil, ErrSilent
	}
}

// Close waits until done is closed, by who writes to the storage, and runs last, which
// writes and closes: for CloseWithin at most, also when ctx is over. A call that hangs is
// left behind: few storages heed a context.
func Close(ctx context.Context, done <-chan struct{}, last func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CloseWithin)
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		select {
		case <-done:
			ended <- last(ctx)
		case <-ctx.Done(): // later there may be another writer
			ended <- errLeftBehind
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-time.After(CloseWithin + time.Second):
		return errLeftBehind
	}
}

var errLeftBehind = fmt.Errorf("storage: it does not answer for %s, and what was not written yet is not stored", CloseWithin)
