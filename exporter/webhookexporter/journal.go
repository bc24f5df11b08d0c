// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

const (
	// storagePatience is how long anybody waits for the storage. One that takes
	// longer is not waited for again until it has come back.
	storagePatience = 5 * time.Second
	// rewriteEvery is the time until what could not be written is tried again,
	// if nothing else is written before.
	rewriteEvery = 10 * time.Second
)

var (
	errStorageSlow   = fmt.Errorf("storage: it does not answer within %v", storagePatience)
	errStorageClosed = errors.New("storage: it is closed, the exporter shuts down")
)

// journal writes keys to a storage client. What all callers want written while
// it writes becomes its next transaction. What it cannot write it keeps and
// tries again; that is bounded because keys are.
type journal struct {
	client storage.Client
	// failed and recovered are told once for each failure, and once for all
	// failures before a success.
	failed    func(operation string, err error)
	recovered func()
	wake      chan struct{} // holds one
	stop      chan struct{}
	done      chan struct{}

	mu      sync.Mutex
	wanted  map[string][]byte // not yet written; nil is deleted
	waiting []chan<- error    // for that
	slow    bool              // a caller's patience ended while it wrote
	failing bool
	closed  bool
}

func newJournal(client storage.Client, failed func(string, error), recovered func()) *journal {
	j := &journal{
		client: client, failed: failed, recovered: recovered,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		wanted: map[string][]byte{},
	}
	go j.run()
	return j
}

// want changes what is to be written, all of it in one transaction. The
// function must not wait for anything.
func (j *journal) want(change func(set func(key string, value []byte))) {
	j.mu.Lock()
	change(func(key string, value []byte) { j.wanted[key] = value })
	j.mu.Unlock()
	j.poke()
}

// flush waits until what is wanted is written, or until it is clear that this
// fails or takes too long.
func (j *journal) flush() error {
	done := make(chan error, 1)
	j.mu.Lock()
	switch {
	case j.closed:
		j.mu.Unlock()
		return errStorageClosed
	case j.slow:
		j.mu.Unlock()
		return errStorageSlow
	}
	j.waiting = append(j.waiting, done)
	j.mu.Unlock()
	j.poke()

	patience := time.NewTimer(storagePatience)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
	}
	j.mu.Lock()
	first := !j.slow
	j.slow = true
	j.mu.Unlock()
	if first {
		j.fail(errStorageSlow)
	}
	return errStorageSlow
}

func (j *journal) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

func (j *journal) run() {
	defer close(j.done)
	again := time.NewTimer(rewriteEvery)
	again.Stop()
	defer again.Stop()
	for {
		select {
		case <-j.wake:
		case <-again.C:
		case <-j.stop:
			j.write()
			return
		}
		if !j.write() {
			again.Reset(rewriteEvery)
		}
	}
}

// write makes one transaction of what is wanted. It reports false if that has to
// be tried again.
func (j *journal) write() bool {
	j.mu.Lock()
	wanted, waiting := j.wanted, j.waiting
	j.wanted, j.waiting = map[string][]byte{}, nil
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

	j.mu.Lock()
	recovered := err == nil && len(wanted) > 0 && j.failing
	if recovered {
		j.failing = false
	}
	j.slow = false
	if err != nil {
		for key, value := range wanted {
			if _, newer := j.wanted[key]; !newer {
				j.wanted[key] = value
			}
		}
	}
	j.mu.Unlock()
	if err != nil {
		j.fail(err)
	}
	if recovered {
		j.recovered()
	}
	for _, done := range waiting {
		done <- err // holds one
	}
	return err == nil
}

func (j *journal) fail(err error) {
	j.mu.Lock()
	j.failing = true
	j.mu.Unlock()
	j.failed("write", err)
}

// read gets values, in transactions of bounded size. A key that is not there
// has no value.
func (j *journal) read(ctx context.Context, keys []string) ([][]byte, error) {
	const most = 1000
	values := make([][]byte, 0, len(keys))
	for len(keys) > 0 {
		n := min(len(keys), most)
		ops := make([]*storage.Operation, n)
		for i, key := range keys[:n] {
			ops[i] = storage.GetOperation(key)
		}
		done := make(chan error, 1)
		go func() { done <- j.client.Batch(ctx, ops...) }()
		select {
		case err := <-done:
			if err != nil {
				return nil, err
			}
		case <-time.After(storagePatience):
			return nil, errStorageSlow
		}
		for _, op := range ops {
			values = append(values, op.Value)
		}
		keys = keys[n:]
	}
	return values, nil
}

// close writes what is left and closes the client. A storage that hangs is left
// behind when ctx ends.
func (j *journal) close(ctx context.Context) error {
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
