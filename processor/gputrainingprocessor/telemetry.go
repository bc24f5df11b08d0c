// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gputrainingprocessor

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gputrainingprocessor/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gputrainingprocessor/internal/training"
)

// telemetry is what the processor reports about itself. It is safe for concurrent use.
type telemetry struct {
	builder *metadata.TelemetryBuilder
	logger  *zap.Logger
	logged  logonce.Causes
}

func newTelemetry(set component.TelemetrySettings, tracked func() (runs, devices int)) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		builder.RegisterGpuTrainingRunsTrackedCallback(func(_ context.Context, o metric.Int64Observer) error {
			runs, _ := tracked()
			o.Observe(int64(runs))
			return nil
		}),
		builder.RegisterGpuTrainingDevicesTrackedCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, devices := tracked()
			o.Observe(int64(devices))
			return nil
		}),
	)
	if err != nil {
		builder.Shutdown()
		return nil, err
	}
	return &telemetry{builder: builder, logger: set.Logger}, nil
}

func (t *telemetry) shutdown() { t.builder.Shutdown() }

// remedies are what to do about points that are left out. Late points are no fault.
var remedies = map[training.Refusal]string{
	training.WrongKind:    "send counters and histograms as the reference of training has them",
	training.WrongUnit:    "send durations in seconds",
	training.OutOfRange:   "send finite values, and count others in training.nonfinite",
	training.OtherRank:    "let one rank send",
	training.OtherProcess: "let one process of the run send, or state training.rank on the points",
	training.Clock:        "the clock of the job was set, or its points are delayed",
	training.NoHolder:     "let the agent add the pod's service, or let the job state slurm.job.id",
	training.LimitRuns:    "raise max_runs",
	training.LimitDevs:    "raise max_devices",
	training.LimitSeries:  "send tokens and durations without attributes that change",
}

func (t *telemetry) observed(ctx context.Context, now time.Time, tally *training.Tally) {
	for why, n := range tally.Refused {
		if why == training.LimitRuns || why == training.LimitDevs || why == training.LimitSeries {
			t.builder.GpuTrainingLimitRefusals.Add(ctx, int64(n), attributed("limit", string(why)))
		} else {
			t.builder.GpuTrainingPointsRefused.Add(ctx, int64(n), attributed("reason", string(why)))
		}
		if remedy := remedies[why]; remedy != "" {
			t.warn(now, string(why), "points of training are left out: "+remedy, zap.String("reason", string(why)), zap.String("metric", tally.Examples[why]))
		}
	}
}

// causes are why a run has no MFU, where someone can do something about it.
var causes = map[training.Reason]string{
	training.SeveralRuns:   "several runs share the devices of one service: give each a service.name",
	training.NoModel:       "the job sends no figures of its model",
	training.NoPrecision:   "the job states no training.precision",
	training.FP8:           "a run in fp8 has no single peak: fp8_peak chooses one",
	training.UnknownDevice: "the peak of a device is not known: add its model to models",
	training.SilentDevice:  "nothing arrives of a device that the run holds: look at its node's collector",
	training.NoPeak:        "the peak of the devices at this precision is not known: add their model to models",
	training.Implausible:   "the figure is above 1: tokens of each rank in place of the global batch, input embeddings counted as parameters, or another precision than stated",
}

func (t *telemetry) evaluated(ctx context.Context, now time.Time, all []training.Figures) {
	for i := range all {
		f := &all[i]
		if f.Reason == training.Fine || !f.Changed {
			continue
		}
		t.builder.GpuTrainingMfuAbsent.Add(ctx, 1, attributed("reason", string(f.Reason)))
		if cause := causes[f.Reason]; cause != "" {
			fields := []zap.Field{
				zap.String("reason", string(f.Reason)), zap.String("namespace", f.Holder.Namespace), zap.String("service", f.Holder.Service),
				zap.String("job", f.Holder.Job), zap.String("run", f.Run),
			}
			if f.Reason == training.Implausible {
				fields = append(fields, zap.Float64("value", f.Value))
			}
			t.warn(now, "mfu_"+string(f.Reason), "a training run has no MFU: "+cause, fields...)
		}
	}
}

func (t *telemetry) failed(ctx context.Context, now time.Time, err error) {
	t.builder.GpuTrainingEvaluationsFailed.Add(ctx, 1)
	t.warn(now, "evaluation_failed", "the next component refused an evaluation", zap.Error(err))
}

func attributed(key, value string) metric.AddOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

// warn logs a cause that lasts once in logonce.Every.
func (t *telemetry) warn(now time.Time, cause, message string, fields ...zap.Field) {
	if t.logged.Due(cause, now) {
		t.logger.Warn(message, fields...)
	}
}
