// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/control"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/dispatch"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	defaultReplayEvents = 1000
	maxReplayEvents     = 100_000

	testEventName = "gpu.webhook.test"
)

// memory keeps the last events for replay.
type memory struct {
	limit int

	mu    sync.Mutex
	items []*delivery.Item // in order of arrival
	byID  map[string]*delivery.Item
}

// remember keeps the events, and returns those that it does not keep any more,
// or never does: what was sent by hand.
func (m *memory) remember(items []*delivery.Item) (forgotten []*delivery.Item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, it := range items {
		if it.Trigger != audit.TriggerEvent {
			forgotten = append(forgotten, it)
			continue
		}
		m.items = append(m.items, it)
		m.byID[it.ID] = it
	}
	over := max(0, len(m.items)-m.limit)
	for _, it := range m.items[:over] {
		if m.byID[it.ID] == it {
			delete(m.byID, it.ID)
		}
	}
	forgotten = append(forgotten, m.items[:over]...)
	clear(m.items[:over])
	m.items = m.items[over:]
	return forgotten
}

func (m *memory) find(id string) *delivery.Item {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byID[id]
}

// Test sends a test event to the receiver and returns the record of its first
// attempt, or of giving it up.
func (e *webhookExporter) Test(ctx context.Context, name string) (*audit.Record, error) {
	r := e.set.Find(name)
	if r == nil {
		return nil, control.ErrNoReceiver
	}
	now := time.Now()
	records, err := e.trigger(ctx, &event.Event{Trigger: audit.TriggerTest, Event: eventrecord.Event{
		ID:         eventrecord.NewID(),
		Name:       testEventName,
		Key:        "webhook/test/" + r.Name,
		Message:    "This is a test of the webhook " + r.Name + ". Nothing has happened.",
		Severity:   plog.SeverityNumberInfo,
		Time:       now.UTC(),
		Attributes: map[string]any{},
		Resource:   map[string]any{},
	}}, []*dispatch.Dispatcher{r}, now)
	if err != nil {
		return nil, err
	}
	return records[0], nil
}

// Enable gives a receiver that answered 410 deliveries again, and returns the
// record of that; nil if it was enabled already.
func (e *webhookExporter) Enable(name string) (*audit.Record, error) {
	r := e.set.Find(name)
	switch {
	case r == nil:
		return nil, control.ErrNoReceiver
	case !r.Enable():
		return nil, nil
	}
	return e.recordEnabling(r), nil
}

// Replay sends a stored event again: to the receiver, whether it wants it or
// not, or to all that want it. It returns the records of the first attempts, or
// of giving up.
func (e *webhookExporter) Replay(ctx context.Context, eventID, name string) ([]*audit.Record, error) {
	kept := e.memory.find(eventID)
	if kept == nil {
		return nil, control.ErrNoEvent
	}
	var receivers []*dispatch.Dispatcher
	if name != "" {
		r := e.set.Find(name)
		if r == nil {
			return nil, control.ErrNoReceiver
		}
		receivers = append(receivers, r)
	} else {
		for _, r := range e.set.All() {
			if wants(&r.Endpoint().Filter, kept.Event) {
				receivers = append(receivers, r)
			}
		}
		if len(receivers) == 0 {
			return nil, control.ErrNotWanted
		}
	}
	again := *kept.Event
	again.Trigger = audit.TriggerReplay
	return e.trigger(ctx, &again, receivers, time.Now())
}

// trigger sends the event to the receivers and waits for a record of each.
func (e *webhookExporter) trigger(ctx context.Context, ev *event.Event, receivers []*dispatch.Dispatcher, now time.Time) ([]*audit.Record, error) {
	it := e.newItem(ev)
	waiters := make([]chan *audit.Record, len(receivers))
	offers := make([]offer, len(receivers))
	for i, r := range receivers {
		waiters[i] = make(chan *audit.Record, 1)
		offers[i] = offer{item: it, receiver: r, waiter: waiters[i]}
	}
	e.accept([]*delivery.Item{it}, offers, now, e.known.Begin())
	records := make([]*audit.Record, len(receivers))
	for i, r := range receivers {
		select {
		case records[i] = <-waiters[i]:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s has not been tried yet, it is still queued: %w", r.Name, ctx.Err())
		case <-e.lifetime.Done():
			return nil, fmt.Errorf("%s was not tried: the exporter shuts down", r.Name)
		}
	}
	return records, nil
}

// wants reports whether the event passes the filter. Whether a clearing follows
// a raising that was sent is no longer known: it is assumed to.
func wants(f *event.Filter, ev *event.Event) bool {
	return f.Matches(ev.Name) && (ev.Severity >= f.MinSeverity || ev.State == names.EventCleared)
}
