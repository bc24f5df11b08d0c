// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package page finds what a whole page of an inference engine has: whose page it is,
// and which families give the values of which rows. Rules that look at all families of
// a page are here, such as those that keep a renamed family from being counted twice.
package page // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
)

// believed is how many families without a prefix make a page their engine's.
const believed = 5

// Selection is a row, and the metrics on the page that it is computed from.
type Selection struct {
	Row *families.Row
	// Series is the number of the series: that of another row, if this one is an
	// alternative to it.
	Series     int
	From, With []pmetric.Metric
}

// Engine is an engine that the page is of.
type Engine struct {
	*families.Engine
	// Named is the value of inference.gateway; empty if there is none.
	Named string
	Rows  []Selection
}

// Page is what was found on a page. It is used again for the next page by Read.
type Page struct {
	// Engines are those that the page is of: more than one where a process embeds
	// another.
	Engines []Engine
	// Up is 1 if the page could be read, else 0, by the scraper's metric up; HasUp is
	// whether there is one.
	Up    int
	HasUp bool
	// UpTime is the time of up.
	UpTime pcommon.Timestamp
	// ProcessStart is the time at which the process began; 0 where the page does not
	// have it.
	ProcessStart pcommon.Timestamp
	// Unknown are families of no engine.
	Unknown []string

	index   *families.Index
	engines []seen
	created map[string]pmetric.Metric
	uses    []Use // of the metrics, in their order
}

// Use is what a page's metric is for.
type Use uint8

const (
	// Other metrics are on no row of the page's engines.
	Other Use = iota
	// Own metrics are those that every program has about itself, and times at which
	// counters began. They were read, and are no metrics of an engine.
	Own
	// Used metrics are on a row of one of the page's engines, or others have them better:
	// with names: normalised they do not pass.
	Used
	// Scraper metrics are those of the scraper.
	Scraper
)

// seen is what the page has of an engine.
type seen struct {
	marked   bool
	bare     int
	families []family
	touched  bool
}

type family struct {
	prefix  int // of the metrics; the lowest counts
	metrics []pmetric.Metric
	numbers []int // of all metrics that are its, also those that do not count
}

// New returns a page that is read by an index.
func New(index *families.Index) *Page {
	p := &Page{index: index, engines: make([]seen, len(index.Engines)), created: map[string]pmetric.Metric{}}
	for i := range p.engines {
		p.engines[i].families = make([]family, index.Families[i])
	}
	return p
}

// Read finds what a resource's metrics are. The hint names the engine that discovery
// found at the target, and may be empty.
func (p *Page) Read(rm pmetric.ResourceMetrics, hint string) {
	p.reset()
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			p.uses = append(p.uses, Other)
			p.add(m)
		}
	}
	p.resolve(hint)
}

func (p *Page) reset() {
	p.Engines, p.Up, p.HasUp, p.UpTime, p.ProcessStart, p.Unknown = p.Engines[:0], 0, false, 0, 0, p.Unknown[:0]
	clear(p.created)
	p.uses = p.uses[:0]
	for i := range p.engines {
		e := &p.engines[i]
		if !e.touched {
			continue
		}
		e.marked, e.bare, e.touched = false, 0, false
		for j := range e.families {
			f := &e.families[j]
			f.metrics, f.numbers = f.metrics[:0], f.numbers[:0]
		}
	}
}

func (p *Page) add(m pmetric.Metric) {
	name, number := m.Name(), len(p.uses)-1
	switch {
	case name == "up":
		p.uses[number] = Scraper
		if v, at, ok := only(m); ok {
			p.HasUp, p.Up, p.UpTime = true, int(v), at
		}
		return
	case name == "process_start_time_seconds":
		p.uses[number] = Own
		if v, at, ok := only(m); ok {
			if start := pcommon.NewTimestampFromTime(time.Unix(0, int64(v*1e9))); v > 0 && start <= at {
				p.ProcessStart = start
			}
		}
		return
	case strings.HasSuffix(name, "_created"):
		p.uses[number] = Own
		p.created[strings.TrimSuffix(name, "_created")] = m
		return
	case begins(name, "go_", "python_", "process_"):
		p.uses[number] = Own
		return
	case strings.HasPrefix(name, "scrape_"):
		p.uses[number] = Scraper
		return
	}
	refs := p.index.Find(name)
	if len(refs) == 0 {
		if !strings.HasPrefix(name, "http_") { // which every program has
			p.Unknown = append(p.Unknown, name)
		}
		return
	}
	for _, ref := range refs {
		if ref.Family == families.Pass {
			continue
		}
		e := &p.engines[ref.Engine]
		e.touched = true
		switch ref.Family {
		case families.Mark:
			e.marked = true
		case families.Drop:
			p.uses[number] = Used
		default:
			if ref.Prefix != families.Whole && p.index.Engines[ref.Engine].Prefixes[ref.Prefix] == "" {
				e.bare++
			}
			e.families[ref.Family].found(ref.Prefix, number, m)
		}
	}
}

