// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package appguardprocessor // import "github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor"

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/internal/reserved"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor/internal/guard"
	"github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor/internal/series"
)

// Limits of what one metric may weigh: what Prometheus keeps of it lasts.
const (
	maxName        = 256 // bytes, name and unit each
	maxDescription = 512 // runes
)

type metricsProcessor struct {
	*base
	next consumer.Metrics
}

// Start registers what is observed on demand.
func (p *metricsProcessor) Start(context.Context, component.Host) error {
	observe := func(value func() int) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			p.mu.Lock()
			n := value()
			p.mu.Unlock()
			o.Observe(int64(n))
			return nil
		}
	}
	return errors.Join(
		p.telemetry.RegisterAppGuardSeriesCallback(observe(func() int { return p.guard.Series() })),
		p.telemetry.RegisterAppGuardSendersCallback(observe(func() int { return p.guard.Senders() })),
	)
}

// ConsumeMetrics passes on what applications may send.
func (p *metricsProcessor) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	b := p.begin(ctx)
	p.mu.Lock()
	b.metrics(md)
	p.mu.Unlock()
	return b.pass(ctx, p.telemetry.AppGuardDroppedPoints, "points", md.ResourceMetrics().Len(), func() error { return p.next.ConsumeMetrics(ctx, md) })
}

func (b *batch) metrics(md pmetric.Metrics) {
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		resource := rm.Resource().Attributes()
		name, sender := b.from(resource)
		b.rename(resource, b.foreign(reserved.ResourceAttribute))
		of := series.Of(resource)
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			b.rename(sm.Scope().Attributes(), b.foreign(reserved.Attribute))
			// No label in Prometheus, but for its exporter a series of its own.
			sm.Scope().SetVersion("")
			sm.SetSchemaUrl("")
			of := of.Scope(sm.Scope())
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool { return b.metric(m, of, name, sender) })
			return sm.Metrics().Len() == 0
		})
		return rm.ScopeMetrics().Len() == 0
	})
}

// metric reports whether nothing is left of a metric.
func (b *batch) metric(m pmetric.Metric, of series.Resource, name string, sender *guard.Sender) (gone bool) {
	if len(m.Name()) > maxName || len(m.Unit()) > maxName || of.TooLarge() {
		b.drop(name, tooLarge, int64(points.Count(m)), m.Name())
		return true
	}
	family, owner, err := reserved.Metric(m)
	switch {
	case err != nil:
		b.drop(name, noName, int64(points.Count(m)), m.Name())
		return true
	case owner != reserved.Free && !(owner == reserved.Inference && b.config.AllowInference) && !slices.Contains(b.config.Allow, family):
		b.drop(name, notTheirs, int64(points.Count(m)), m.Name())
		return true
	}
	metrics := b.registry(series.Metrics(m, family), name)
	for metric, kind := range metrics {
		if !b.guard.Type(metric, kind) {
			b.drop(name, guard.Ambiguous, int64(points.Count(m)), m.Name())
			return true
		}
	}
	m.SetDescription(safetext.Strip(m.Description(), maxDescription))
	refused := map[guard.Verdict]int64{}
	left := of.RemoveIf(m, family, func(attributes pcommon.Map) { b.rename(attributes, b.foreign(reserved.Attribute)) },
		func(p series.Point) bool {
			verdict := guard.Admitted
			switch {
			case p.TooLarge:
				verdict = tooLarge
			case p.Unusable:
				verdict = unusable
			case p.End:
				verdict = sender.End(p.Fingerprint, p.Written, p.Series)
			default:
				verdict = sender.Point(p.Fingerprint, p.Written, p.Series)
			}
			if verdict != guard.Admitted {
				refused[verdict]++
			}
			return verdict != guard.Admitted
		})
	for verdict, n := range refused {
		b.drop(name, verdict, n, m.Name())
	}
	if left > 0 {
		for metric, kind := range metrics {
			b.guard.Keep(metric, kind)
		}
	}
	return left == 0
}

// registry keeps the metrics of senders apart where no registry has those of all.
func (b *batch) registry(metrics map[uint64]uint64, sender string) map[uint64]uint64 {
	if b.config.OneRegistry {
		return metrics
	}
	own := make(map[uint64]uint64, len(metrics))
	for metric, kind := range metrics {
		own[metric^series.Name(sender)] = kind
	}
	return own
}

// foreign adds the attributes of the inference processor to what is renamed, unless
// it stands before this one.
func (b *base) foreign(others func(key string) bool) func(key string) bool {
	if b.config.AllowInference {
		return others
	}
	return func(key string) bool { return others(key) || reserved.InferenceAttribute(key) }
}

// rename puts app. in front of attributes that would pass for those of a device, of
// an engine or of another owner: two points that differ in nothing else stay two series.
func (b *batch) rename(attributes pcommon.Map, foreign func(key string) bool) {
	var keys []string
	for key := range attributes.All() {
		if foreign(key) {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		v, ok := attributes.Get(key)
		if !ok {
			continue // it is there more than once
		}
		value := pcommon.NewValueEmpty()
		v.CopyTo(value)
		attributes.RemoveIf(func(k string, _ pcommon.Value) bool { return k == key })
		value.CopyTo(attributes.PutEmpty("app." + strings.TrimLeft(key, "_")))
		b.renamed++
	}
}
