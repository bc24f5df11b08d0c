// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/durable"
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
	failing   bool        // the last write failed; likewise

	cancel context.CancelFunc
	done   chan struct{}
}

// newStore reads the state. One that makes no sense is logged and replaced: what
// is partial then is raised again. One that cannot be read now is an error: it
// must not be written over.
func newStore(ctx context.Context, client storage.Client, limit int, telemetry *metadata.TelemetryBuilder, logger *zap.Logger) (*store, *savedState, error) {
	s := &store{client: client, telemetry: telemetry, logger: logger, changed: make(chan struct{}, 1), done: make(chan struct{})}
	text, err := durable.Get(ctx, client, stateKey)
	if errors.Is(err, durable.ErrSilent) { // nor would it close
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("storage: the state cannot be read: see that its disk answers and is not full; what it holds is untouched: %w", err), client.Close(ctx))
	}
	state, refused, err := decodeState(text, limit)
	if err != nil {
		state = &savedState{}
		telemetry.GpuEventsStateFailures.Add(ctx, 1)
		logger.Error("The stored state cannot be read and is started anew: what is raised may be raised a second time, "+
			"and what ceased meanwhile is not cleared", zap.Error(err))
	}
	if refused > 0 {
		telemetry.GpuEventsStateFailures.Add(ctx, 1)
		logger.Warn("The stored state has more than max_subjects, which is forgotten: raise it", zap.Int("forgotten", refused))
	}
	return s, state, nil
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
	text, dropped, err := encodeState(state)
	if dropped > 0 {
		s.telemetry.GpuEventsStateFailures.Add(ctx, int64(dropped))
		s.logger.Error("devices whose state has no text are not stored: what is raised about them may be raised a second time after a restart", zap.Int("devices", dropped))
	}
	if err == nil {
		err = s.client.Set(ctx, stateKey, text)
	}
	if err == nil {
		s.unwritten = nil
		if s.failing {
			s.failing = false
			s.logger.Info("the state is written again")
		}
		return true, nil
	}
	s.unwritten = state
	if ctx.Err() == nil {
		s.telemetry.GpuEventsStateFailures.Add(ctx, 1)
		if !s.failing {
			s.failing = true
			s.logger.Warn("the state cannot be written and is tried again every 10 s: events go on, and a restart meanwhile may send them twice", zap.Error(err))
		}
	}
	return false, err
}

// close writes what was not written yet. A storage that does not come back is
// left behind.
func (s *store) close(ctx context.Context) error {
	s.cancel()
	return durable.Close(ctx, s.done, func(ctx context.Context) error {
		_, err := s.write(ctx)
		return errors.Join(err, s.client.Close(ctx))
	})
}
