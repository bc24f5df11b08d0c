// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"context"
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

// store keeps the state in a storage extension.
type store = durable.Value[state.State]

// newStore reads the state. An invalid one is logged and replaced: active events are
// raised again. One that cannot be read now is an error: it must not be overwritten.
func newStore(ctx context.Context, client storage.Client, limit int, telemetry *metadata.TelemetryBuilder, logger *zap.Logger) (*store, *state.State, error) {
	s := &store{
		Client: client, Key: stateKey, Name: "the state", Every: writeEvery, Retry: retryEvery,
		Encode: func(s *state.State) ([]byte, error) {
			text, dropped, err := state.Encode(s)
			if dropped > 0 {
				telemetry.GpuEventsStateFailures.Add(context.Background(), int64(dropped))
				logger.Error("state of devices without valid numbers is not stored: active events about them may be raised again after a restart", zap.Int("devices", dropped))
			}
			return text, err
		},
		Failed: func(first bool, err error) {
			telemetry.GpuEventsStateFailures.Add(context.Background(), 1)
			if first {
				logger.Warn("state cannot be written, retrying every 10 s: events continue, and a restart meanwhile may send them twice", zap.Error(err))
			}
		},
		Recovered: func() { logger.Info("state is written again") },
	}
	text, err := s.Read(ctx)
	if err != nil {
		return nil, nil, err
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
