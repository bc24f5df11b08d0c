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
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/state"
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

// store keeps the state in a storage extension. A goroutine writes it when it has
// changed; changes during a write become one write.
type store struct {
	client    storage.Client
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	changed   chan struct{} // holds one

	// snapshot returns the state, where it has changed and all events of it were
	// accepted.
	snapshot func() *state.State

	unwritten *state.State // that could not be written; only write reads it
	failing   bool         // the last write failed; likewise

	cancel context.CancelFunc
	done   chan struct{}
}

// newStore reads the state. An invalid one is logged and replaced: active events are
// raised again. One that cannot be read now is an error: it must not be overwritten.
func newStore(ctx context.Context, client storage.Client, limit int, telemetry *metadata.TelemetryBuilder, logger *zap.Logger) (*store, *state.State, error) {
	s := &store{client: client, telemetry: telemetry, logger: logger, changed: make(chan struct{}, 1), done: make(chan struct{})}
	text, err := durable.Get(ctx, client, stateKey)
	if errors.Is(err, durable.ErrSilent) { // nor would it close
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("storage: the state cannot be read: check that its disk responds and is not full; its content is unchanged: %w", err), client.Close(ctx))
	}
	saved, refused, err := state.Decode(text, limit)
	if err != nil {
		saved = state.New()
		telemetry.GpuEventsStateFailures.Add(ctx, 1)
		logger.Error("stored state is invalid, starting with an empty one: active events may be raised again, "+
			"and those that ended meanwhile are not cleared", zap.Error(err))
	}
	if refused > 0 {
		telemetry.GpuEventsStateFailures.Add(ctx, 1)
		logger.Warn("stored state is larger than max_subjects, the rest is dropped: raise it", zap.Int("dropped", refused))
	}
	return s, saved, nil
}

// start begins to write changes until close.
func (s *store) start(snapshot func() *state.State) {
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

// wake tries a write soon.
func (s *store) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// write stores the state where it has changed.
func (s *store) write(ctx context.Context) (wrote bool, err error) {
	saved := s.unwritten
	if newer := s.snapshot(); newer != nil {
		saved = newer
	}
	if saved == nil {
		return false, nil
	}
	text, dropped, err := state.Encode(saved)
	if dropped > 0 {
		s.telemetry.GpuEventsStateFailures.Add(ctx, int64(dropped))
		s.logger.Error("state of devices without valid numbers is not stored: active events about them may be raised again after a restart", zap.Int("devices", dropped))
	}
	if err == nil {
		err = s.client.Set(ctx, stateKey, text)
	}
	if err == nil {
		s.unwritten = nil
		if s.failing {
			s.failing = false
			s.logger.Info("state is written again")
		}
		return true, nil
	}
	s.unwritten = saved
	if ctx.Err() == nil {
		s.telemetry.GpuEventsStateFailures.Add(ctx, 1)
		if !s.failing {
			s.failing = true
			s.logger.Warn("state cannot be written, retrying every 10 s: events continue, and a restart meanwhile may send them twice", zap.Error(err))
		}
	}
	return false, err
}

// close writes a last time. A storage that does not respond is abandoned.
func (s *store) close(ctx context.Context) error {
	s.cancel()
	return durable.Close(ctx, s.done, func(ctx context.Context) error {
		_, err := s.write(ctx)
		return errors.Join(err, s.client.Close(ctx))
	})
}
