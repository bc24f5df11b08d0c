// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/diskfault"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/journal"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/usagelog"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// defaultLimit is how many entries a query without a limit returns.
const defaultLimit = 100

// eventLog is the log of events and deliveries, and that of usage: each apart, so that
// many deliveries do not push out events.
type eventLog struct {
	directory  string
	events     *journal.Journal[store.Event]
	deliveries *journal.Journal[store.Delivery]
	usage      *usagelog.Log // nil: none is kept
	turns      chan struct{} // of queries of usage that run
	timeout    time.Duration // of one
	count      func(part store.Part, reason string, n int)
	failed     func(part store.Part, reason string, n int, err error)
}

// kinds are what metrics call the parts of the log.
var kinds = map[store.Part]string{store.Events: "event", store.Deliveries: "delivery", store.UsageRows: "usage"}

func openLog(directory string, c LogConfig, q QueryConfig, h *health, telemetry *metadata.TelemetryBuilder) (*eventLog, error) {
	l := &eventLog{directory: directory, turns: make(chan struct{}, q.MaxConcurrent), timeout: q.Timeout}
	l.count = func(part store.Part, reason string, n int) {
		telemetry.ExtensionGpuStoreLogFailures.Add(context.Background(), int64(n),
			metric.WithAttributes(attribute.String("kind", kinds[part]), attribute.String("reason", reason)))
	}
	l.failed = func(part store.Part, reason string, n int, err error) {
		l.count(part, reason, n)
		if reason == "damaged" {
			h.logger.Error("entries of the log cannot be read and are left out; extension_gpu_store_log_failures counts them",
				zap.String("part", string(part)), zap.Int("entries", n), zap.String("directory", directory))
			return
		}
		h.failed(part, n, diskfault.Explain(directory, err))
	}
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
	if c.MaxUsageBytes == 0 {
		return l, nil
	}
	if l.usage, err = usagelog.Open(usagelog.Options{
		Directory: filepath.Join(directory, "usage"), MaxBytes: c.MaxUsageBytes, Hours: c.UsageHours, Days: c.UsageDays,
		Refused: func(why store.Refusal, n int, err error) {
			l.count(store.UsageRows, string(why), n)
			h.refusedRows(why, n, err)
		},
		Failed:  func(n int, err error) { l.failed(store.UsageRows, "write_failed", n, err) },
		Written: func() { h.written(store.UsageRows) },
		Damaged: func(n int) { l.failed(store.UsageRows, "damaged", n, nil) },
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("directory: the log of usage cannot be opened: %w", err), l.events.Close(), l.deliveries.Close())
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

// queryUsage runs a query when it has a turn.
func (l *eventLog) queryUsage(ctx context.Context, q store.UsageQuery, each func(*usage.Row)) error {
	if l.usage == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	select {
	case l.turns <- struct{}{}:
		defer func() { <-l.turns }()
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return store.Errorf(store.Busy, "%d queries of usage are running, and none ended within %v; try again later", cap(l.turns), l.timeout)
		}
		return canceled()
	}
	switch err := l.usage.Query(ctx, q, each); {
	case errors.Is(err, context.DeadlineExceeded):
		return store.Errorf(store.Timeout, "the query took longer than it may (query::timeout is %v)", l.timeout)
	case err != nil:
		return canceled()
	}
	return nil
}

func canceled() error { return store.Errorf(store.Canceled, "the query was canceled") }

func limit(n int) int {
	if n <= 0 {
		return defaultLimit
	}
	return n
}

// retry writes what could not be written before.
func (l *eventLog) retry(now time.Time) {
	l.events.Retry()
	l.deliveries.Retry()
	if l.usage != nil {
		l.usage.Retry(now)
	}
}

func (l *eventLog) close() error {
	errs := []error{l.events.Close(), l.deliveries.Close()}
	if l.usage != nil {
		errs = append(errs, l.usage.Close())
	}
	return errors.Join(errs...)
}
