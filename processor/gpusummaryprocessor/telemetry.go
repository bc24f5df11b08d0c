// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/lapse"
	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// telemetry is what the processor reports about itself. It is safe for concurrent use.
type telemetry struct {
	builder *metadata.TelemetryBuilder
	logger  *zap.Logger
	attrs   [summary.NumReasons]metric.MeasurementOption
	logged  logonce.Causes
}

func newTelemetry(set component.TelemetrySettings, tracked func() (pods, services, expected int), unobserved func() (pods int, nodes []string)) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	t := &telemetry{builder: builder, logger: set.Logger}
	for r := summary.Reason(1); r < summary.NumReasons; r++ {
		key := "reason"
		if r.IsLimit() {
			key = "limit"
		}
		t.attrs[r] = metric.WithAttributeSet(attribute.NewSet(attribute.String(key, r.String())))
	}
	err = errors.Join(
		builder.RegisterGpuSummaryPodsTrackedCallback(func(_ context.Context, o metric.Int64Observer) error {
			pods, _, _ := tracked()
			o.Observe(int64(pods))
			return nil
		}),
		builder.RegisterGpuSummaryPodsExpectedCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, _, expected := tracked()
			o.Observe(int64(expected))
			return nil
		}),
		builder.RegisterGpuSummaryPodsUnobservedCallback(func(_ context.Context, o metric.Int64Observer) error {
			pods, _ := unobserved()
			o.Observe(int64(pods))
			return nil
		}),
		builder.RegisterGpuSummaryNodesSilentCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, nodes := unobserved()
			for _, node := range nodes {
				o.Observe(1, metric.WithAttributes(attribute.String(names.K8sNodeName, node)))
			}
			return nil
		}),
		builder.RegisterGpuSummaryServicesTrackedCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, services, _ := tracked()
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

func (t *telemetry) observed(ctx context.Context, now time.Time, tl *summary.Tally) {
	if tl.Accepted > 0 {
		t.builder.GpuSummaryPointsAccepted.Add(ctx, int64(tl.Accepted))
	}
	if tl.Future > 0 {
		t.builder.GpuSummaryPointsFuture.Add(ctx, int64(tl.Future))
		t.warn(now, "future", "Points lie in the future and count as arriving now: check the clock of their machine",
			zap.Int("points", tl.Future))
	}
	for r := summary.Reason(1); r < summary.NumReasons; r++ {
		n := tl.Refused[r]
		if n == 0 {
			continue
		}
		if r.IsLimit() {
			t.builder.GpuSummaryLimitRefusals.Add(ctx, int64(n), t.attrs[r])
		} else {
			t.builder.GpuSummaryPointsRefused.Add(ctx, int64(n), t.attrs[r])
		}
		if r.Remedy() == "" {
			continue // late points and duplicates are no fault of anyone's
		}
		t.warn(now, r.String(), "Points are left out of the summary: "+r.Remedy(),
			zap.String("reason", r.String()),
			zap.String("metric", tl.Examples[r].Metric),
			zap.String("namespace", tl.Examples[r].Namespace),
			zap.String("pod", tl.Examples[r].Pod))
	}
}

// expected counts pods of the Kubernetes API that a limit refuses.
func (t *telemetry) expected(ctx context.Context, now time.Time, tl *summary.Tally) {
	for r := summary.LimitPods; r < summary.NumReasons; r++ {
		if n := tl.Refused[r]; n > 0 {
			t.builder.GpuSummaryExpectedPodsRefused.Add(ctx, int64(n), t.attrs[r])
			t.warn(now, "expected_"+r.String(), "Pods of the Kubernetes API are left out of the summary: "+r.Remedy(),
				zap.String("namespace", tl.Examples[r].Namespace), zap.String("pod", tl.Examples[r].Pod))
		}
	}
}

// Refused counts pods that the follower of the Kubernetes API left out.
func (t *telemetry) Refused(ctx context.Context, pods int) {
	t.builder.GpuSummaryExpectedPodsRefused.Add(ctx, int64(pods), t.attrs[summary.LimitPods])
	t.warn(time.Now(), "kept_pods", "Pods of the Kubernetes API are not kept: "+summary.LimitPods.Remedy())
}

// firstUses counts pods whose first use has no place.
func (t *telemetry) firstUses(ctx context.Context, now time.Time, unplaced int) {
	if unplaced > 0 {
		t.builder.GpuSummaryFirstUsesUnplaced.Add(ctx, int64(unplaced))
		t.warn(now, "first_uses", "There are more pairs of namespace and queue than fit: the first use of further pods is counted without both",
			zap.Int("pods", unplaced))
	}
}

// Asked counts a request to the Kubernetes API.
func (t *telemetry) Asked(ctx context.Context, object, result string) {
	t.builder.GpuSummaryAPIRequests.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(
		attribute.String("object", object), attribute.String("result", result))))
}

func (t *telemetry) clockStepped(ctx context.Context, now time.Time, step time.Duration) {
	t.builder.GpuSummaryClockSteps.Add(ctx, 1)
	t.warn(now, "clock", "The wall clock was set; what is known keeps its age", zap.Duration("step", step))
}

// lapsed warns that this process did not run.
func (t *telemetry) lapsed(now time.Time, passed lapse.Tick) {
	t.warn(now, "lapse", "This process did not run for a while, or the clock was set: as after a start, what is missing or idle is not known until the pods reported again",
		zap.Duration("away", passed.Since), zap.Duration("step", passed.Step))
}

// flapping warns of a staleness that is too short for what arrives.
func (t *telemetry) flapping(now time.Time, staleness time.Duration, f summary.Flapping) {
	if f.Interval > 0 {
		t.warn(now, "flapping", "staleness is shorter than two intervals of the points, so that pods are missing in between: raise it, or leave it out to have it computed",
			zap.Duration("staleness", staleness), zap.Duration("interval", f.Interval), zap.Duration("least", 2*f.Interval),
			zap.String("namespace", f.Namespace), zap.String("service", f.Service))
	}
}

// silentNodes warns of nodes on which no agent seems to run.
func (t *telemetry) silentNodes(now time.Time, nodes []string) {
	if len(nodes) > 0 {
		t.warn(now, "silent_nodes", "pods are missing on nodes of which nothing arrived since the start: let the agent run there "+
			"(tolerations, node selector), or name nodes where it cannot in unobserved_nodes", zap.Strings("nodes", nodes[:min(10, len(nodes))]), zap.Int("count", len(nodes)))
	}
}

func (t *telemetry) evaluated(ctx context.Context, took time.Duration) {
	t.builder.GpuSummaryEvaluationDuration.Record(ctx, took.Seconds())
}

func (t *telemetry) evaluationFailed(ctx context.Context, now time.Time, err error) {
	t.builder.GpuSummaryEvaluationsFailed.Add(ctx, 1)
	t.warn(now, "evaluation_failed", "The next component refused an evaluation", zap.Error(err))
}

// warn logs a cause that lasts once in logonce.Every.
func (t *telemetry) warn(now time.Time, cause, message string, fields ...zap.Field) {
	if t.logged.Due(cause, now) {
		t.logger.Warn(message, fields...)
	}
}
