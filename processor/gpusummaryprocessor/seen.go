// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/durable"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

const (
	seenKey = "seen"
	// writeSeenEvery is the time between two writes of the pods that were seen.
	writeSeenEvery = time.Minute
)

// seenPods keeps the pods that telemetry showed in a storage extension: with
// expected_pods seen, nothing else lets the next start know which pods fell silent
// before it.
type seenPods struct {
	client storage.Client
	tel    *telemetry
	read   func() []summary.SeenPod

	cancel context.CancelFunc
	done   chan struct{}
}

// seenState is what is stored.
type seenState struct {
	Version int               `json:"version"`
	Pods    []summary.SeenPod `json:"pods"`
}

// openSeen opens the storage and reads what the last process wrote. known reports
// whether that is all that it had seen; a state that makes no sense is not.
func openSeen(ctx context.Context, host component.Host, storageID, id component.ID, tel *telemetry) (s *seenPods, pods []summary.SeenPod, known bool, err error) {
	client, damaged, err := durable.Open(ctx, host, component.KindProcessor, storageID, id)
	if err != nil {
		return nil, nil, false, err
	}
	text, err := durable.Get(ctx, client, seenKey)
	if errors.Is(err, durable.ErrSilent) {
		return nil, nil, false, err
	}
	if err != nil {
		return nil, nil, false, errors.Join(fmt.Errorf("storage: the pods seen cannot be read: see that its disk answers and is not full: %w", err), client.Close(ctx))
	}
	state := seenState{Version: 1}
	if damaged == nil && len(text) > 0 {
		if damaged = json.Unmarshal(text, &state); damaged == nil && state.Version != 1 {
			damaged = fmt.Errorf("its version %d is not known", state.Version)
		}
	}
	if damaged != nil {
		state.Pods = nil
		tel.logger.Warn("the stored pods cannot be read: which pods were silent before this start is not known until service_ttl has passed", zap.Error(damaged))
	}
	return &seenPods{client: client, tel: tel}, state.Pods, damaged == nil, nil
}

// start writes what read returns from now on.
func (s *seenPods) start(read func() []summary.SeenPod) {
	ctx, cancel := context.WithCancel(context.Background())
	s.read, s.cancel, s.done = read, cancel, make(chan struct{})
	go s.run(ctx)
}

func (s *seenPods) run(ctx context.Context) {
	defer close(s.done)
	ticker := time.NewTicker(writeSeenEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := s.write(ctx); err != nil && ctx.Err() == nil {
				s.tel.warn(time.Now(), "storage", "the pods seen cannot be written: the next start may not know which of them are silent", zap.Error(err))
			}
		}
	}
}

func (s *seenPods) write(ctx context.Context) error {
	text, err := json.Marshal(seenState{1, s.read()})
	if err != nil {
		return err
	}
	return s.client.Set(ctx, seenKey, text)
}

// close writes a last time. A storage that does not answer is left behind.
func (s *seenPods) close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if s.cancel == nil {
		return s.client.Close(ctx)
	}
	s.cancel()
	return durable.Close(ctx, s.done, func(ctx context.Context) error {
		return errors.Join(s.write(ctx), s.client.Close(ctx))
	})
}
