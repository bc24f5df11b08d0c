// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/diskfault"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// What the extension adds to its engine: it counts.

// Instant evaluates a PromQL expression at one time.
func (g *gpuStore) Instant(ctx context.Context, query string, at time.Time) (r *store.Result, err error) {
	defer g.count(ctx, time.Now(), &err)
	return g.engine.Instant(ctx, query, at)
}

// Range evaluates a PromQL expression at every step of a range.
func (g *gpuStore) Range(ctx context.Context, query string, r store.Range) (result *store.Result, err error) {
	defer g.count(ctx, time.Now(), &err)
	return g.engine.Range(ctx, query, r)
}

// Series returns the labels of series.
func (g *gpuStore) Series(ctx context.Context, s store.Selection) (found []model.LabelSet, w store.Warnings, err error) {
	defer g.count(ctx, time.Now(), &err)
	return g.engine.Series(ctx, s)
}

// LabelNames returns the names of labels.
func (g *gpuStore) LabelNames(ctx context.Context, s store.Selection) (found []string, w store.Warnings, err error) {
	defer g.count(ctx, time.Now(), &err)
	return g.engine.LabelNames(ctx, s)
}

// LabelValues returns the values of a label.
func (g *gpuStore) LabelValues(ctx context.Context, label string, s store.Selection) (found []string, w store.Warnings, err error) {
	defer g.count(ctx, time.Now(), &err)
	return g.engine.LabelValues(ctx, label, s)
}

// Metadata returns type, unit and help of metrics.
func (g *gpuStore) Metadata(ctx context.Context, name string, limit int) (found map[string][]store.Metadata, err error) {
	return g.engine.Metadata(ctx, name, limit)
}

// Health is nil if the store can be read and written.
func (g *gpuStore) Health(ctx context.Context) error { return g.engine.Health(ctx) }

// Info describes the store.
func (g *gpuStore) Info() store.Info { return g.engine.Info() }

// Describe keeps metadata.
func (g *gpuStore) Describe(families map[string]store.Metadata) { g.engine.Describe(families) }

// count counts a query.
func (g *gpuStore) count(ctx context.Context, began time.Time, err *error) {
	outcome := "ok"
	if *err != nil {
		outcome = string(store.KindOf(*err))
	}
	ctx = context.WithoutCancel(ctx)
	g.telemetry.ExtensionGpuStoreQueries.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
	g.telemetry.ExtensionGpuStoreQueryDuration.Record(ctx, time.Since(began).Seconds())
}

// Append stores samples.
func (g *gpuStore) Append(ctx context.Context, series []store.Series) (store.Appended, error) {
	a, err := g.engine.Append(ctx, series)
	return g.appended(ctx, series, a, err)
}

// AppendWithin stores samples of a writer with a share.
func (g *gpuStore) AppendWithin(ctx context.Context, series []store.Series, maxSeries int) (store.Appended, error) {
	a, err := g.engine.AppendWithin(ctx, series, maxSeries)
	return g.appended(ctx, series, a, err)
}

// appended counts what became of samples. What goes beyond its writer's share is the
// writer's to count: it proves nothing about the store.
func (g *gpuStore) appended(ctx context.Context, series []store.Series, a store.Appended, err error) (store.Appended, error) {
	if err != nil {
		if store.KindOf(err) == store.Internal {
			for _, s := range series {
				a.Refuse(store.WriteFailed, len(s.Samples)+len(s.Histograms))
			}
			g.health.failed(store.Samples, a.Refused[store.WriteFailed], err)
		}
	} else {
		g.telemetry.ExtensionGpuStoreSamples.Add(ctx, int64(a.Stored))
		if a.Stored > 0 {
			g.health.written(store.Samples)
		}
	}
	for why, n := range a.Refused {
		if why == store.ShareLimit {
			continue
		}
		g.telemetry.ExtensionGpuStoreSamplesRefused.Add(ctx, int64(n), metric.WithAttributes(attribute.String("reason", string(why))))
		if why != store.WriteFailed {
			g.health.refused(why, n, g.meaningOf(why))
		}
	}
	return a, err
}

