// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter"

import (
	"context"
	"errors"
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
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// logsExporter writes events, and rows of usage apart from them.
type logsExporter struct {
	config    *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	skipped   sync.Once
	invalid   sync.Once
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
	var rows []usage.Row
	skipped := int64(0)
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				if names.UsageRecord(record.EventName()) {
					rows = e.row(ctx, rows, record)
					continue
				}
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
		e.skip(ctx, "no_event_name", skipped)
		e.skipped.Do(func() {
			e.logger.Warn("skipping log records without an event name; logged once, counted in exporter_gpu_store_skipped_records")
		})
	}
	var errs []error
	if len(events) > 0 {
		if err := e.store.AppendEvents(ctx, events); err != nil {
			errs = append(errs, consumererror.NewPermanent(err))
		}
	}
	if len(rows) > 0 {
		errs = append(errs, e.store.AppendUsage(ctx, rows)) // the same rows may come again
	}
	return errors.Join(errs...)
}

// switchedLogs are logs with a queue, but for requests with rows of usage.
type switchedLogs struct {
	exporter.Logs
	direct exporter.Logs
}

func (s *switchedLogs) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	if hasUsage(logs) {
		return s.direct.ConsumeLogs(ctx, logs)
	}
	return s.Logs.ConsumeLogs(ctx, logs)
}

func hasUsage(logs plog.Logs) bool {
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				if names.UsageRecord(record.EventName()) {
					return true
				}
			}
		}
	}
	return false
}

// row reads a row of usage.
func (e *logsExporter) row(ctx context.Context, rows []usage.Row, record plog.LogRecord) []usage.Row {
	row, err := usage.FromRecord(record)
	if err != nil {
		e.skip(ctx, "invalid_usage", 1)
		e.invalid.Do(func() {
			e.logger.Warn("skipping rows of usage that cannot be true; logged once, counted in exporter_gpu_store_skipped_records", zap.Error(err))
		})
		return rows
	}
	return append(rows, row)
}

func (e *logsExporter) skip(ctx context.Context, reason string, n int64) {
	e.telemetry.ExporterGpuStoreSkippedRecords.Add(ctx, n, metric.WithAttributes(attribute.String("reason", reason)))
}
