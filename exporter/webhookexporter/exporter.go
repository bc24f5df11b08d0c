// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/control"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/dispatch"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/folder"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/journal"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/known"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/send"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/spool"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/trail"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
)

// minKnownEvents is how many events that are sent again are recognized at least:
// as many as gpu_events keeps for a pipeline that refuses.
const minKnownEvents = 10_000

// environment replaces parts of the machine in tests.
type environment struct {
	egress.Network
	// transport replaces the transport of all endpoints; nil does not.
	transport send.RoundTripper
	// sinks get the audit records too.
	sinks []audit.Sink
	// auditLog replaces the audit file.
	auditLog trail.Log
	// settle and poll replace the times of the folder of receivers; 0 does not.
	settle, poll time.Duration
}

// webhookExporter sends events to its endpoints.
type webhookExporter struct {
	id        component.ID
	config    *Config
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	skipOnce  sync.Once

	trail  *trail.Trail
	sinks  []audit.Sink // the trail first
	health *health.Report
	status *storageStatus
	common *commonMetrics
	store  *spool.Store // nil before Start, and without a storage extension
	memory memory
	known  *known.IDs    // nil before Start
	number atomic.Uint64 // of the next item or part

	shared  *dispatch.Shared
	set     *dispatch.Set
	fixed   []*endpoint.Endpoint // of the configuration
	folder  *folder.Watch        // nil without receivers_dir
	control *control.Server
	// lifetime ends when Shutdown gives up waiting; endLife ends it.
	lifetime context.Context
	endLife  context.CancelFunc
}

var _ exporter.Logs = (*webhookExporter)(nil)

func newExporter(set exporter.Settings, cfg *Config, env environment) (*webhookExporter, error) {
	g, err := cfg.guard()
	if err != nil {
		return nil, err
	}
	e := &webhookExporter{
		id:     set.ID,
		config: cfg,
		logger: set.Logger,
		trail:  trail.New(set.Logger, env.auditLog),
		health: &health.Report{},
		memory: memory{limit: cfg.ReplayEvents, byID: map[string]*delivery.Item{}},
	}
	e.sinks = append([]audit.Sink{e.trail}, env.sinks...)
	for _, name := range slices.Sorted(maps.Keys(cfg.Receivers)) {
		ep, err := endpoint.New(name, cfg.Receivers[name], cfg.defaults())
		if err != nil {
			return nil, err
		}
		e.fixed = append(e.fixed, ep)
	}
	if e.telemetry, err = metadata.NewTelemetryBuilder(set.TelemetrySettings); err != nil {
		return nil, err
	}
	e.common = newCommonMetrics(e.telemetry, set.ID)
	e.status = &storageStatus{telemetry: e.telemetry, logger: e.logger, health: e.health}
	e.lifetime, e.endLife = context.WithCancel(context.Background())
	e.shared = &dispatch.Shared{
		Report:    e.report,
		Retry:     cfg.Retry,
		GroupWait: cfg.GroupWait,
		UserAgent: set.BuildInfo.Command + "/" + set.BuildInfo.Version,
		Logger:    e.logger,
		Lifetime:  e.lifetime,
		NewTransport: func(ep *endpoint.Endpoint) send.RoundTripper {
			if env.transport != nil {
				return env.transport
			}
			return egress.NewTransport(ep.Timeout, g, env.Network)
		},
	}
	e.set = dispatch.NewSet(e.shared)
	if cfg.ReceiversDir != "" {
		e.folder = folder.NewWatch(cfg.ReceiversDir, e.fixed, g, cfg.defaults(), e.telemetry, e.logger)
		e.folder.Settle, e.folder.Poll = cmp.Or(env.settle, e.folder.Settle), cmp.Or(env.poll, e.folder.Poll)
	}
	e.control = control.New(cfg.Control, e, e.telemetry, e.logger)
	return e, nil
}

// Start opens what outlives a restart, resumes what an earlier process left, and
// starts the workers. All endpoints have to be known by then: deliveries of others
// are given up.
func (e *webhookExporter) Start(ctx context.Context, host component.Host) error {
	e.health.Host = host
	if err := errors.Join(observe(e.telemetry, e.set, e.trail), e.common.observe(e.set)); err != nil {
		return err
	}
	if err := e.open(ctx, host); err != nil {
		err = errors.Join(err, e.closeStores(ctx))
		e.store, e.shared.Store = nil, nil
		return err
	}
	e.set.Start()
	e.folder.Follow()
	return e.control.Start()
}

