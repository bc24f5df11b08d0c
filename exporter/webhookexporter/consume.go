// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/journal"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// offer is an event for a receiver. Only what the receiver has room for becomes
// a delivery: a flood is refused without taking memory for each.
type offer struct {
	item     *item
	receiver *receiver
	told     chan<- *audit.Record // of the delivery
	delivery *delivery            // nil: refused
	refused  audit.ErrorType
}

// ConsumeLogs accepts a delivery for every event and every receiver that wants
// it. What a receiver cannot take is dropped, counted and audited, and no reason
// for the pipeline to send everybody everything again. With a storage extension
// it returns when all is stored. Where that fails it returns too, and what was
// accepted is sent from memory: an alert matters more than its copy. The one
// error is that of an exporter that has ended.
func (e *webhookExporter) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	if e.store.ended() {
		return journal.ErrClosed
	}
	now := time.Now()
	var items []*item
	var offers []offer
	skipped := int64(0)
	receivers := e.current()
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				if eventName(record) == "" {
					skipped++
					continue
				}
				wanted := e.wantedBy(receivers, record)
				if len(wanted) == 0 {
					continue
				}
				it := e.newItem(newEvent(record, rl.Resource(), now, newID))
				items = append(items, it)
				for _, r := range wanted {
					offers = append(offers, offer{item: it, receiver: r})
				}
			}
		}
	}
	e.accept(items, offers, now)
	if skipped > 0 {
		e.telemetry.ExporterWebhookSkippedRecords.Add(ctx, skipped, metric.WithAttributes(attribute.String("reason", "no_event_name")))
		e.tellSkip.Do(func() {
			e.logger.Warn("Log records without an event name are not events and are skipped; this is said once, the metric exporter_webhook_skipped_records counts them.")
		})
	}
	return nil
}

// wantedBy returns the receivers that want the event.
func (e *webhookExporter) wantedBy(receivers []*receiver, record plog.LogRecord) []*receiver {
	name := eventName(record)
	severity := severityOf(record)
	state := textAttribute(record, names.GPUEventState, maxName)
	key := textAttribute(record, names.GPUEventKey, maxKey)
	var wanted []*receiver
	for _, r := range receivers {
		t, _ := r.current()
		if !t.filter.matches(name) {
			continue
		}
		if !r.conditions.withholds(t.filter.minSeverity, severity, state, key) {
			wanted = append(wanted, r)
		}
	}
	return wanted
}

func (e *webhookExporter) newItem(ev *event) *item {
	return &item{event: ev, number: e.number.Add(1)}
}

// newDelivery makes the delivery of one event.
func (e *webhookExporter) newDelivery(o offer, now time.Time) *delivery {
	p := &part{item: o.item, number: e.number.Add(1), received: now}
	return &delivery{parts: []*part{p}, told: o.told}
}

// accept stores and queues.
func (e *webhookExporter) accept(items []*item, offers []offer, now time.Time) {
	if len(items) == 0 {
		return
	}
	var accepted []offer
	for i := range offers {
		o := &offers[i]
		if o.refused = o.receiver.reserve(); o.refused == audit.ErrorNone {
			o.delivery = e.newDelivery(*o, now)
			accepted = append(accepted, *o)
		}
	}
	if e.store.add(items, accepted) > 0 {
		for _, o := range accepted {
			e.telemetry.ExporterWebhookUnstoredDeliveries.Add(context.Background(), 1, metric.WithAttributes(attribute.String("receiver", o.receiver.name)))
		}
	}
	e.store.forget(e.memory.remember(items))
	for _, o := range offers {
		switch {
		case o.delivery == nil:
			o.receiver.refuse(e.newDelivery(o, now), o.refused)
		case !o.receiver.queue.put(o.delivery):
			o.receiver.leave(o.delivery)
		}
	}
}
