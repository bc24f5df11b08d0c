// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadata"
)

const (
	stateKey = "state"
	// retryEvery is the time between two attempts to write a state that could
	// not be written.
	retryEvery = 10 * time.Second
	// writeEvery is the shortest time between two writes.
	writeEvery = time.Second
)

// store keeps the state in a storage extension. It is written by a goroutine of
// its own when it has changed; changes while it writes become one write.
type store struct {
	client    storage.Client
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	changed   chan struct{} // holds one

	// snapshot gives the state, where it has changed and all events of it were
	// handed on.
	snapshot func() *savedState

	unwritten *savedState // that could not be written; only write reads it

	cancel context.CancelFunc
	done   chan struct{}
}

// openStorage opens the storage extension of that name. One whose file is damaged
// may refuse to open it: then a second one is used, and damaged says why.
func openStorage(ctx context.Context, host component.Host, storageID, id component.ID) (client storage.Client, damaged, err error) {
	ext, ok := host.GetExtensions()[storageID]
	if !ok {
		return nil, nil, fmt.Errorf("storage: there is no extension %s: define it and name it in service::extensions", storageID)
	}
	s, ok := ext.(storage.Extension)
	if !ok {
		return nil, nil, fmt.Errorf("storage: the extension %s stores nothing: name one such as file_storage", storageID)
	}
	client, damaged = s.GetClient(ctx, component.KindConnector, id, "")
	if damaged == nil {
		return client, nil, nil
	}
	if client, err = s.GetClient(ctx, component.KindConnector, id, "second"); err != nil {
		return nil, nil, fmt.Errorf("storage: %s cannot be opened: see that its folder is writable and that no other process uses it: %w", storageID, err)
	}
	return client, damaged, nil
}

// newStore reads the state. One that cannot be read is told and started anew:
// what is partial then is raised again.
func newStore(ctx context.Context, client storage.Client, limit int, telemetry *metadata.TelemetryBuilder, logger *zap.Logger) (*store, *savedState) {
	s := &store{client: client, telemetry: telemetry, logger: logger, changed: make(chan struct{}, 1), done: make(chan struct{})}
	text, err := client.Get(ctx, stateKey)
	var refused int
	state := &savedState{}
	if err == nil {
		var read *savedState
		if read, refused, err = decodeState(text, limit); err == nil {
			state = read
		}
	}
	if err != nil {
		telemetry.GpuEventsStateFailures.Add(ctx, 1)
		logger.Error("The stored state cannot be read and is started anew: what is raised may be raised a second time, "+
			"and what ceased meanwhile is not cleared", zap.Error(err))
	}
	if refused > 0 {
		telemetry.GpuEventsStateFailures.Add(ctx, 1)
		logger.Warn("The stored state has more than max_subjects, which is forgotten: raise it", zap.Int("forgotten", refused))
	}
	return s, state
}

// start begins to write changes until close.
func (s *store) start(snapshot func() *savedState) {
	s.snapshot = snapshot
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go s.run(ctx)
}

func (s *store) run(ctx context.Context) {
	defer close(s.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		}
		wrote, err := s.write(ctx)
		wait := writeEvery
		switch {
		case err != nil:
			wait = retryEvery
			s.wake()
		case !wrote:
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// wake says that there may be something to write.
func (s *store) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// write stores the state, where there is one to store.
func (s *store) write(ctx context.Context) (wrote bool, err error) {
	state := s.unwritten
	if state == nil {
		state = s.snapshot()
	} else if newer := s.snapshot(); newer != nil {
		state = newer
	}
	if state == nil {
		return false, nil
	}
	text, err := encodeState(state)
	if err == nil {
		err = s.client.Set(ctx, stateKey, text)
	}
	if err == nil {
		s.unwritten = nil
		return true, nil
	}
	s.unwritten = state
	if ctx.Err() == nil {
		s.telemetry.GpuEventsStateFailures.Add(ctx, 1)
		s.logger.Warn("The state cannot be written, it is tried again: after a restart events may be told twice", zap.Error(err))
	}
	return false, err
}

// close writes what was not written yet. A storage that does not come back is
// left behind when ctx ends.
func (s *store) close(ctx context.Context) error {
	s.cancel()
	select {
	case <-s.done:
	case <-ctx.Done():
		return fmt.Errorf("storage: it still writes: %w", ctx.Err())
	}
	_, err := s.write(ctx)
	return errors.Join(err, s.client.Close(ctx))
}
