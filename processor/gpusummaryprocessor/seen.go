// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
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
type seenPods = durable.Value[seenState]

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
	s = &seenPods{
		Client: client, Key: seenKey, Name: "the pods seen", Every: writeSeenEvery, Retry: writeSeenEvery, Periodic: true,
		Encode: func(s *seenState) ([]byte, error) { return json.Marshal(s) },
		Failed: func(_ bool, err error) {
			tel.warn(time.Now(), "storage", "the pods seen cannot be written: the next start may not know which of them are silent", zap.Error(err))
		},
	}
	text, err := s.Read(ctx)
	if err != nil {
		return nil, nil, false, err
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
	return s, state.Pods, damaged == nil, nil
}
