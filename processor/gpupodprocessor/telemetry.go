// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/attribution"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

var (
	reasonLate    = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", "late")))
	reasonInvalid = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", "invalid")))
)

// ownTelemetry counts and logs what happens to batches.
type ownTelemetry struct {
	cfg     *Config
	builder *metadata.TelemetryBuilder
	logger  *zap.Logger
	logged  logonce.Causes
}

func newTelemetry(cfg *Config, set processor.Settings) (*ownTelemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	return &ownTelemetry{cfg: cfg, builder: builder, logger: set.Logger}, err
}

// register observes p on demand. A processor that only ends series knows no owner, and
// counts no device a second time.
func (t *ownTelemetry) register(p *gpuPod) error {
	err := errors.Join(
		t.builder.RegisterGpuPodSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			series, _ := p.counts()
			o.Observe(int64(series))
			return nil
		}),
		t.builder.RegisterGpuPodSeriesEndsDroppedCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, dropped := p.next.Kept()
			o.Observe(dropped)
			return nil
		}),
	)
	if t.cfg.OnlyEndSeries {
		return err
	}
	memory := p.pipeline.Join.Memory
	return errors.Join(
		err,
		t.builder.RegisterGpuPodDevicesCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, devices := p.counts()
			for s, n := range devices {
				if identity.Source(s) == identity.SourceSlurm && !memory.Knows(ownership.Slurm) {
					continue
				}
				o.Observe(int64(n), metric.WithAttributes(attribute.String("source", identity.Source(s).String())))
			}
			return nil
		}),
		t.builder.RegisterGpuPodDevicesUnattributedCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, devices := p.counts()
			total := 0
			for s, n := range devices {
				if identity.Source(s).Unattributed() {
					total += n
				}
			}
			o.Observe(int64(total))
			return nil
		}),
		t.builder.RegisterGpuPodAllocationAgeCallback(func(_ context.Context, o metric.Float64Observer) error {
			if age, known := memory.Age(time.Now()); known {
				o.Observe(age.Seconds())
			}
			return nil
		}),
	)
}

// account counts and logs what happened to one batch.
func (t *ownTelemetry) account(ctx context.Context, r attribution.Result) {
	if r.Ended > 0 {
		t.builder.GpuPodSeriesEnded.Add(ctx, int64(r.Ended))
	}
	if r.Untracked > 0 {
		t.builder.GpuPodPointsUntracked.Add(ctx, int64(r.Untracked))
		t.warn("max_series", "series will age, not end, when their device changes hands: max_series is reached: raise it",
			zap.Int("max_series", t.cfg.MaxSeries), zap.Int("points", r.Untracked))
	}
	if r.Refused > 0 {
		t.builder.GpuPodDevicesRefused.Add(ctx, int64(r.Refused))
		t.warn("max_devices", "devices have the owner that the exporter names, or none: max_devices is reached: raise it",
			zap.Int("max_devices", t.cfg.MaxDevices), zap.Int("devices", r.Refused))
	}
	if r.Duplicate > 0 {
		t.builder.GpuPodPointsDuplicate.Add(ctx, int64(r.Duplicate))
		if r.New {
			t.logger.Warn("two exporters report the same devices: what the second one repeats is left out",
				zap.String("owner", r.First.Name), zap.String("exporter", r.Exporter.Name), zap.String(names.HwID, r.Example),
				zap.String("remedy", "scrape each device through one exporter: otherwise its values and counters would jump"))
		}
	}
	if r.Slow > 0 {
		t.logger.Info("gpu.allocation arrives less often than max_age allows for: each snapshot is used for three of its intervals",
			zap.Duration("collection_interval", r.Slow), zap.Duration("max_age", t.cfg.MaxAge))
	}
	if r.Late > 0 {
		t.builder.GpuPodAllocationPointsRefused.Add(ctx, int64(r.Late), reasonLate)
	}
	if r.Invalid > 0 {
		t.builder.GpuPodAllocationPointsRefused.Add(ctx, int64(r.Invalid), reasonInvalid)
		t.warn("invalid", "rejected gpu.allocation points: no node, device or time, an incomplete owner, or an impossible share",
			zap.Int("points", r.Invalid))
	}
}

// warn logs a cause at most once in logonce.Every.
func (t *ownTelemetry) warn(cause, message string, fields ...zap.Field) {
	if t.logged.Due(cause, time.Now()) {
		t.logger.Warn(message, fields...)
	}
}
