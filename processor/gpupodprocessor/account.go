// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

var (
	reasonLate    = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", "late")))
	reasonInvalid = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", "invalid")))
)

// account tells what happened to one batch.
func (p *gpuPod) account(ctx context.Context, c counts) {
	if c.ended > 0 {
		p.telemetry.GpuPodSeriesEnded.Add(ctx, int64(c.ended))
	}
	if c.untracked > 0 {
		p.telemetry.GpuPodPointsUntracked.Add(ctx, int64(c.untracked))
		p.logger.Warn("Series will age, not end, when their device changes hands: max_series is reached: raise it",
			zap.Int("max_series", p.cfg.MaxSeries), zap.Int("points", c.untracked))
	}
	if c.refused > 0 {
		p.telemetry.GpuPodDevicesRefused.Add(ctx, int64(c.refused))
		p.logger.Warn("Devices have the holder that the exporter names, or none: max_devices is reached: raise it",
			zap.Int("max_devices", p.cfg.MaxDevices), zap.Int("devices", c.refused))
	}
	if c.duplicate > 0 {
		p.telemetry.GpuPodPointsDuplicate.Add(ctx, int64(c.duplicate))
		if c.news {
			p.told.Warn("two exporters report the same devices: what the second one repeats is left out",
				zap.String("owner", c.owner.Name), zap.String("exporter", c.exporter.Name), zap.String(names.HwID, c.example),
				zap.String("remedy", "scrape each device through one exporter: otherwise its values and counters would jump"))
		}
	}
	if c.slow > 0 {
		p.told.Info("gpu.allocation comes less often than max_age is made for: it is believed for three of its intervals",
			zap.Duration("collection_interval", c.slow), zap.Duration("max_age", p.cfg.MaxAge))
	}
	if c.late > 0 {
		p.telemetry.GpuPodAllocationPointsRefused.Add(ctx, int64(c.late), reasonLate)
	}
	if c.invalid > 0 {
		p.telemetry.GpuPodAllocationPointsRefused.Add(ctx, int64(c.invalid), reasonInvalid)
		p.logger.Warn("gpu.allocation points without node, device or time, with half a holder or with an impossible share are not believed",
			zap.Int("points", c.invalid))
	}
}
