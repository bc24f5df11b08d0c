// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter"

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// logsExporter writes events.
type logsExporter struct {
	config    *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	skipped   sync.Once
	store     store.Store
}

func newLogsExporter(set exporter.Settings, cfg *Config) (*logsExporter, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &logsExporter{config: cfg, logger: set.Logger, telemetry: telemetry}, nil
}

func (e *logsExporter) start(_ context.Context, host component.Host) (err error) {
	e.store, err = store.Find(host, "store", e.config.Store)
	return err
}

func (e *logsExporter) shutdown(context.Context) error {
	e.telemetry.Shutdown()
	return nil
}

func (e *logsExporter) push(ctx context.Context, logs plog.Logs) error {
	now := time.Now()
	var events []*store.Event
	skipped := int64(0)
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				event := newEvent(record, rl.Resource(), now)
				if event == nil {
					skipped++
					continue
				}
				events = append(events, event)
			}
		}
	}
	if skipped > 0 {
		e.telemetry.ExporterGpuStoreSkippedRecords.Add(ctx, skipped, metric.WithAttributes(attribute.String("reason", "no_event_name")))
		e.skipped.Do(func() {
			e.logger.Warn("skipping log records without an event name; logged once, counted in exporter_gpu_store_skipped_records")
		})
	}
	if len(events) == 0 {
		return nil
	}
	if err := e.store.AppendEvents(ctx, events); err != nil {
		return consumererror.NewPermanent(err)
	}
	return nil
}
