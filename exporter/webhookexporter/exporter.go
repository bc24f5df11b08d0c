// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/journal"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/known"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/unsampled"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// drainTime is how long Shutdown goes on delivering what is queued if its
// context allows longer. It is well within the 30 s that Kubernetes grants.
const drainTime = 10 * time.Second

// minKnownEvents is how many events that are sent again are recognized at least:
// as many as gpu_events keeps for a pipeline that refuses.
const minKnownEvents = 10_000

// webhookExporter sends events to its receivers.
type webhookExporter struct {
	id        component.ID
	config    *Config
	guard     *guard
	env       environment
	userAgent string
	sinks     []audit.Sink
	trail     *auditTrail // the first of sinks
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	tellSkip  sync.Once

	health health.Report

	// storageFails is true while writing to the storage fails.
	storageFails atomic.Bool

	store  *store // nil before Start, and without a storage extension
	memory memory
	known  *known.IDs
	number atomic.Uint64 // of the next item or part

	folder  *receiversWatch // nil without receivers_dir
	control *control

	// lifetime ends when Shutdown gives up waiting; endLife ends it.
	lifetime context.Context
	endLife  context.CancelFunc
	leaving  sync.WaitGroup // receivers that were removed

	mu        sync.RWMutex
	receivers []*receiver // sorted by name; replaced, never changed
	started   bool
	stopped   bool
}

var _ exporter.Logs = (*webhookExporter)(nil)

