// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/journal"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// defaultLimit is how many entries a query returns that does not say.
const defaultLimit = 100

// eventLog is the log of events and deliveries: a journal of each, so that many
// deliveries do not push out events.
type eventLog struct {
	events     *journal.Journal[store.Event]
	deliveries *journal.Journal[store.Delivery]
	failed     func(kind, reason string, n int, err error)
}

func openLog(directory string, c LogConfig, logger *zap.Logger, telemetry *metadata.TelemetryBuilder) (*eventLog, error) {
	told := newSaid()
	l := &eventLog{failed: func(kind, reason string, n int, err error) {
		telemetry.ExtensionGpuStoreLogFailures.Add(context.Background(), int64(n),
			metric.WithAttributes(attribute.String("kind", kind), attribute.String("reason", reason)))
		if told.first(kind+reason, time.Now()) {
			logger.Error("The log of events and deliveries is not complete on disk; extension_gpu_store_log_failures counts what is missing.",
				zap.String("kind", kind), zap.String("reason", reason), zap.Int("entries", n), zap.Error(err))
		}
	}}
	var err error
	if l.events, err = journal.Open(journal.Options[store.Event]{
		Directory: directory, Name: "events", MaxEntries: c.MaxEvents, MaxBytes: c.MaxBytes,
		ID:       func(e *store.Event) string { return e.ID },
		Sequence: func(e *store.Event) *uint64 { return &e.Sequence },
		Failed:   func(n int, err error) { l.failed("event", "write_failed", n, err) },
		Damaged:  func(n int) { l.failed("event", "damaged", n, errors.New("lines cannot be read")) },
	}); err != nil {
		return nil, fmt.Errorf("directory: the log of events cannot be opened: %w", err)
	}
	if l.deliveries, err = journal.Open(journal.Options[store.Delivery]{
		Directory: directory, Name: "deliveries", MaxEntries: c.MaxDeliveries, MaxBytes: c.MaxBytes,
		ID:       func(d *store.Delivery) string { return d.ID },
		Sequence: func(d *store.Delivery) *uint64 { return &d.Sequence },
		Failed:   func(n int, err error) { l.failed("delivery", "write_failed", n, err) },
		Damaged:  func(n int) { l.failed("delivery", "damaged", n, errors.New("lines cannot be read")) },
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("directory: the log of deliveries cannot be opened: %w", err), l.events.Close())
	}
	return l, nil
}

func (l *eventLog) appendEvents(ctx context.Context, events []*store.Event) error {
	err := l.events.AppendAndWait(ctx, events...)
	if errors.Is(err, journal.ErrBusy) {
		l.failed("event", "busy", len(events), err)
	}
	return err
}

func (l *eventLog) write(sequence uint64, r *audit.Record) {
	if err := l.deliveries.Append(store.NewDelivery(sequence, r)); err != nil {
		l.failed("delivery", "busy", 1, err)
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

func (l *eventLog) close() error {
	return errors.Join(l.events.Close(), l.deliveries.Close())
}

// said remembers what was told to the log, so that one cause does not fill it.
type said struct {
	mu sync.Mutex
	at map[string]time.Time
}

// again is how long one cause is not told again.
const again = 10 * time.Minute

func newSaid() *said { return &said{at: map[string]time.Time{}} }

// first reports whether a cause is to be told. The number of causes is fixed.
func (s *said) first(cause string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, told := s.at[cause]; told && now.Sub(last) < again {
		return false
	}
	s.at[cause] = now
	return true
}
