// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter"

import (
	"context"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/resourcetotelemetry"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter/internal/metadata"
)

// NewFactory creates the factory of the gpu_store exporter.
//
// It has a queue, so that a store that compacts or has a slow disk holds up
// no pipeline, and no retry: a full disk does not end within seconds, and what
// waited behind a retry would be late for everybody who looks at the console.
// Rows of usage have no queue: their sender keeps them, also across a restart,
// until they are on disk.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithMetrics(createMetrics, metadata.MetricsStability),
		exporter.WithLogs(createLogs, metadata.LogsStability),
	)
}

func createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	e, err := newMetricsExporter(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	next, err := exporterhelper.NewMetrics(ctx, set, cfg, e.push,
		exporterhelper.WithStart(e.start), exporterhelper.WithShutdown(e.shutdown),
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}), exporterhelper.WithQueue(cfg.(*Config).QueueConfig))
	if err != nil {
		return nil, err
	}
	// The very wrapper that prometheus_remote_write has.
	return &labeler{resourcetotelemetry.WrapMetricsExporter(resourcetotelemetry.Settings{Enabled: true}, next)}, nil
}

func createLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	e, err := newLogsExporter(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	queued, err := exporterhelper.NewLogs(ctx, set, cfg, e.push,
		exporterhelper.WithStart(e.start), exporterhelper.WithShutdown(e.shutdown),
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}), exporterhelper.WithQueue(cfg.(*Config).QueueConfig))
	if err != nil {
		return nil, err
	}
	direct, err := exporterhelper.NewLogs(ctx, set, cfg, e.push, exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}))
	return &switchedLogs{queued, direct}, err
}