func newExporter(set exporter.Settings, cfg *Config, env environment) (*webhookExporter, error) {
	g, err := newReach(cfg)
	if err != nil {
		return nil, err
	}
	e := &webhookExporter{
		id:        set.ID,
		config:    cfg,
		guard:     g,
		env:       env,
		userAgent: userAgent(set.BuildInfo),
		trail:     &auditTrail{courtesy: logSink{unsampled.Logger(set.Logger)}},
		logger:    set.Logger,
		memory:    memory{limit: cfg.ReplayEvents, byID: map[string]*item{}},
	}
	e.sinks = []audit.Sink{e.trail}
	var targets []*target
	for _, name := range slices.Sorted(maps.Keys(cfg.Receivers)) {
		t, err := newTarget(name, cfg.Receivers[name])
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	if e.telemetry, err = metadata.NewTelemetryBuilder(set.TelemetrySettings); err != nil {
		return nil, err
	}
	e.lifetime, e.endLife = context.WithCancel(context.Background())
	e.apply(context.Background(), targets)
	e.known = known.New(e.knownEvents())
	if cfg.ReceiversDir != "" {
		e.folder = newReceiversWatch(cfg.ReceiversDir, targets, g, e.telemetry, e.logger)
	}
	e.control = newControl(cfg.Control, e, e.telemetry, e.logger)
	return e, nil
}

func userAgent(b component.BuildInfo) string {
	return b.Command + "/" + b.Version
}

// Start opens what outlives a restart, takes up what an earlier process left, and
// starts the workers. All receivers have to be known by then: deliveries of
// others are given up.
func (e *webhookExporter) Start(ctx context.Context, host component.Host) error {
	if err := e.observe(); err != nil {
		return err
	}
	e.health.Host = host
	if err := e.openStorage(ctx, host); err != nil {
		return err
	}
	if err := e.openAudit(ctx, host); err != nil {
		return e.unopened(ctx, err)
	}
	if err := e.folder.load(ctx, e.apply); err != nil {
		return e.unopened(ctx, err)
	}
	e.known = known.New(e.knownEvents()) // the folder's are among them now
	if err := e.restore(ctx); err != nil {
		return e.unopened(ctx, err)
	}
	e.mu.Lock()
	e.started = true
	for _, r := range e.receivers {
		r.start()
	}
	e.mu.Unlock()
	e.folder.follow()
	return e.control.start()
}

// observe registers the metrics that are read, not counted.
func (e *webhookExporter) observe() error {
	of := func(r *receiver) metric.MeasurementOption {
		return metric.WithAttributes(attribute.String("receiver", r.name))
	}
	return errors.Join(
		e.telemetry.RegisterExporterWebhookQueueLengthCallback(func(_ context.Context, o metric.Int64Observer) error {
			for _, r := range e.current() {
				waiting, _ := r.queue.lengths()
				o.Observe(waiting, of(r))
			}
			return nil
		}),
		e.telemetry.RegisterExporterWebhookRetriesWaitingCallback(func(_ context.Context, o metric.Int64Observer) error {
			for _, r := range e.current() {
				_, retries := r.queue.lengths()
				o.Observe(retries, of(r))
			}
			return nil
		}),
		e.telemetry.RegisterExporterWebhookReceiverDisabledCallback(func(_ context.Context, o metric.Int64Observer) error {
			for _, r := range e.current() {
				disabled := int64(0)
				if r.disabled.Load() {
					disabled = 1
				}
				o.Observe(disabled, of(r))
			}
			return nil
		}),
	)
}

// knownEvents is how many events are recognized when they are sent again: as many
// as a queue may hold.
func (e *webhookExporter) knownEvents() int {
	n := minKnownEvents
	for _, r := range e.current() {
		t, _ := r.current()
		n = max(n, t.queueSize)
	}
	return n
}

// current returns the receivers of now.
func (e *webhookExporter) current() []*receiver {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.receivers
}

// receiver returns the one of that name, nil if there is none.
func (e *webhookExporter) receiver(name string) *receiver {
	for _, r := range e.current() {
		if r.name == name {
			return r
		}
	}
	return nil
}

// Capabilities says that the exporter only reads what it is given.
func (*webhookExporter) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// report counts attempts and deliveries that ended, and hands the record to the
// sinks.
func (e *webhookExporter) report(rec *audit.Record) {
	attrs := []attribute.KeyValue{
		attribute.String("receiver", rec.Receiver),
		attribute.String("outcome", string(rec.Outcome)),
	}
	if rec.ErrorType != audit.ErrorNone {
		attrs = append(attrs, attribute.String(names.ErrorType, string(rec.ErrorType)))
	}
	if rec.Attempt > 0 {
		e.telemetry.ExporterWebhookAttempts.Add(context.Background(), 1, metric.WithAttributes(attrs...))
	}
	if rec.NextAttempt.IsZero() {
		e.telemetry.ExporterWebhookDeliveries.Add(context.Background(), int64(len(rec.Events)), metric.WithAttributes(attrs...))
	}
	for _, sink := range e.sinks {
		sink.Write(rec)
	}
}

// Shutdown takes nothing more, delivers what is queued until ctx ends (or 10 s
// are over), then breaks off what is on its way. What was not delivered by then
// is stored for the next start, or has its audit record.
func (e *webhookExporter) Shutdown(ctx context.Context) error {
	e.mu.Lock()
	first := !e.stopped
	e.stopped = true
	receivers := e.receivers
	e.mu.Unlock()
	if !first {
		return nil
	}
	e.control.shutdown()
	e.folder.shutdown()
	drain, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	deadline, _ := drain.Deadline()
	for _, r := range receivers {
		r.close(e.store.holds, audit.ErrorShutdown, deadline)
	}
	stop := context.AfterFunc(drain, e.endLife)
	for _, r := range receivers {
		r.wait()
	}
	e.leaving.Wait()
	stop()
	e.endLife()
	err := e.closeStores(ctx)
	e.telemetry.Shutdown()
	return err
}

// unopened undoes what a start that failed had opened.
func (e *webhookExporter) unopened(ctx context.Context, err error) error {
	err = errors.Join(err, e.closeStores(ctx))
	e.store = nil
	return err
}

// closeStores closes what outlives a restart, also when ctx is over: the audit
// file first, whose last head goes into the storage.
func (e *webhookExporter) closeStores(ctx context.Context) error {
	errs := []error{e.closeAudit()}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), journal.Patience)
	defer cancel()
	if e.store != nil {
		errs = append(errs, e.store.Close(ctx))
	}
	return errors.Join(errs...)
}
