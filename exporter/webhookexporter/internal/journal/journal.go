// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package journal writes to a storage extension beside the goroutines that want something
// written.
package journal // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/journal"

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/otelcol-gpu/otelcol-gpu/internal/durable"
)

const (
	// Patience is how long Flush waits for the storage. One that takes longer is
	// not waited for again until it has answered.
	Patience = 5 * time.Second
	// FirstRest and LastRest bound the time until what could not be written is
	// tried again. Nothing waits for that.
	FirstRest = time.Second
	LastRest  = 10 * time.Second
)

var (
	ErrSlow   = fmt.Errorf("storage: it does not answer within %v", Patience)
	ErrClosed = errors.New("storage: it is closed, the exporter shuts down")
)

// Journal writes keys to a storage client. What all callers want written while
// it writes becomes its next transaction. What it cannot write it keeps and
// tries again; that is bounded because keys are.
type Journal struct {
	client storage.Client
	// failed is called for each failure, recovered for the first success after
	// failures.
	failed    func(operation string, err error)
	recovered func()
	wake      chan struct{} // holds one
	stop      chan struct{}
	done      chan struct{}
	// turn holds one: the goroutine that changes failing, until that is reported. It is
	// taken before mu.
	turn chan struct{}

	mu      sync.Mutex
	wanted  map[string][]byte // not yet written; nil is deleted
	writing map[string][]byte // by the transaction of now
	waiting []chan<- error    // for wanted
	failing error             // of the last transaction, or that it takes too long
	closed  bool
}

// New starts a journal, which Close ends.
func New(client storage.Client, failed func(string, error), recovered func()) *Journal {
	j := &Journal{
		client: client, failed: failed, recovered: recovered,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}), turn: make(chan struct{}, 1),
		wanted: map[string][]byte{},
	}
	go j.run()
	return j
}

// Want changes what is to be written, all of it in one transaction. The
// function must not wait for anything.
func (j *Journal) Want(change func(set func(key string, value []byte))) {
	j.mu.Lock()
	change(func(key string, value []byte) { j.wanted[key] = value })
	j.mu.Unlock()
	j.poke()
}

// Flush waits until what is wanted is written, or until it is clear that this
// fails or takes too long. While the storage is known to fail it does not wait.
func (j *Journal) Flush() error {
	done := make(chan error, 1)
	j.mu.Lock()
	switch {
	case j.closed:
		j.mu.Unlock()
		return ErrClosed
	case j.failing != nil:
		defer j.mu.Unlock()
		return j.failing
	}
	j.waiting = append(j.waiting, done)
	j.mu.Unlock()
	j.poke()

	patience := time.NewTimer(Patience)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
	}
	j.turn <- struct{}{}
	defer func() { <-j.turn }()
	select {
	case err := <-done:
		return err // it was written in the last moment
	default:
	}
	j.mu.Lock()
	first := j.failing == nil
	if first {
		j.failing = ErrSlow
	}
	j.mu.Unlock()
	if first {
		j.failed("write", ErrSlow)
	}
	return ErrSlow
}

// Holds reports whether the last that was wanted of the key is written.
func (j *Journal) Holds(key string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, wanted := j.wanted[key]
	_, writing := j.writing[key]
	return !wanted && !writing
}

// Closed reports whether Close was called.
func (j *Journal) Closed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.closed
}

func (j *Journal) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

func (j *Journal) run() {
	defer close(j.done)
	rest := time.Duration(0) // after a failure
	again := time.NewTimer(LastRest)
	again.Stop()
	defer again.Stop()
	for {
		wake := j.wake
		if rest > 0 {
			wake = nil
		}
		select {
		case <-wake:
		case <-again.C:
		case <-j.stop:
			j.write()
			return
		}
		if j.write() {
			rest = 0
			continue
		}
		rest = min(max(2*rest, FirstRest), LastRest)
		again.Reset(rest)
	}
}

// write makes one transaction of what is wanted. It reports false if that has to
// be tried again.
func (j *Journal) write() bool {
	j.mu.Lock()
	wanted, waiting := j.wanted, j.waiting
	j.wanted, j.writing, j.waiting = map[string][]byte{}, wanted, nil
	j.mu.Unlock()

	var err error
	if len(wanted) > 0 {
		ops := make([]*storage.Operation, 0, len(wanted))
		for key, value := range wanted {
			if value == nil {
				ops = append(ops, storage.DeleteOperation(key))
			} else {
				ops = append(ops, storage.SetOperation(key, value))
			}
		}
		err = j.client.Batch(context.Background(), ops...)
	}

	j.turn <- struct{}{}
	defer func() { <-j.turn }()
	j.mu.Lock()
	recovered := err == nil && len(wanted) > 0 && j.failing != nil
	j.writing = nil
	if err != nil || recovered {
		j.failing = err
	}
	if err != nil {
		for key, value := range wanted {
			if _, newer := j.wanted[key]; !newer {
				j.wanted[key] = value
			}
		}
	}
	waiting = append(waiting, j.hopeless()...)
	j.mu.Unlock()
	if err != nil {
		j.failed("write", err)
	}
	if recovered {
		j.recovered()
	}
	for _, done := range waiting {
		done <- err // holds one
	}
	return err == nil
}

// hopeless takes those who began to wait for the next transaction while this one
// failed: it is not made at once. The caller holds j.mu.
func (j *Journal) hopeless() []chan<- error {
	if j.failing == nil {
		return nil
	}
	waiting := j.waiting
	j.waiting = nil
	return waiting
}

// Read gets values, in transactions of bounded size. A key that is not there
// has no value.
func (j *Journal) Read(ctx context.Context, keys []string) ([][]byte, error) {
	const most = 1000
	values := make([][]byte, 0, len(keys))
	for len(keys) > 0 {
		n := min(len(keys), most)
		ops := make([]*storage.Operation, n)
		for i, key := range keys[:n] {
			ops[i] = storage.GetOperation(key)
		}
		if err := durable.Within(Patience, ErrSlow, func() error { return j.client.Batch(ctx, ops...) }); err != nil {
			return nil, err
		}
		for _, op := range ops {
			values = append(values, op.Value)
		}
		keys = keys[n:]
	}
	return values, nil
}

// Close writes what is left and closes the client. A storage that hangs is left
// behind when ctx ends.
func (j *Journal) Close(ctx context.Context) error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	close(j.stop)
	select {
	case <-j.done:
	case <-ctx.Done():
		return fmt.Errorf("storage: it still writes: %w", ctx.Err())
	}
	closed := make(chan error, 1)
	go func() { closed <- j.client.Close(ctx) }()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("storage: it does not close: %w", ctx.Err())
	}
}