// meaning returns what a refusal means, and what to do.
var meaning = map[store.Refusal]string{
	store.OutOfOrder:   "they are older than the newest sample of their series by more than out_of_order_window",
	store.Duplicate:    "their series has another value for that time already; two senders may have the same labels",
	store.TooOld:       "they are older than retention or out_of_order_window allows; a clock may be wrong",
	store.TooNew:       "they are more than 10 minutes ahead of this machine's clock; one of the clocks is wrong",
	store.Invalid:      "their labels or histograms are not what Prometheus allows",
	store.TooLarge:     "their labels are longer than 32 KiB together",
	store.SeriesLimit:  "max_series is reached, so GPUs, pods and services that are new are missing from what is shown; raise it, or send fewer series",
	store.StorageLimit: "max_bytes is reached by samples that are not in a block yet, so none can be deleted; raise it, or send less",
}

// meaningOf is meaning with what only the engine knows.
func (g *gpuStore) meaningOf(why store.Refusal) string {
	e, ok := g.engine.(*embedded.Engine)
	if why != store.DiskFull || !ok {
		return meaning[why]
	}
	return fmt.Sprintf("the disk of directory %s has less than %d MiB free, which the store needs to go on; make room (a max_bytes below 1 GiB needs less)", g.config.Directory, e.Needed()>>20)
}

// observe reports the sizes of the engine and of the log.
func (g *gpuStore) observe() error {
	errs := []error{g.telemetry.RegisterExtensionGpuStoreLogEntriesCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(g.log.events.Len()), metric.WithAttributes(attribute.String("kind", "event")))
		o.Observe(int64(g.log.deliveries.Len()), metric.WithAttributes(attribute.String("kind", "delivery")))
		if g.log.usage != nil {
			o.Observe(int64(g.log.usage.Len()), metric.WithAttributes(attribute.String("kind", "usage")))
		}
		return nil
	})}
	if e, ok := g.engine.(*embedded.Engine); ok {
		errs = append(errs,
			g.telemetry.RegisterExtensionGpuStoreSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(e.Stats().Series)
				return nil
			}),
			g.telemetry.RegisterExtensionGpuStoreSizeCallback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(e.Stats().Bytes)
				return nil
			}))
	}
	return errors.Join(errs...)
}

// AppendEvents keeps events.
func (g *gpuStore) AppendEvents(ctx context.Context, events []*store.Event) error {
	if g.log == nil {
		return errNotStarted()
	}
	return g.log.appendEvents(ctx, events)
}

// Events returns the newest events first.
func (g *gpuStore) Events(q store.EventQuery) []*store.Event {
	if g.log == nil {
		return nil
	}
	return g.log.queryEvents(q)
}

// Deliveries returns the newest deliveries first.
func (g *gpuStore) Deliveries(q store.DeliveryQuery) []*store.Delivery {
	if g.log == nil {
		return nil
	}
	return g.log.queryDeliveries(q)
}

// KeepAudit keeps the outcome of a delivery.
func (g *gpuStore) KeepAudit(sequence uint64, r *audit.Record) {
	if g.log != nil {
		g.log.write(sequence, r)
	}
}

// AppendUsage keeps rows of usage.
func (g *gpuStore) AppendUsage(_ context.Context, rows []usage.Row) error {
	switch {
	case g.log == nil:
		return errNotStarted()
	case g.log.usage == nil:
		return nil // the configuration wants none
	}
	return diskfault.Explain(g.config.Directory, g.log.usage.Append(g.now(), rows))
}

// QueryUsage calls each with rows of usage.
func (g *gpuStore) QueryUsage(ctx context.Context, q store.UsageQuery, each func(*usage.Row)) (err error) {
	if g.log == nil {
		return errNotStarted()
	}
	defer g.count(ctx, time.Now(), &err)
	return g.log.queryUsage(ctx, q, each)
}

// UsageSpan is what there is usage of.
func (g *gpuStore) UsageSpan() store.UsageSpan {
	if g.log == nil || g.log.usage == nil {
		return store.UsageSpan{}
	}
	return g.log.usage.Span()
}

// Problems are what the store cannot keep now, or could not a short time ago.
func (g *gpuStore) Problems() []store.Problem { return g.health.All() }
