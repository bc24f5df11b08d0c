// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package durable // import "github.com/otelcol-gpu/otelcol-gpu/internal/durable"

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

const (
	// readWithin is how long a start waits for a storage.
	readWithin = 30 * time.Second
	// closeWithin is how long a component waits for its storage at its shutdown, which
	// the Collector does not bound.
	closeWithin = 5 * time.Second
)

var (
	errSilent     = fmt.Errorf("storage: it does not answer for %s: see that its disk or server does; what it holds is untouched", readWithin)
	errLeftBehind = fmt.Errorf("storage: it does not answer for %s, and what was not written yet is not stored", closeWithin)
)

// Value is a state that a component keeps under one key of its storage: it is read at the
// start, written by a goroutine of its own when it has changed, and at the shutdown.
type Value[S any] struct {
	Client storage.Client
	Key    string
	Name   string // of the state in errors, such as "the state"
	// Every is the shortest time between two writes, Retry the time after one that failed.
	Every, Retry time.Duration
	// Periodic writes do not need Wake: one is due after each Every.
	Periodic bool
	Encode   func(*S) ([]byte, error)
	// Failed is called for each write that failed, first for the first of several in
	// succession. Recovered, if there is one, is called for the first write after those.
	Failed    func(first bool, err error)
	Recovered func()

	next      func() *S
	unwritten *S            // could not be written; only write uses it
	failing   bool          // the last write failed; likewise
	changed   chan struct{} // holds one
	cancel    context.CancelFunc
	done      chan struct{}
}

// Read returns what is stored, nil if nothing is. A storage that hangs ends the start and
// does not hang it. After an error the client is closed, unless it hangs: what cannot be
// read now must not be overwritten.
func (v *Value[S]) Read(ctx context.Context) ([]byte, error) {
	reading, cancel := context.WithTimeout(ctx, readWithin)
	var text []byte
	err := Within(readWithin+time.Second, errSilent, func() (err error) {
		defer cancel()
		text, err = v.Client.Get(reading, v.Key)
		return err
	})
	if errors.Is(err, errSilent) {
		return nil, err
	}
	if err != nil {
		err = fmt.Errorf("storage: %s cannot be read: see that its disk answers and is not full; what it holds is unchanged: %w", v.Name, err)
		return nil, errors.Join(err, v.Client.Close(ctx))
	}
	return text, nil
}

// Start begins to write what next returns, until Close. It returns nil where nothing has
// changed since the last call; what changes during a write becomes one write.
func (v *Value[S]) Start(next func() *S) {
	ctx, cancel := context.WithCancel(context.Background())
	v.next, v.cancel, v.changed, v.done = next, cancel, make(chan struct{}, 1), make(chan struct{})
	go v.run(ctx)
}

// Wake causes a write soon.
func (v *Value[S]) Wake() {
	select {
	case v.changed <- struct{}{}:
	default:
	}
}

func (v *Value[S]) run(ctx context.Context) {
	defer close(v.done)
	wait := time.Duration(0)
	if v.Periodic {
		wait = v.Every
		v.Wake()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		select {
		case <-ctx.Done():
			return
		case <-v.changed:
		}
		wrote, err := v.write(ctx)
		wait = 0
		if wrote {
			wait = v.Every
		}
		if err != nil {
			wait = v.Retry
		}
		if err != nil || v.Periodic {
			v.Wake()
		}
	}
}

// write stores the state where it has changed.
func (v *Value[S]) write(ctx context.Context) (wrote bool, err error) {
	if newer := v.next(); newer != nil {
		v.unwritten = newer
	}
	if v.unwritten == nil {
		return false, nil
	}
	text, err := v.Encode(v.unwritten)
	if err == nil {
		err = v.Client.Set(ctx, v.Key, text)
	}
	if err == nil {
		if v.failing && v.Recovered != nil {
			v.Recovered()
		}
		v.unwritten, v.failing = nil, false
		return true, nil
	}
	if ctx.Err() == nil {
		v.Failed(!v.failing, err)
		v.failing = true
	}
	return false, err
}

// Close writes a last time and closes the client, also when ctx is over.
func (v *Value[S]) Close(ctx context.Context) error {
	v.cancel()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	return Within(closeWithin+time.Second, errLeftBehind, func() error {
		defer cancel()
		select {
		case <-v.done:
			_, err := v.write(ctx)
			return errors.Join(err, v.Client.Close(ctx))
		case <-ctx.Done(): // later there may be another writer
			return errLeftBehind
		}
	})
}

// Within returns what call returns, or late after that time: then call is left behind,
// since few storages heed a context.
func Within(limit time.Duration, late error, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return late
	}
}
