// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/dispatch"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/journal"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/known"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// offer is an event for a receiver. Only what the receiver has room for becomes
// a delivery: a flood is refused without taking memory for each.
type offer struct {
	item     *delivery.Item
	receiver *dispatch.Dispatcher
	waiter   chan<- *audit.Record // of the delivery
	delivery *delivery.Delivery   // nil: refused
	refused  audit.ErrorType
}

// ConsumeLogs accepts a delivery for every event and every receiver that wants
// it. What a receiver cannot take is dropped, counted and audited, and no reason
// for the pipeline to send everybody everything again. With a storage extension
// it returns when all is stored. Where that fails it returns too, and what was
// accepted is sent from memory: an alert matters more than its copy. The one
// error is that of an exporter that has ended. An event that is sent again, as after
// another exporter refused the batch, is accepted without a delivery.
func (e *webhookExporter) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	if e.store.Ended() {
		return journal.ErrClosed
	}
	now := time.Now()
	var items []*delivery.Item
	var offers []offer
	skipped, usage, duplicates := int64(0), int64(0), int64(0)
	batch := e.known.Begin()
	receivers := e.set.All()
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				if eventrecord.Name(record) == "" {
					skipped++
					continue
				}
				if names.UsageRecord(record.EventName()) { // thousands an hour, and no event
					usage++
					continue
				}
				matching := matching(receivers, eventrecord.Name(record))
				if len(matching) == 0 {
					continue
				}
				if id := eventrecord.ID(record); id != "" && !batch.Take(id) {
					duplicates++
					continue
				}
				wanted := wantedBy(matching, record)
				if len(wanted) == 0 {
					continue
				}
				it := e.newItem(&event.Event{Event: eventrecord.Read(record, rl.Resource(), now)})
				items = append(items, it)
				for _, r := range wanted {
					offers = append(offers, offer{item: it, receiver: r})
				}
			}
		}
	}
	e.accept(items, offers, now, batch)
	batch.End()
	if duplicates > 0 {
		e.telemetry.ExporterWebhookSkippedRecords.Add(ctx, duplicates, metric.WithAttributes(attribute.String("reason", "duplicate")))
	}
	if usage > 0 {
		e.telemetry.ExporterWebhookSkippedRecords.Add(ctx, usage, metric.WithAttributes(attribute.String("reason", "usage")))
	}
	if skipped > 0 {
		e.telemetry.ExporterWebhookSkippedRecords.Add(ctx, skipped, metric.WithAttributes(attribute.String("reason", "no_event_name")))
		e.skipOnce.Do(func() {
			e.logger.Warn("log records without an event name are not events and are skipped; logged once, the metric exporter_webhook_skipped_records counts them")
		})
	}
	return nil
}

// matching returns the receivers that want events of this name.
func matching(receivers []*dispatch.Dispatcher, name string) []*dispatch.Dispatcher {
	var out []*dispatch.Dispatcher
	for _, r := range receivers {
		if r.Matches(name) {
			out = append(out, r)
		}
	}
	return out
}

// wantedBy returns those of the receivers from which min_severity does not
// withhold the event.
func wantedBy(receivers []*dispatch.Dispatcher, record plog.LogRecord) []*dispatch.Dispatcher {
	severity := eventrecord.Severity(record)
	state := eventrecord.State(record)
	key := eventrecord.Key(record)
	var wanted []*dispatch.Dispatcher
	for _, r := range receivers {
		if !r.Withholds(severity, state, key) {
			wanted = append(wanted, r)
		}
	}
	return wanted
}

func (e *webhookExporter) newItem(ev *event.Event) *delivery.Item {
	return &delivery.Item{Event: ev, Number: e.number.Add(1)}
}

// newDelivery makes the delivery of one event.
func (e *webhookExporter) newDelivery(o offer, now time.Time) *delivery.Delivery {
	p := &delivery.Part{Item: o.item, Number: e.number.Add(1), Received: now}
	return &delivery.Delivery{Endpoint: o.receiver.Name, Parts: []*delivery.Part{p}, Waiter: o.waiter}
}

// accept stores and queues. The batch is that of events that came by themselves.
func (e *webhookExporter) accept(items []*delivery.Item, offers []offer, now time.Time, batch *known.Batch) {
	// Last: an id that is stored before the refusals have their records would keep
	// them from getting any after a kill. What min_severity withholds is known too.
	defer func() { e.store.WriteIDs(batch) }()
	if len(items) == 0 {
		return
	}
	for _, o := range offers {
		o.item.Expect(1)
	}
	var accepted []*delivery.Delivery
	for i := range offers {
		o := &offers[i]
		if o.refused = o.receiver.Reserve(); o.refused == audit.ErrorNone {
			o.delivery = e.newDelivery(*o, now)
			accepted = append(accepted, o.delivery)
		}
	}
	if !e.store.Add(items, accepted) {
		for _, d := range accepted {
			e.telemetry.ExporterWebhookUnstoredDeliveries.Add(context.Background(), 1, metric.WithAttributes(ofReceiver(d.Endpoint)))
		}
	}
	e.store.Forget(e.memory.remember(items))
	for _, o := range offers {
		if o.delivery == nil {
			d := e.newDelivery(o, now)
			d.Refused = true
			o.receiver.Refuse(d, o.refused)
		} else {
			o.receiver.Put(o.delivery)
		}
	}
}
