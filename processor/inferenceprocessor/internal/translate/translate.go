// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package translate turns the pages of inference engines into the common vocabulary. It
// has no clock, no goroutine and no I/O.
package translate // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/histogram"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"
)

// Options are the settings of a translator.
type Options struct {
	// Normalised adds the series of the vocabulary, Raw keeps the families that they
	// come from.
	Normalised, Raw bool
	// DropUnmapped drops families that are on no row.
	DropUnmapped bool
	MaxBounds    int
	MaxModels    int
	// Series are those that may be remembered, by all translators that share them.
	Series *series.Budget
	// LoraNames are adapters that have a series of their own.
	LoraNames []string
	// ModelsExclude are models without normalised series.
	ModelsExclude []string
	// Attributes are further labels that normalised points keep.
	Attributes []string
}

const (
	keepWord   = 24 * time.Hour
	maxReasons = 20
	scopeName  = "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor"
)

// Translator translates one page after the other. It is not safe for concurrent use.
type Translator struct {
	o      Options
	page   *page.Page
	memory *series.Memory
	refusals
	reader  reader
	emitter emitter
}

// New returns a translator with a memory of its own.
func New(index *families.Index, o Options) *Translator {
	t := &Translator{
		o: o, page: page.New(index), memory: series.NewMemory(o.Series),
		refusals: refusals{refused: map[pmetric.Metric]map[int]bool{}},
	}
	t.reader = reader{refusals: &t.refusals, o: &t.o, page: t.page, byKey: map[uint64]int{}, last: map[*families.Row]*histogram.Last{}, alone: alone(index.Engines), given: map[given]*families.Engine{}, partner: map[uint64]partner{}}
	t.emitter = emitter{refusals: &t.refusals, o: &t.o}
	return t
}

// Targets is how many targets are remembered.
func (t *Translator) Targets() int { return t.memory.Targets() }

// Sweep forgets targets that have had no page for ten minutes. To be called every minute
// or so.
func (t *Translator) Sweep(now time.Time) { t.memory.Sweep(now) }

// Target identifies the target of a resource, by all its attributes.
func Target(attributes pcommon.Map) uint64 { return page.Identity(attributes) }

// Page translates what a resource has in place, and reports what became of it. The
// result is valid until the next call. The target is that of the resource, before it
// was translated.
func (t *Translator) Page(rm pmetric.ResourceMetrics, target uint64, now time.Time) *Result {
	t.begin()
	if translated(rm) {
		return &t.result
	}
	attributes := rm.Resource().Attributes()
	hint, model := take(attributes, names.InferenceEngineHint), take(attributes, names.InferenceModelHint)
	if !t.o.Normalised {
		t.page.Read(rm, hint, nil)
		t.pass(rm)
		return &t.result
	}
	of := t.memory.Target(target, now)
	t.page.Read(rm, hint, of.Engines)
	t.reader.target, t.reader.model, t.reader.now = of, model, now
	t.emitter.target, t.emitter.taken = of, 0
	t.emitter.takes = !t.o.Raw && len(t.o.Attributes) == 0 && len(t.page.Engines) == 1
	t.emitter.out.begin()
	t.reader.several = len(t.page.Engines) > 1
	clear(t.reader.given)
	for i := range t.page.Engines {
		e := &t.page.Engines[i]
		t.result.begin(e.Name)
		t.reader.read(e)
		t.emitter.outputs, t.emitter.named = t.reader.outputs, e.Named
		t.emitter.write(e.Engine)
	}
	t.up(of, hint)
	t.result.Unknown, t.result.Renamed = t.page.Unknown, t.page.Renamed
	t.pass(rm)
	t.emitter.out.end(rm)
	return &t.result
}

// translated reports whether a page was translated before, by another processor of this
// kind.
func translated(rm pmetric.ResourceMetrics) bool {
	for _, sm := range rm.ScopeMetrics().All() {
		if sm.Scope().Name() == scopeName {
			return true
		}
	}
	return false
}