// begins reports whether a name begins with one of the prefixes.
func begins(name string, prefixes ...string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// found adds a metric. A newer prefix counts alone, and so does a name that ends in
// _total: Ray has each counter twice, without it as a gauge.
func (f *family) found(prefix, number int, m pmetric.Metric) {
	name := m.Name()
	f.numbers = append(f.numbers, number)
	if len(f.metrics) > 0 {
		switch was := f.metrics[0].Name(); {
		case prefix > f.prefix, prefix == f.prefix && was != name && strings.HasSuffix(was, "_total"):
			return
		case was != name:
			f.metrics = f.metrics[:0]
		}
	}
	f.prefix = prefix
	f.metrics = append(f.metrics, m)
}

// only is the value of a metric with one point.
func only(m pmetric.Metric) (float64, pcommon.Timestamp, bool) {
	points, ok := Numbers(m)
	if !ok || points.Len() != 1 || points.At(0).Flags().NoRecordedValue() {
		return 0, 0, false
	}
	return Value(points.At(0)), points.At(0).Timestamp(), true
}

// common is the value of a label that all points have; empty if they differ.
func common(metrics []pmetric.Metric, label string) (value string) {
	for _, m := range metrics {
		points, ok := Numbers(m)
		if !ok {
			return ""
		}
		for _, p := range points.All() {
			v, ok := p.Attributes().Get(label)
			if !ok || value != "" && v.Str() != value {
				return ""
			}
			value = v.Str()
		}
	}
	return value
}

// Numbers are the points of a gauge or a sum; not ok for other types.
func Numbers(m pmetric.Metric) (pmetric.NumberDataPointSlice, bool) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints(), true
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints(), true
	default:
		return pmetric.NumberDataPointSlice{}, false
	}
}

// Value is the value of a point, whatever its type.
func Value(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}

// Engine finds an engine of the index by its name; nil if there is none.
func (p *Page) Engine(name string) *families.Engine {
	for _, e := range p.index.Engines {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// resolve decides whose page it is, and which rows it fills.
func (p *Page) resolve(hint string) {
	hidden := map[string]bool(nil)
	bare := p.bare(hint)
	for i, e := range p.index.Engines {
		if e.Hides != "" && p.of(i, bare, hint) {
			if hidden == nil {
				hidden = map[string]bool{}
			}
			hidden[e.Hides] = true
		}
	}
	for i, e := range p.index.Engines {
		if !hidden[e.Name] && p.of(i, bare, hint) {
			p.choose(i)
		}
	}
}

// bare is the number of the engine that families without a prefix belong to: the one at
// the target, else the first of which there are enough; -1 for none.
func (p *Page) bare(hint string) int {
	owner := -1
	for i, e := range p.index.Engines {
		switch s := &p.engines[i]; {
		case !s.touched || s.bare == 0:
		case hint == e.Name:
			return i
		case owner < 0 && s.bare >= believed:
			owner = i
		}
	}
	return owner
}

// of reports whether the page is of an engine.
func (p *Page) of(i, bare int, hint string) bool {
	e, s := p.index.Engines[i], &p.engines[i]
	switch {
	case !s.touched:
		return false
	case len(e.Marks) > 0:
		return s.marked || hint == e.Name
	case hint == e.Name, i == bare:
		return true
	case e.Hides != "":
		return false
	}
	for j := range s.families {
		if f := &s.families[j]; len(f.metrics) > 0 && f.prefix != families.Whole && e.Prefixes[f.prefix] != "" {
			return true
		}
	}
	return false
}

func (p *Page) choose(i int) {
	engine, s := p.index.Engines[i], &p.engines[i]
	n := len(p.Engines)
	if n < cap(p.Engines) {
		p.Engines = p.Engines[:n+1]
	} else {
		p.Engines = append(p.Engines, Engine{})
	}
	out := &p.Engines[n]
	out.Engine, out.Rows, out.Named = engine, out.Rows[:0], engine.Named
	if name := common(s.first(p.index.Named[i]), engine.NamedLabel); name != "" {
		out.Named = name
	}
	for r := range engine.Rows {
		row, source := &engine.Rows[r], &p.index.Sources[i][r]
		from := s.first(source.From)
		if from == nil {
			continue
		}
		if s.lacks(source.With) || s.lacks(source.Beside) {
			continue // its families pass, unless another row reads them
		}
		p.consume(s, source.From)
		if source.With >= 0 {
			p.consume(s, []int{source.With})
		}
		if s.any(source.Unless) {
			continue
		}
		selection := Selection{Row: row, Series: source.Series, From: from}
		if source.With >= 0 {
			selection.With = s.families[source.With].metrics
		}
		out.Rows = append(out.Rows, selection)
	}
}

// consume marks families as those of a row, whether they gave the values or another
// did.
func (p *Page) consume(s *seen, ids []int) {
	for _, id := range ids {
		for _, number := range s.families[id].numbers {
			p.uses[number] = Used
		}
	}
}

// first are the metrics of the first family that is on the page.
func (s *seen) first(ids []int) []pmetric.Metric {
	for _, id := range ids {
		if f := &s.families[id]; len(f.metrics) > 0 {
			return f.metrics
		}
	}
	return nil
}

// lacks reports whether the page does not have a family that a row needs; a negative
// number is none.
func (s *seen) lacks(id int) bool { return id >= 0 && len(s.families[id].metrics) == 0 }

func (s *seen) any(ids []int) bool { return s.first(ids) != nil }

// Use is what a metric is for, by its number in the order of the resource.
func (p *Page) Use(number int) Use { return p.uses[number] }
