// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/dispatch"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/send"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/spool"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
)

// restorer resumes the deliveries that an earlier process left.
type restorer struct {
	store *spool.Store
	set   *dispatch.Set
	retry delivery.RetryConfig
	// recorded returns when the deliveries of the attempts with these record ids are
	// tried again, for the attempts that have a record.
	recorded func(ids []string) map[string]time.Time
	report   func(*delivery.Delivery, *audit.Record)
	restored func(*delivery.Delivery) // counts
}

// deliveries queues the deliveries in their order.
func (x *restorer) deliveries(found []*delivery.Delivery) {
	var intents []string
	for _, d := range found {
		if d.Intent != nil {
			intents = append(intents, d.Intent.Record)
		}
	}
	var recorded map[string]time.Time
	if len(intents) > 0 {
		recorded = x.recorded(intents)
	}
	now := time.Now()
	for _, d := range found {
		r := x.set.Find(d.Endpoint)
		if d.Intent != nil && !x.resume(d, r, recorded, now) {
			x.store.Remove(d)
			continue
		}
		if r == nil {
			rec := d.Record(eventrecord.NewID(), now)
			rec.Receiver = d.Endpoint
			rec.MaxAttempts = x.retry.Attempts()
			rec.Outcome, rec.ErrorType = audit.Dropped, audit.ErrorConfig
			x.report(d, rec)
			x.store.Remove(d)
			continue
		}
		// A clock that was set back must not make a wait of days out of one of
		// minutes.
		if latest := now.Add(max(x.retry.MaxInterval, send.MaxRetryAfter)); d.Next.After(latest) {
			d.Next = latest
		}
		r.Restore(d, now)
		x.restored(d)
	}
}

// resume continues an attempt that was under way when the process ended, and
// reports whether the delivery is tried again. If the attempt has its record, the
// record decides: nothing is sent again after a record that ends the delivery, and
// what a record promised to try again is. Else the attempt was interrupted, and gets
// its record now.
func (x *restorer) resume(d *delivery.Delivery, r *dispatch.Dispatcher, recorded map[string]time.Time, now time.Time) bool {
	was := d.Intent
	d.Intent = nil
	next, known := recorded[was.Record]
	d.Next = next
	if !known {
		rec := d.Record(was.Record, was.Started)
		rec.Receiver = d.Endpoint
		if r != nil {
			r.Endpoint().Describe(rec)
			d.Next = x.retry.After(&d.State, audit.ErrorInterrupted, 0, 0, now)
		}
		rec.Attempt, rec.MaxAttempts = d.Attempts, x.retry.Attempts()
		rec.BodySHA256, rec.BodySize = was.BodySHA256, was.BodySize
		rec.Outcome, rec.ErrorType = audit.Failed, audit.ErrorInterrupted
		rec.NextAttempt = d.Next.UTC()
		x.report(d, rec)
	}
	if d.Next.IsZero() {
		return false
	}
	x.store.Save(d)
	return true
}