// take removes a resource attribute and returns its text.
func take(attributes pcommon.Map, key string) string {
	v, ok := attributes.Get(key)
	if !ok {
		return ""
	}
	text := v.Str()
	attributes.Remove(key)
	return text
}

// pass removes what does not pass as it came.
func (t *Translator) pass(rm pmetric.ResourceMetrics) {
	replaced := t.o.Normalised && !t.o.Raw && len(t.page.Engines) > 0
	out := t.emitter.taken
	number := -1
	for _, sm := range rm.ScopeMetrics().All() {
		sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
			number++
			points.CompleteEnds(m)
			switch use := t.page.Use(number); {
			case use == page.Own:
				return out.remove(m)
			case !replaced || use == page.Scraper:
				return false
			case use == page.Other:
				return t.o.DropUnmapped && out.remove(m)
			}
			kept := t.refused[m]
			out.remove(m)
			if len(kept) == 0 {
				return true
			}
			keepPoints(m, kept)
			out -= removal(samples(m))
			return false
		})
	}
	out.subtract(rm)
}

// keepPoints removes all points of a metric but those with these numbers.
func keepPoints(m pmetric.Metric, kept map[int]bool) {
	i := -1
	next := func() bool { i++; return !kept[i] }
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		m.Gauge().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool { return next() })
	case pmetric.MetricTypeSum:
		m.Sum().DataPoints().RemoveIf(func(pmetric.NumberDataPoint) bool { return next() })
	case pmetric.MetricTypeHistogram:
		m.Histogram().DataPoints().RemoveIf(func(pmetric.HistogramDataPoint) bool { return next() })
	case pmetric.MetricTypeExponentialHistogram:
		m.ExponentialHistogram().DataPoints().RemoveIf(func(pmetric.ExponentialHistogramDataPoint) bool { return next() })
	}
}

// up reports whether the last scrape of the engines of a target succeeded, and had any of
// their families: a page without them says nothing of the engine, and its demand would seem
// to be none. On a page that could not be read, or is such, the engines are those of the last
// one that had them, or the one that discovery found. It ends with the target, and with an engine that is on its page no
// more: else its last value would count for minutes.
func (t *Translator) up(target *series.Target, hint string) {
	ended := !slices.ContainsFunc(t.page.Engines, func(e page.Engine) bool { return !e.Ended })
	if !ended || len(target.Engines) == 0 {
		for _, name := range target.Engines {
			if t.page.HasUp && !slices.ContainsFunc(t.page.Engines, func(e page.Engine) bool { return !e.Ended && e.Name == name }) {
				t.upOf(name, true)
			}
		}
		target.Engines = target.Engines[:0]
		for i := range t.page.Engines {
			if e := &t.page.Engines[i]; e.Ended == ended {
				target.Engines = append(target.Engines, e.Name)
			}
		}
	}
	if len(target.Engines) == 0 && hint != "" {
		target.Engines = append(target.Engines, hint)
	}
	if t.page.HasUp || t.page.UpEnded {
		empty := !t.page.UpEnded && t.page.Up == 1 && ended
		if empty {
			t.page.Up = 0
		}
		for _, name := range target.Engines {
			if t.upOf(name, t.page.UpEnded) && empty {
				t.result.Empty = append(t.result.Empty, name)
			}
		}
	}
}

// upOf writes whether an engine was scraped, or that this has ended; nothing for one that
// is switched off, and false.
func (t *Translator) upOf(name string, ended bool) bool {
	e := t.page.Engine(name)
	if e == nil {
		return false
	}
	metric := &names.InferenceServerUp
	if e.Gateway {
		metric = &names.InferenceGatewayUp
	}
	var p pmetric.NumberDataPoint
	if ended {
		p = t.emitter.out.marker(metric, "")
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	} else {
		p = t.emitter.out.numbers(metric, "").AppendEmpty()
		p.SetIntValue(int64(t.page.Up))
	}
	p.SetTimestamp(t.page.UpTime)
	p.Attributes().PutStr(names.InferenceEngine, name)
	return true
}
