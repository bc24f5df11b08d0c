// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadata"
)

// logEvery is the time between two log lines about the same cause.
const logEvery = 10 * time.Minute

// telemetry is what the processor says about itself. It is safe for concurrent use.
type telemetry struct {
	builder *metadata.TelemetryBuilder
	logger  *zap.Logger
	attrs   [numReasons]metric.MeasurementOption

	mu     sync.Mutex
	logged map[string]time.Time // cause -> last line
}

func newTelemetry(set component.TelemetrySettings, tracked func() (pods, services int)) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	t := &telemetry{builder: builder, logger: set.Logger, logged: map[string]time.Time{}}
	for r := noNamespace; r < numReasons; r++ {
		key := "reason"
		if r.isLimit() {
			key = "limit"
		}
		t.attrs[r] = metric.WithAttributeSet(attribute.NewSet(attribute.String(key, reasonNames[r])))
	}
	err = errors.Join(
		builder.RegisterGpuSummaryPodsTrackedCallback(func(_ context.Context, o metric.Int64Observer) error {
			pods, _ := tracked()
			o.Observe(int64(pods))
			return nil
		}),
		builder.RegisterGpuSummaryServicesTrackedCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, services := tracked()
			o.Observe(int64(services))
			return nil
		}),
	)
	if err != nil {
		builder.Shutdown()
		return nil, err
	}
	return t, nil
}

func (t *telemetry) shutdown() { t.builder.Shutdown() }

func (t *telemetry) observed(ctx context.Context, now time.Time, tl *tally) {
	if tl.accepted > 0 {
		t.builder.GpuSummaryPointsAccepted.Add(ctx, int64(tl.accepted))
	}
	if tl.future > 0 {
		t.builder.GpuSummaryPointsFuture.Add(ctx, int64(tl.future))
		t.warn(now, "future", "Points lie in the future and count as arriving now: check the clock of their machine",
			zap.Int("points", tl.future))
	}
	for r := noNamespace; r < numReasons; r++ {
		n := tl.refused[r]
		if n == 0 {
			continue
		}
		if r.isLimit() {
			t.builder.GpuSummaryLimitRefusals.Add(ctx, int64(n), t.attrs[r])
		} else {
			t.builder.GpuSummaryPointsRefused.Add(ctx, int64(n), t.attrs[r])
		}
		if remedies[r] == "" {
			continue // late points and duplicates are no fault of anybody's
		}
		t.warn(now, reasonNames[r], "Points are left out of the summary: "+remedies[r],
			zap.String("reason", reasonNames[r]),
			zap.String("metric", tl.examples[r].metric),
			zap.String("namespace", tl.examples[r].pod.namespace),
			zap.String("pod", tl.examples[r].pod.name))
	}
}

func (t *telemetry) clockStepped(ctx context.Context, now time.Time, step time.Duration) {
	t.builder.GpuSummaryClockSteps.Add(ctx, 1)
	t.warn(now, "clock", "The wall clock was set; what is known keeps its age", zap.Duration("step", step))
}

func (t *telemetry) evaluated(ctx context.Context, took time.Duration) {
	t.builder.GpuSummaryEvaluationDuration.Record(ctx, took.Seconds())
}

func (t *telemetry) evaluationFailed(ctx context.Context, now time.Time, err error) {
	t.builder.GpuSummaryEvaluationsFailed.Add(ctx, 1)
	t.warn(now, "evaluation_failed", "The next component refused an evaluation", zap.Error(err))
}

// warn logs a cause at most once every logEvery. Causes are a fixed set.
func (t *telemetry) warn(now time.Time, cause, message string, fields ...zap.Field) {
	t.mu.Lock()
	last, ok := t.logged[cause]
	due := !ok || now.Sub(last) >= logEvery || now.Before(last)
	if due {
		t.logged[cause] = now
	}
	t.mu.Unlock()
	if due {
		t.logger.Warn(message, fields...)
	}
}
