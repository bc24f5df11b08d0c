// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// offer is a delivery of one part, and to whom.
type offer struct {
	*delivery
	receiver *receiver
}

// ConsumeLogs accepts a delivery for every event and every receiver that wants
// it. What a receiver cannot take is dropped, counted and audited, and no reason
// for the pipeline to send everybody everything again. With a storage extension
// it returns when all is stored, or an error: then nothing was accepted, and the
// sender has to try again.
func (e *webhookExporter) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
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
				wanted := wantedBy(receivers, record)
				if len(wanted) == 0 {
					continue
				}
				it := e.newItem(newEvent(record, rl.Resource(), now, newID))
				items = append(items, it)
				for _, r := range wanted {
					offers = append(offers, e.newOffer(r, it, now))
				}
			}
		}
	}
	if err := e.accept(items, offers); err != nil {
		return err
	}
	if skipped > 0 {
		e.telemetry.ExporterWebhookSkippedRecords.Add(ctx, skipped, metric.WithAttributes(attribute.String("reason", "no_event_name")))
		e.tellSkip.Do(func() {
			e.logger.Warn("Log records without an event name are not events and are skipped; this is said once, the metric exporter_webhook_skipped_records counts them.")
		})
	}
	return nil
}

// wantedBy returns the receivers that want the event.
func wantedBy(receivers []*receiver, record plog.LogRecord) []*receiver {
	name := eventName(record)
	severity := severityOf(record)
	state := textAttribute(record, names.GPUEventState, maxName)
	key := textAttribute(record, names.GPUEventKey, maxKey)
	var wanted []*receiver
	for _, r := range receivers {
		t, _ := r.current()
		if t.filter.matches(name) && !r.conditions.withholds(t.filter.minSeverity, severity, state, key) {
			wanted = append(wanted, r)
		}
	}
	return wanted
}

func (e *webhookExporter) newItem(ev *event) *item {
	return &item{event: ev, number: e.number.Add(1)}
}

func (e *webhookExporter) newOffer(r *receiver, it *item, now time.Time) offer {
	p := &part{item: it, number: e.number.Add(1), received: now}
	return offer{&delivery{parts: []*part{p}}, r}
}

// accept stores and queues. After an error it has done nothing.
func (e *webhookExporter) accept(items []*item, offers []offer) error {
	if len(items) == 0 {
		return nil
	}
	accepted := make([]offer, 0, len(offers))
	refused := make([]audit.ErrorType, len(offers))
	for i, o := range offers {
		if refused[i] = o.receiver.reserve(); refused[i] == audit.ErrorNone {
			accepted = append(accepted, o)
		}
	}
	if err := e.store.add(items, accepted); err != nil {
		e.store.withdraw(items, accepted)
		for _, o := range accepted {
			o.receiver.queue.release()
		}
		return fmt.Errorf("events cannot be stored, so none of them was accepted: %w", err)
	}
	e.store.forget(e.memory.remember(items))
	for i, o := range offers {
		switch {
		case refused[i] != audit.ErrorNone:
			o.receiver.refuse(o.delivery, refused[i])
		case !o.receiver.queue.put(o.delivery):
			o.receiver.leave(o.delivery)
		}
	}
	return nil
}
