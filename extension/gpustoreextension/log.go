// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/diskfault"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/journal"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// defaultLimit is how many entries a query without a limit returns.
const defaultLimit = 100

// eventLog is the log of events and deliveries: a journal of each, so that many
// deliveries do not push out events.
type eventLog struct {
	directory  string
	events     *journal.Journal[store.Event]
	deliveries *journal.Journal[store.Delivery]
	failed     func(part store.Part, reason string, n int, err error)
}

// kinds are what metrics call the parts of the log.
var kinds = map[store.Part]string{store.Events: "event", store.Deliveries: "delivery"}

func openLog(directory string, c LogConfig, h *health, telemetry *metadata.TelemetryBuilder) (*eventLog, error) {
	l := &eventLog{directory: directory, failed: func(part store.Part, reason string, n int, err error) {
		telemetry.ExtensionGpuStoreLogFailures.Add(context.Background(), int64(n),
			metric.WithAttributes(attribute.String("kind", kinds[part]), attribute.String("reason", reason)))
		if reason == "damaged" {
			h.logger.Error("entries of the log cannot be read and are left out; extension_gpu_store_log_failures counts them",
				zap.String("part", string(part)), zap.Int("entries", n), zap.String("directory", directory))
			return
		}
		h.failed(part, n, diskfault.Explain(directory, err))
	}}
	var err error
	if l.events, err = journal.Open(journal.Options[store.Event]{
		Directory: directory, Name: "events", MaxEntries: c.MaxEvents, MaxBytes: c.MaxBytes,
		ID:       func(e *store.Event) string { return e.ID },
		Sequence: func(e *store.Event) *uint64 { return &e.Sequence },
		Standing: (*store.Event).Condition,
		Failed:   func(n int, err error) { l.failed(store.Events, "write_failed", n, err) },
		Written:  func() { h.written(store.Events) },
		Damaged:  func(n int) { l.failed(store.Events, "damaged", n, nil) },
	}); err != nil {
		return nil, fmt.Errorf("directory: the log of events cannot be opened: %w", err)
	}
	if l.deliveries, err = journal.Open(journal.Options[store.Delivery]{
		Directory: directory, Name: "deliveries", MaxEntries: c.MaxDeliveries, MaxBytes: c.MaxBytes,
		ID:       func(d *store.Delivery) string { return d.ID },
		Sequence: func(d *store.Delivery) *uint64 { return &d.Sequence },
		Failed:   func(n int, err error) { l.failed(store.Deliveries, "write_failed", n, err) },
		Written:  func() { h.written(store.Deliveries) },
		Damaged:  func(n int) { l.failed(store.Deliveries, "damaged", n, nil) },
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("directory: the log of deliveries cannot be opened: %w", err), l.events.Close())
	}
	return l, nil
}

func (l *eventLog) appendEvents(ctx context.Context, events []*store.Event) error {
	err := l.events.AppendAndWait(ctx, events...)
	if errors.Is(err, journal.ErrBusy) {
		l.failed(store.Events, "busy", len(events), err)
	}
	return diskfault.Explain(l.directory, err)
}

func (l *eventLog) write(sequence uint64, r *audit.Record) {
	if err := l.deliveries.Append(store.NewDelivery(sequence, r)); err != nil {
		l.failed(store.Deliveries, "busy", 1, err)
	}
}

func (l *eventLog) queryEvents(q store.EventQuery) []*store.Event {
	return l.events.Newest(q.Before, limit(q.Limit), q.Match)
}

func (l *eventLog) queryDeliveries(q store.DeliveryQuery) []*store.Delivery {
	return l.deliveries.Newest(q.Before, limit(q.Limit), func(d *store.Delivery) bool {
		return (q.EventID == "" || slices.Contains(d.EventIDs, q.EventID)) && (q.Match == nil || q.Match(d))
	})
}

func limit(n int) int {
	if n <= 0 {
		return defaultLimit
	}
	return n
}

// retry writes what could not be written before.
func (l *eventLog) retry() {
	l.events.Retry()
	l.deliveries.Retry()
}

func (l *eventLog) close() error {
	return errors.Join(l.events.Close(), l.deliveries.Close())
}
