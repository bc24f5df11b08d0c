// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"errors"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/dispatch"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/trail"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// ofReceiver is the attribute of an endpoint's data points.
func ofReceiver(name string) attribute.KeyValue { return attribute.String("receiver", name) }

// observe registers the metrics that are read, not counted.
func observe(tb *metadata.TelemetryBuilder, set *dispatch.Set, trail *trail.Trail) error {
	each := func(value func(*dispatch.Dispatcher) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			for _, r := range set.All() {
				o.Observe(value(r), metric.WithAttributes(ofReceiver(r.Name)))
			}
			return nil
		}
	}
	audited := func(value func(audit.Stats) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			if stats, ok := trail.Stats(); ok {
				o.Observe(value(stats))
			}
			return nil
		}
	}
	return errors.Join(
		tb.RegisterExporterWebhookQueueLengthCallback(each(func(r *dispatch.Dispatcher) int64 {
			waiting, _ := r.Lengths()
			return waiting
		})),
		tb.RegisterExporterWebhookRetriesWaitingCallback(each(func(r *dispatch.Dispatcher) int64 {
			_, retries := r.Lengths()
			return retries
		})),
		tb.RegisterExporterWebhookReceiverDisabledCallback(each(func(r *dispatch.Dispatcher) int64 {
			if r.IsDisabled() {
				return 1
			}
			return 0
		})),
		tb.RegisterExporterWebhookAuditWrittenRecordsCallback(audited(func(s audit.Stats) int64 { return s.Written })),
		tb.RegisterExporterWebhookAuditLostRecordsCallback(audited(func(s audit.Stats) int64 { return s.Lost })),
		tb.RegisterExporterWebhookAuditFailuresCallback(audited(func(s audit.Stats) int64 { return s.Failures })),
		tb.RegisterExporterWebhookAuditBufferedRecordsCallback(audited(func(s audit.Stats) int64 { return s.Buffered })),
		tb.RegisterExporterWebhookAuditSetAsideCallback(audited(func(s audit.Stats) int64 { return s.SetAside })),
	)
}

// count counts what a record reports: an attempt, and deliveries that have ended.
func count(tb *metadata.TelemetryBuilder, rec *audit.Record) {
	attrs := []attribute.KeyValue{ofReceiver(rec.Receiver), attribute.String("outcome", string(rec.Outcome))}
	if rec.ErrorType != audit.ErrorNone {
		attrs = append(attrs, attribute.String(names.ErrorType, string(rec.ErrorType)))
	}
	option := metric.WithAttributeSet(attribute.NewSet(attrs...))
	if rec.Attempt > 0 {
		tb.ExporterWebhookAttempts.Add(context.Background(), 1, option)
	}
	if rec.NextAttempt.IsZero() {
		tb.ExporterWebhookDeliveries.Add(context.Background(), int64(len(rec.Events)), option)
	}
}

// storageStatus reports failures of the storage extension. Deliveries go on, from
// memory.
type storageStatus struct {
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	health    *health.Report
	failing   atomic.Bool // writing
}

func (s *storageStatus) failed(operation string, err error) {
	s.telemetry.ExporterWebhookStorageFailures.Add(context.Background(), 1, metric.WithAttributes(attribute.String("operation", operation)))
	what := map[string]string{
		"open":  "the storage's file is damaged and a second one is used: what was stored there is not delivered",
		"read":  "stored deliveries cannot be read, what cannot is left behind",
		"write": "deliveries cannot be stored: they are sent from memory, and a kill would lose those that are not over; see that the storage's disk has room and answers",
	}[operation]
	if operation == "write" {
		if !s.failing.CompareAndSwap(false, true) {
			return // logged once, until it is over
		}
		s.health.Set("storage", err)
	}
	s.logger.Error(what, zap.Error(err))
}

func (s *storageStatus) recovered() {
	s.failing.Store(false)
	s.health.Set("storage", nil)
	s.logger.Info("deliveries are stored again")
}

// commonMetrics are the metrics that every exporter of the Collector has.
type commonMetrics struct {
	telemetry *metadata.TelemetryBuilder
	exporter  attribute.KeyValue
	option    metric.MeasurementOption // with exporter alone
}

func newCommonMetrics(tb *metadata.TelemetryBuilder, exporter component.ID) *commonMetrics {
	attr := attribute.String("exporter", exporter.String())
	return &commonMetrics{telemetry: tb, exporter: attr, option: metric.WithAttributeSet(attribute.NewSet(attr))}
}

// count counts the events of which this record ends the last delivery. Each event counts
// once, whatever the number of its endpoints; tests and replays do not, as they are
// no log records that were received.
func (m *commonMetrics) count(d *delivery.Delivery, rec *audit.Record) {
	if !rec.NextAttempt.IsZero() || rec.Trigger != audit.TriggerEvent {
		return
	}
	ended := d.End(rec)
	for fate, n := range ended {
		if n == 0 {
			continue
		}
		switch delivery.Fate(fate) {
		case delivery.Delivered:
			m.telemetry.ExporterSentLogRecords.Add(context.Background(), n, m.option)
		case delivery.Failed:
			m.telemetry.ExporterSendFailedLogRecords.Add(context.Background(), n, m.option)
		case delivery.Refused:
			m.telemetry.ExporterEnqueueFailedLogRecords.Add(context.Background(), n, m.option)
		}
	}
}

// observe registers the size and the capacity of the queues of all endpoints.
func (m *commonMetrics) observe(set *dispatch.Set) error {
	sum := func(value func(*dispatch.Dispatcher) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			total := int64(0)
			for _, r := range set.All() {
				total += value(r)
			}
			o.Observe(total, metric.WithAttributes(m.exporter, attribute.String("data_type", "logs")))
			return nil
		}
	}
	return errors.Join(
		m.telemetry.RegisterExporterQueueSizeCallback(sum(func(r *dispatch.Dispatcher) int64 {
			waiting, _ := r.Lengths()
			return waiting
		})),
		m.telemetry.RegisterExporterQueueCapacityCallback(sum(func(r *dispatch.Dispatcher) int64 { return int64(r.Endpoint().QueueSize) })),
	)
}
