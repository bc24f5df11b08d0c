// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// drainTime is how long Shutdown goes on delivering what is queued if its
// context allows longer. It is well within the 30 s that Kubernetes grants.
const drainTime = 10 * time.Second

// webhookExporter sends events to its receivers.
type webhookExporter struct {
	receivers []*receiver // sorted by name
	sinks     []audit.Sink
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	tellSkip  sync.Once

	// lifetime ends when Shutdown gives up waiting; endLife ends it.
	lifetime context.Context
	endLife  context.CancelFunc
	workers  sync.WaitGroup

	// mu keeps Shutdown from closing a queue that ConsumeLogs writes to.
	// ConsumeLogs never waits while it holds it.
	mu      sync.RWMutex
	stopped bool
}

var _ exporter.Logs = (*webhookExporter)(nil)

func newExporter(set exporter.Settings, cfg *Config, env environment) (*webhookExporter, error) {
	g, err := newGuard(cfg.AllowCIDRs, cfg.AllowPorts)
	if err != nil {
		return nil, err
	}
	e := &webhookExporter{logger: set.Logger, sinks: []audit.Sink{logSink{set.Logger}}}
	for _, name := range slices.Sorted(maps.Keys(cfg.Receivers)) {
		t, err := newTarget(name, cfg.Receivers[name])
		if err != nil {
			return nil, err
		}
		e.receivers = append(e.receivers, newReceiver(t))
	}
	if e.telemetry, err = metadata.NewTelemetryBuilder(set.TelemetrySettings); err != nil {
		return nil, err
	}
	e.lifetime, e.endLife = context.WithCancel(context.Background())
	for _, r := range e.receivers {
		r.transport = newTransport(r.target, g, env)
		r.lifetime = e.lifetime
		r.report = e.report
		r.logger = set.Logger
		r.userAgent = userAgent(set.BuildInfo)
	}
	return e, nil
}

func userAgent(b component.BuildInfo) string {
	return b.Command + "/" + b.Version
}

// Start starts the workers.
func (e *webhookExporter) Start(context.Context, component.Host) error {
	err := errors.Join(
		e.telemetry.RegisterExporterWebhookQueueLengthCallback(func(_ context.Context, o metric.Int64Observer) error {
			for _, r := range e.receivers {
				o.Observe(r.queued.Load(), metric.WithAttributes(attribute.String("receiver", r.name)))
			}
			return nil
		}),
		e.telemetry.RegisterExporterWebhookReceiverDisabledCallback(func(_ context.Context, o metric.Int64Observer) error {
			for _, r := range e.receivers {
				disabled := int64(0)
				if r.disabled.Load() {
					disabled = 1
				}
				o.Observe(disabled, metric.WithAttributes(attribute.String("receiver", r.name)))
			}
			return nil
		}),
	)
	if err != nil {
		return err
	}
	for _, r := range e.receivers {
		for _, queue := range r.queues {
			e.workers.Go(func() { r.work(queue) })
		}
	}
	return nil
}

// Capabilities says that the exporter only reads what it is given.
func (*webhookExporter) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// refusal is a delivery that could not be queued.
type refusal struct {
	receiver *receiver
	delivery delivery
	why      audit.ErrorType
}

// ConsumeLogs queues a delivery for every event and every receiver that wants
// it. It always returns nil: what a receiver cannot take is dropped, counted
// and audited, and no reason for the pipeline to send everybody everything
// again.
func (e *webhookExporter) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	now := time.Now()
	var refused []refusal
	skipped := int64(0)

	e.mu.RLock()
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				if eventName(record) == "" {
					skipped++
					continue
				}
				refused = append(refused, e.queue(record, rl.Resource(), now)...)
			}
		}
	}
	e.mu.RUnlock()

	for _, f := range refused {
		f.receiver.drop(f.delivery, f.why)
	}
	if skipped > 0 {
		e.telemetry.ExporterWebhookSkippedRecords.Add(ctx, skipped, metric.WithAttributes(attribute.String("reason", "no_event_name")))
		e.tellSkip.Do(func() {
			e.logger.Warn("Log records without an event name are not events and are skipped; this is said once, the metric exporter_webhook_skipped_records counts them.")
		})
	}
	return nil
}

// queue offers the event to the receivers that want it, and returns the
// refusals. The caller holds e.mu for reading.
func (e *webhookExporter) queue(record plog.LogRecord, resource pcommon.Resource, now time.Time) []refusal {
	name := eventName(record)
	severity := severityOf(record)
	state := textAttribute(record, names.GPUEventState, maxName)
	key := textAttribute(record, names.GPUEventKey, maxKey)
	var refused []refusal
	var ev *event // copied once, if anybody wants it
	for _, r := range e.receivers {
		if !r.filter.matches(name) || r.conditions.withholds(r.filter.minSeverity, severity, state, key) {
			continue
		}
		if ev == nil {
			ev = newEvent(record, resource, now, newID)
		}
		d := delivery{event: ev, received: now}
		why := audit.ErrorShutdown
		if !e.stopped {
			why = r.offer(d)
		}
		if why != audit.ErrorNone {
			refused = append(refused, refusal{r, d, why})
		}
	}
	return refused
}

// report counts the delivery and hands its record to the sinks.
func (e *webhookExporter) report(rec *audit.Record) {
	attrs := []attribute.KeyValue{
		attribute.String("receiver", rec.Receiver),
		attribute.String("outcome", string(rec.Outcome)),
	}
	if rec.ErrorType != audit.ErrorNone {
		attrs = append(attrs, attribute.String(names.ErrorType, string(rec.ErrorType)))
	}
	e.telemetry.ExporterWebhookDeliveries.Add(context.Background(), 1, metric.WithAttributes(attrs...))
	for _, sink := range e.sinks {
		sink.Write(rec)
	}
}

// Shutdown takes nothing more, delivers what is queued until ctx ends (or 10 s
// are over), then breaks off what is on its way. Whatever was not delivered has
// its audit record when Shutdown returns.
func (e *webhookExporter) Shutdown(ctx context.Context) error {
	e.mu.Lock()
	first := !e.stopped
	e.stopped = true
	if first {
		for _, r := range e.receivers {
			for _, queue := range r.queues {
				close(queue)
			}
		}
	}
	e.mu.Unlock()
	if !first {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	stop := context.AfterFunc(ctx, e.endLife)
	e.workers.Wait()
	stop()
	e.endLife()
	for _, r := range e.receivers {
		r.transport.CloseIdleConnections()
	}
	e.telemetry.Shutdown()
	return nil
}
