// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inferenceprocessor // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor"

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"
)

// shards are how many translators there are, so that pages that arrive at the same time
// do not wait for each other.
const shards = 8

type inferenceProcessor struct {
	next      consumer.Metrics
	telemetry *metadata.TelemetryBuilder
	log       *zap.Logger
	logged    logonce.Causes
	named     logonce.Causes // unknown families
	lacking   logonce.Causes // unknown families that may have what is missing
	empty     logonce.Causes // pages without their engine's families
	series    *series.Budget
	shards    [shards]shard
	swept     atomic.Int64 // Unix seconds
	now       func() time.Time
}

type shard struct {
	mu sync.Mutex
	t  *translate.Translator
}

func newProcessor(set processor.Settings, c *Config, next consumer.Metrics) (*inferenceProcessor, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	p := &inferenceProcessor{next: next, telemetry: telemetry, log: set.Logger, now: time.Now, series: series.NewBudget(c.MaxSeries)}
	p.named.Every, p.lacking.Every = time.Hour, time.Hour
	index := families.NewIndex(c.engines())
	o := translate.Options{
		Normalised: c.Names != namesRaw, Raw: c.Names != namesNormalised, DropUnmapped: c.Unmapped == unmappedDrop,
		MaxBounds: c.HistogramBounds, Series: p.series, MaxModels: c.MaxModels,
		LoraNames: c.LoraNames, ModelsExclude: c.ModelsExclude, Attributes: c.Attributes,
	}
	for i := range p.shards {
		p.shards[i].t = translate.New(index, o)
	}
	return p, nil
}

// Start registers what is observed on demand.
func (p *inferenceProcessor) Start(context.Context, component.Host) error {
	return errors.Join(
		p.telemetry.RegisterInferenceSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			p.sweep(p.now())
			o.Observe(int64(p.series.Used()))
			return nil
		}),
		p.telemetry.RegisterInferenceTargetsCallback(func(_ context.Context, o metric.Int64Observer) error {
			n := 0
			p.each(func(t *translate.Translator) { n += t.Targets() })
			o.Observe(int64(n))
			return nil
		}),
	)
}

func (p *inferenceProcessor) each(do func(*translate.Translator)) {
	for i := range p.shards {
		s := &p.shards[i]
		s.mu.Lock()
		do(s.t)
		s.mu.Unlock()
	}
}

// sweep forgets targets without a page, once a minute, also in shards to which no page
// comes any more.
func (p *inferenceProcessor) sweep(now time.Time) {
	swept := p.swept.Load()
	if since := now.Unix() - swept; since >= 0 && since < 60 || !p.swept.CompareAndSwap(swept, now.Unix()) {
		return
	}
	p.each(func(t *translate.Translator) { t.Sweep(now) })
}

func (p *inferenceProcessor) Shutdown(context.Context) error {
	p.telemetry.Shutdown()
	return nil
}

// Capabilities: pages are changed in place.
func (p *inferenceProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// ConsumeMetrics translates each resource, which is a page.
func (p *inferenceProcessor) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	now := p.now()
	p.sweep(now)
	for _, rm := range md.ResourceMetrics().All() {
		p.page(ctx, rm, now)
	}
	return p.next.ConsumeMetrics(ctx, md)
}

func (p *inferenceProcessor) page(ctx context.Context, rm pmetric.ResourceMetrics, now time.Time) {
	target := translate.Target(rm.Resource().Attributes())
	s := &p.shards[target%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.t.Page(rm, target, now)
	p.report(ctx, r)
	for _, engine := range r.Empty {
		if p.empty.First(engine, now) {
			p.log.Warn("the page answers, but has no family of its engine: the server is reported as not up",
				zap.String("engine", engine), zap.String("server", points.Str(rm.Resource().Attributes(), names.ServerAddress)),
				zap.String("remedy", "look at the page: the engine may have been started without metrics, or another program may answer on this port"))
		}
	}
}

func (p *inferenceProcessor) report(ctx context.Context, r *translate.Result) {
	for i := range r.Engines {
		e := &r.Engines[i]
		engine := metric.WithAttributeSet(attribute.NewSet(attribute.String("engine", e.Engine)))
		p.telemetry.InferencePointsNormalised.Add(ctx, int64(e.Normalised), engine)
		if i == 0 && len(r.Unknown) > 0 {
			p.telemetry.InferenceFamiliesUnknown.Add(ctx, int64(len(r.Unknown)), engine)
			p.unknown(e.Engine, r.Unknown)
		}
		for reason, n := range e.Refused {
			if n > 0 {
				p.refused(ctx, e.Engine, translate.Reason(reason), n)
			}
		}
	}
	if len(r.Renamed) > 0 {
		p.renamed(ctx, r.Renamed)
	}
}

// renamed reports families that may have metrics which a page lacks.
func (p *inferenceProcessor) renamed(ctx context.Context, list []page.Renamed) {
	named := map[string][]string{} // by engine
	for _, f := range list {
		named[f.Engine] = append(named[f.Engine], f.Family+" ("+f.Metric+"? It is like "+f.Like+")")
	}
	for engine, families := range named {
		p.telemetry.InferenceFamiliesRenamed.Add(ctx, int64(len(families)), metric.WithAttributeSet(attribute.NewSet(attribute.String("engine", engine))))
		if p.lacking.Due(engine, p.now()) {
			p.log.Warn("the page has families that are not known, and lacks metrics that they may have",
				zap.String("engine", engine), zap.Strings("first", families[:min(maxNamed, len(families))]), zap.Int("families", len(families)),
				zap.String("remedy", "this version of the engine may be newer than this version of otelcol-gpu: install a newer otelcol-gpu"))
		}
	}
}

func (p *inferenceProcessor) refused(ctx context.Context, engine string, reason translate.Reason, n int) {
	p.telemetry.InferencePointsRefused.Add(ctx, int64(n), metric.WithAttributeSet(attribute.NewSet(
		attribute.String("engine", engine), attribute.String("reason", reason.String()))))
	remedy := map[translate.Reason]string{
		translate.LimitSeries: "raise max_series, or switch engines off that are not needed",
		translate.LimitModels: "raise max_models, or list helpers in models_exclude",
	}[reason]
	if remedy != "" && p.logged.First(engine+" "+reason.String(), p.now()) {
		p.log.Warn("points pass under the engine's names: a limit is reached",
			zap.String("engine", engine), zap.String("reason", reason.String()), zap.String("remedy", remedy))
	}
}

// maxNamed is how many unknown families are named in the log.
const maxNamed = 5

func (p *inferenceProcessor) unknown(engine string, families []string) {
	if !p.named.Due(engine, p.now()) {
		return
	}
	p.log.Info("the page has families that are in no table; they pass as they are",
		zap.String("engine", engine), zap.Strings("first", families[:min(maxNamed, len(families))]), zap.Int("families", len(families)))
}
