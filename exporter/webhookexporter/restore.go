// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/journal"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/durable"
)

// openStorage opens the storage extension, if one is configured.
func (e *webhookExporter) openStorage(ctx context.Context, host component.Host) error {
	if e.config.Storage == nil {
		return nil
	}
	client, damaged, err := durable.Open(ctx, host, component.KindExporter, *e.config.Storage, e.id)
	if err != nil {
		return err
	}
	if damaged != nil {
		e.storageFailed("open", damaged)
	}
	e.store = &store{Journal: journal.New(client, e.storageFailed, e.storageRecovered)}
	return nil
}

// restore takes up what an earlier process left: deliveries that were queued,
// those that waited for their next attempt, attempts that were interrupted,
// receivers that are gone, and the events for replay.
func (e *webhookExporter) restore(ctx context.Context) error {
	s := e.store
	if s == nil {
		return nil
	}
	found, err := s.load(ctx)
	var damagedIDs int
	if err == nil {
		damagedIDs, err = e.known.Load(func(keys []string) ([][]byte, error) { return s.Read(ctx, keys) })
	}
	if err != nil {
		// What it holds is not known, and must not be written over.
		if !errors.Is(err, errOtherVersion) {
			err = fmt.Errorf("see that its disk answers and is not full; what it holds is untouched: %w", err)
		}
		return fmt.Errorf("storage: %s cannot be read: %w", *e.config.Storage, err)
	}
	if damagedIDs > 0 {
		found.damaged = append(found.damaged, fmt.Errorf("%d ids of known events make no sense", damagedIDs))
	}
	if len(found.damaged) > 0 {
		e.storageFailed("read", errors.Join(found.damaged[:min(len(found.damaged), 3)]...))
	}
	e.number.Store(max(e.number.Load(), found.next))

	receivers := map[string]*receiver{}
	for _, r := range e.current() {
		r.store = s
		receivers[r.name] = r
		t, _ := r.current()
		if print, gone := s.gone[r.name]; gone {
			if r.disabled.Store(print == t.fingerprint); !r.disabled.Load() {
				e.recordEnabling(r)
			}
		}
	}
	for _, name := range slices.Collect(maps.Keys(s.gone)) {
		if r := receivers[name]; r == nil || !r.disabled.Load() {
			s.setGone(name, "", false)
		}
	}
	e.restoreEvents(found.events)
	e.restoreDeliveries(found.deliveries, receivers)
	return nil
}

// restoreEvents keeps the last events for replay, and removes those that nobody
// needs any more.
func (e *webhookExporter) restoreEvents(items []*item) {
	for _, it := range items {
		it.needed++ // until it is forgotten
	}
	e.store.forget(e.memory.remember(items))
}

// restoreDeliveries queues the deliveries in their order.
func (e *webhookExporter) restoreDeliveries(found map[*delivery]string, receivers map[string]*receiver) {
	var intents []string
	for d := range found {
		if d.Intent != nil {
			intents = append(intents, d.Intent.Record)
		}
	}
	var recorded map[string]time.Time
	if len(intents) > 0 {
		recorded = e.trail.find(intents)
	}
	now := time.Now()
	for _, d := range slices.SortedFunc(maps.Keys(found), byNumber) {
		name := found[d]
		r := receivers[name]
		if d.Intent != nil && !e.resume(d, name, r, recorded, now) {
			e.store.remove(d)
			continue
		}
		if r == nil {
			rec := d.record(name, nil, now)
			rec.MaxAttempts = e.config.Retry.attempts()
			rec.Outcome, rec.ErrorType = audit.Dropped, audit.ErrorConfig
			e.report(rec)
			e.store.remove(d)
			continue
		}
		// A clock that was set back must not make a wait of days out of one of
		// minutes.
		if latest := now.Add(max(e.config.Retry.MaxInterval, maxRetryAfter)); d.Next.After(latest) {
			d.Next = latest
		}
		r.queue.restore(d, now)
		e.telemetry.ExporterWebhookRestoredDeliveries.Add(context.Background(), int64(len(d.parts)),
			metric.WithAttributes(attribute.String("receiver", name)))
	}
}

// resume takes up an attempt that was under way when the process ended, and
// reports whether the delivery is tried again. If the attempt has its record,
// what that says holds: nothing is sent twice after it said that the delivery
// came to its end, and what it promised to try again is. Else the attempt was
// interrupted, and gets its record now.
func (e *webhookExporter) resume(d *delivery, name string, r *receiver, recorded map[string]time.Time, now time.Time) bool {
	was := d.Intent
	d.Intent = nil
	next, known := recorded[was.Record]
	d.Next = next
	if !known {
		var t *target
		if r != nil {
			t, _ = r.current()
			d.Next = e.config.Retry.after(&d.state, audit.ErrorInterrupted, 0, 0, now)
		}
		rec := d.record(name, t, was.Started)
		rec.ID = was.Record
		rec.Attempt, rec.MaxAttempts = d.Attempts, e.config.Retry.attempts()
		rec.BodySHA256, rec.BodySize = was.BodySHA256, was.BodySize
		rec.Outcome, rec.ErrorType = audit.Failed, audit.ErrorInterrupted
		rec.NextAttempt = d.Next.UTC()
		e.report(rec)
	}
	if d.Next.IsZero() {
		return false
	}
	e.store.save(name, d)
	return true
}

// storageFailed counts and logs. Deliveries go on, from memory.
func (e *webhookExporter) storageFailed(operation string, err error) {
	e.telemetry.ExporterWebhookStorageFailures.Add(context.Background(), 1, metric.WithAttributes(attribute.String("operation", operation)))
	what := map[string]string{
		"open":  "the storage's file is damaged and a second one is used: what was stored there is not delivered",
		"read":  "stored deliveries cannot be read, what cannot is left behind",
		"write": "deliveries cannot be stored: they are sent from memory, and a kill would lose those that are not over; see that the storage's disk has room and answers",
	}[operation]
	if operation == "write" {
		if !e.storageFails.CompareAndSwap(false, true) {
			return // logged once, until it is over
		}
		e.health.Set("storage", err)
	}
	e.logger.Error(what, zap.Error(err))
}

func (e *webhookExporter) storageRecovered() {
	e.storageFails.Store(false)
	e.health.Set("storage", nil)
	e.logger.Info("deliveries are stored again")
}
