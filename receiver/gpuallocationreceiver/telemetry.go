// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/snapshot"
)

// telemetry is the receiver's own telemetry. Each goroutine that writes log
// lines has its own causes.
type telemetry struct {
	builder *metadata.TelemetryBuilder
	logger  *zap.Logger
}

// newTelemetry registers what is read from r on collection.
func newTelemetry(set component.TelemetrySettings, r *allocationReceiver) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		builder.RegisterGpuAllocationSnapshotAgeCallback(func(_ context.Context, o metric.Float64Observer) error {
			if !r.away.Load() {
				o.Observe(r.age().Seconds())
			}
			return nil
		}),
		builder.RegisterGpuAllocationAPIAgeCallback(func(_ context.Context, o metric.Float64Observer) error {
			for object, age := range r.api.Load().Ages(time.Now()) {
				o.Observe(age.Seconds(), with("object", object))
			}
			return nil
		}),
		builder.RegisterGpuAllocationDevicesCallback(func(_ context.Context, o metric.Int64Observer) error {
			s, ok := r.states()
			if !ok {
				return nil
			}
			for state, n := range map[string]int{
				"held": s.Held, "free": s.Free, "unresolved": s.Unresolved, "contested": s.Contested, "unresolved_dra": s.UnresolvedDRA,
			} {
				o.Observe(int64(n), with("state", state))
			}
			return nil
		}),
	)
	if err != nil {
		builder.Shutdown()
		return nil, err
	}
	return &telemetry{builder: builder, logger: set.Logger}, nil
}

func with(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

func (t *telemetry) called(ctx context.Context, call string, o kubelet.Outcome) {
	t.builder.GpuAllocationCalls.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(
		attribute.String("call", call), attribute.String("outcome", string(o)))))
}

func (t *telemetry) asked(ctx context.Context, object string, r k8sclient.Result) {
	t.builder.GpuAllocationAPIRequests.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(
		attribute.String("object", object), attribute.String("result", string(r)))))
}

func (t *telemetry) counted(ctx context.Context, tl *snapshot.Tally) {
	for r, n := range tl.Refused {
		if n > 0 {
			t.builder.GpuAllocationEntriesRefused.Add(ctx, int64(n), with("reason", snapshot.Reason(r).String()))
		}
	}
	for _, u := range tl.Unusable {
		t.builder.GpuAllocationAnnotationsUnusable.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(
			attribute.String("scheduler", u.Scheduler), attribute.String("problem", sharing.Problem(u.Err)))))
	}
	if tl.SharesAssumed > 0 {
		t.builder.GpuAllocationSharesAssumed.Add(ctx, int64(tl.SharesAssumed))
	}
}