// open opens the storage and the audit trail, and makes the endpoints.
func (e *webhookExporter) open(ctx context.Context, host component.Host) error {
	if e.config.Storage != nil {
		store, damaged, err := spool.Open(ctx, host, *e.config.Storage, e.id, e.status.failed, e.status.recovered)
		if err != nil {
			return err
		}
		if damaged != nil {
			e.status.failed("open", damaged)
		}
		e.store, e.shared.Store = store, store
	}
	if err := e.trail.Open(ctx, host, &e.config.Audit, e.store, func(err error) { e.health.Set("audit", err) }); err != nil {
		return err
	}
	if why := e.trail.SetAside(); why != nil {
		e.health.Set("audit history", fmt.Errorf("the audit log that was found at the start does not verify and was set aside: %w", why))
		e.write(&audit.Record{ID: eventrecord.NewID(), Time: time.Now().UTC(), Trigger: audit.TriggerSetAside, Outcome: audit.Failed})
	}
	e.apply(ctx, e.fixed)
	if err := e.folder.Load(ctx, e.apply); err != nil {
		return err
	}
	n := minKnownEvents // or as many as a queue may hold
	for _, r := range e.set.All() {
		n = max(n, r.Endpoint().QueueSize)
	}
	e.known = known.New(n)
	return e.restore(ctx)
}

// restore resumes what an earlier process left: deliveries that were queued, those
// that waited for their next attempt, attempts that were interrupted, endpoints
// that are gone, and the events for replay.
func (e *webhookExporter) restore(ctx context.Context) error {
	if e.store == nil {
		return nil
	}
	found, err := e.store.Load(ctx)
	if err != nil {
		return err
	}
	damagedIDs, err := e.store.LoadIDs(ctx, e.known)
	if err != nil {
		return err
	}
	if damagedIDs > 0 {
		found.Damaged = append(found.Damaged, fmt.Errorf("%d ids of known events make no sense", damagedIDs))
	}
	if len(found.Damaged) > 0 {
		e.status.failed("read", errors.Join(found.Damaged[:min(len(found.Damaged), 3)]...))
	}
	e.number.Store(max(e.number.Load(), found.Next))
	for name, fingerprint := range e.store.GoneReceivers() {
		r := e.set.Find(name)
		switch {
		case r == nil:
			e.store.SetGone(name, "", false)
		case !r.RestoreGone(fingerprint):
			e.recordEnabling(r) // its configuration has changed
		}
	}
	now := time.Now()
	for name, limit := range e.store.Limits() {
		if r := e.set.Find(name); r != nil {
			r.RestoreLimit(limit, now)
		} else {
			e.store.SetLimit(name, spool.Limit{})
		}
	}
	e.store.Forget(e.memory.remember(found.Events))
	r := restorer{
		store: e.store, set: e.set, retry: e.config.Retry, recorded: e.trail.Find, report: e.report,
		restored: func(d *delivery.Delivery) {
			e.telemetry.ExporterWebhookRestoredDeliveries.Add(ctx, int64(len(d.Parts)), metric.WithAttributes(ofReceiver(d.Endpoint)))
		},
	}
	r.deliveries(found.Deliveries)
	return nil
}

// apply makes these the exporter's endpoints.
func (e *webhookExporter) apply(_ context.Context, endpoints []*endpoint.Endpoint) {
	for _, ep := range endpoints {
		if f := e.trail.Fingerprint(&ep.Address); f != ep.URLFingerprint {
			ep.URLFingerprint = f // it is new: nothing reads it yet
		}
	}
	for _, r := range e.set.Apply(endpoints) {
		e.recordEnabling(r)
	}
}

// recordEnabling writes a record of an endpoint that answered 410 once and gets
// deliveries again.
func (e *webhookExporter) recordEnabling(r *dispatch.Dispatcher) *audit.Record {
	rec := &audit.Record{ID: eventrecord.NewID(), Time: time.Now().UTC(), Trigger: audit.TriggerEnable, Outcome: audit.Succeeded}
	r.Endpoint().Describe(rec)
	e.write(rec)
	return rec
}

// Capabilities reports that the exporter does not change the data.
func (*webhookExporter) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// report counts and writes the record of an attempt, or of giving up.
func (e *webhookExporter) report(d *delivery.Delivery, rec *audit.Record) {
	e.common.count(d, rec)
	count(e.telemetry, rec)
	e.write(rec)
}

func (e *webhookExporter) write(rec *audit.Record) {
	for _, sink := range e.sinks {
		sink.Write(rec)
	}
}

// Shutdown takes nothing more, delivers what is queued until ctx ends (or 10 s
// are over), then breaks off what is on its way. What was not delivered by then
// is stored for the next start, or has its audit record.
func (e *webhookExporter) Shutdown(ctx context.Context) error {
	if !e.set.End() {
		return nil
	}
	e.control.Shutdown()
	e.folder.Shutdown()
	drain, cancel := context.WithTimeout(ctx, dispatch.DrainTime)
	defer cancel()
	deadline, _ := drain.Deadline()
	stop := context.AfterFunc(drain, e.endLife)
	e.set.Drain(deadline)
	stop()
	e.endLife()
	err := e.closeStores(ctx)
	e.telemetry.Shutdown()
	return err
}

// closeStores closes what outlives a restart, also when ctx is over: the audit
// file first, since its last head goes into the storage.
func (e *webhookExporter) closeStores(ctx context.Context) error {
	errs := []error{e.trail.Close()}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), journal.Patience)
	defer cancel()
	if e.store != nil {
		errs = append(errs, e.store.Close(ctx))
	}
	return errors.Join(errs...)
}
