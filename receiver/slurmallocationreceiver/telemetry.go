// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package slurmallocationreceiver

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/jobmap"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/snapshot"
)

// telemetry is the receiver's own telemetry.
type telemetry struct{ builder *metadata.TelemetryBuilder }

// newTelemetry registers what is read from r on collection.
func newTelemetry(set component.TelemetrySettings, r *allocationReceiver) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	states := func(of func(*snapshot.States) map[string]int) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			s := r.newest.Load()
			if s == nil || !r.fresh(s, time.Now()) {
				return nil
			}
			for state, n := range of(&s.States) {
				o.Observe(int64(n), with("state", state))
			}
			return nil
		}
	}
	err = errors.Join(
		builder.RegisterSlurmAllocationSnapshotAgeCallback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(r.age().Seconds())
			return nil
		}),
		builder.RegisterSlurmAllocationDevicesCallback(states(func(s *snapshot.States) map[string]int {
			return map[string]int{"held": s.Held, "free": s.Free, "unresolved": s.Unresolved}
		})),
		builder.RegisterSlurmAllocationJobsCallback(states(func(s *snapshot.States) map[string]int {
			return map[string]int{"live": s.Live, "stale": s.Stale}
		})),
	)
	if err != nil {
		builder.Shutdown()
		return nil, err
	}
	return &telemetry{builder}, nil
}

func with(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

func (t *telemetry) read(ctx context.Context, outcome string) {
	t.builder.SlurmAllocationReads.Add(ctx, 1, with("outcome", outcome))
}

func (t *telemetry) refused(ctx context.Context, reason jobmap.Reason) {
	t.builder.SlurmAllocationFilesRefused.Add(ctx, 1, with("reason", string(reason)))
}
