// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package page finds what a whole page of an inference engine has: which engine's it is,
// and which families give the values of which rows. Rules that look at all families of
// a page are here, such as those that keep a renamed family from being counted twice.
package page // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"

import (
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
)

// enough is how many families without a prefix make a page their engine's.
const enough = 5

// Selection is a row, and the metrics on the page that it is computed from.
type Selection struct {
	Row *families.Row
	// Number is that of the row, and Key a hash of what all its series have.
	Number int
	Key    uint64
	// Series is the number of the series: that of another row, if this one is an
	// alternative to it.
	Series     int
	From, With []pmetric.Metric
	// Rest are metrics that could have given the values: of their points, only markers
	// count.
	Rest []pmetric.Metric
}

// Engine is an engine that the page is of.
type Engine struct {
	*families.Engine
	// Ended is whether only markers are left of it: it was on the page before.
	Ended bool
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
	// whether there is one, UpEnded whether it has ended, with the target.
	Up             int
	HasUp, UpEnded bool
	// UpTime is the time of up, or of its end.
	UpTime pcommon.Timestamp
	// ProcessStart is the time at which the process began; 0 where the page does not
	// have it.
	ProcessStart pcommon.Timestamp
	// Unknown are families of no engine, and Renamed those of them that may have a metric
	// which the page lacks.
	Unknown []string
	Renamed []Renamed

	index   *families.Index
	engines []seen
	starts  map[uint64]pcommon.Timestamp // of _created series, by family and labels
	uses    []Use                        // of the metrics, in their order
	renames renames
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
	live, all signs // by values; by values and markers
	families  []family
}

type family struct {
	prefix     int // of the metrics; the lowest counts
	metrics    []pmetric.Metric
	rest       []pmetric.Metric // under another prefix or name, or with markers alone
	live, over []int            // numbers of all metrics with values, and of those without
}

// New returns a page that is read by an index.
func New(index *families.Index) *Page {
	p := &Page{index: index, engines: make([]seen, len(index.Engines)), starts: map[uint64]pcommon.Timestamp{}, renames: renames{index, map[string][]likely{}}}
	for i := range p.engines {
		p.engines[i].families = make([]family, index.Families[i])
	}
	return p
}

// Read finds what a resource's metrics are. The hint names the engine that discovery
// found at the target, and may be empty; last are the engines of the page before.
func (p *Page) Read(rm pmetric.ResourceMetrics, hint string, last []string) {
	p.reset()
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			p.uses = append(p.uses, Other)
			p.add(m)
		}
	}
	p.resolve(hint, last)
	p.Renamed = p.renames.find(p.Renamed[:0], p.Unknown, p.Engines)
}

func (p *Page) reset() {
	p.Engines, p.Unknown = p.Engines[:0], p.Unknown[:0]
	p.Up, p.HasUp, p.UpEnded, p.UpTime, p.ProcessStart = 0, false, false, 0, 0
	clear(p.starts)
	p.uses = p.uses[:0]
	for i := range p.engines {
		e := &p.engines[i]
		if !e.all.touched {
			continue
		}
		e.live, e.all = signs{}, signs{}
		for j := range e.families {
			f := &e.families[j]
			f.metrics, f.rest, f.live, f.over = f.metrics[:0], f.rest[:0], f.live[:0], f.over[:0]
		}
	}
}

func (p *Page) add(m pmetric.Metric) {
	name, number := m.Name(), len(p.uses)-1
	switch {
	case name == "up":
		p.uses[number] = Scraper
		if point, ok := only(m); ok {
			v, ended := Value(point), point.Flags().NoRecordedValue()
			p.HasUp, p.UpEnded, p.Up, p.UpTime = !ended && (v == 0 || v == 1), ended, int(v), point.Timestamp()
		}
		return
	case name == "process_start_time_seconds":
		p.uses[number] = Own
		if point, ok := only(m); ok && !point.Flags().NoRecordedValue() {
			v := Value(point)
			if start := pcommon.NewTimestampFromTime(time.Unix(0, int64(v*1e9))); v > 0 && start <= point.Timestamp() {
				p.ProcessStart = start
			}
		}
		return
	case strings.HasSuffix(name, "_created"):
		p.uses[number] = Own
		p.begins(strings.TrimSuffix(name, "_created"), m)
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
	goesOn := live(m)
	for _, ref := range refs {
		if ref.Family == families.Pass {
			continue
		}
		e := &p.engines[ref.Engine]
		prefixes := p.index.Engines[ref.Engine].Prefixes
		e.all.add(ref, prefixes)
		if goesOn {
			e.live.add(ref, prefixes)
		}
		if ref.Family == families.Drop {
			p.uses[number] = Used
		} else if ref.Family >= 0 {
			e.families[ref.Family].found(ref.Prefix, number, m, goesOn)
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
// _total: Ray has each counter twice, without it as a gauge. Markers of series that have
// ended under a newer name do not hide one that goes on.
func (f *family) found(prefix, number int, m pmetric.Metric, goesOn bool) {
	if !goesOn {
		f.rest, f.over = append(f.rest, m), append(f.over, number)
		return
	}
	name := m.Name()
	f.live = append(f.live, number)
	if len(f.metrics) > 0 {
		switch was := f.metrics[0].Name(); {
		case prefix > f.prefix, prefix == f.prefix && was != name && strings.HasSuffix(was, "_total"):
			f.rest = append(f.rest, m)
			return
		case was != name:
			f.rest = append(f.rest, f.metrics...)
			f.metrics = f.metrics[:0]
		}
	}
	f.prefix = prefix
	f.metrics = append(f.metrics, m)
}

// choose finds which rows of an engine the page fills.
func (p *Page) choose(i int, ended bool) {
	engine, s := p.index.Engines[i], &p.engines[i]
	n := len(p.Engines)
	if n < cap(p.Engines) {
		p.Engines = p.Engines[:n+1]
	} else {
		p.Engines = append(p.Engines, Engine{})
	}
	out := &p.Engines[n]
	out.Engine, out.Ended, out.Rows, out.Named = engine, ended, out.Rows[:0], engine.Named
	named, rest := s.values(p.index.Named[i], ended)
	if named == nil {
		named = rest
	}
	if name := common(named, engine.NamedLabel); name != "" {
		out.Named = name
	}
	for r := range engine.Rows {
		row, source := &engine.Rows[r], &p.index.Sources[i][r]
		from, rest := s.values(source.From, ended)
		if from == nil && rest == nil {
			continue
		}
		// Of a row of which only markers are left, families count that were there before.
		there := func(id int) bool {
			f := &s.families[id]
			return len(f.metrics) > 0 && !ended || len(f.rest) > 0 && from == nil
		}
		// One that has come in its place with values leaves it its markers.
		instead := func(id int) bool {
			return there(id) && (from != nil || ended || len(s.families[id].metrics) == 0)
		}
		if source.With >= 0 && !there(source.With) || source.Beside >= 0 && !there(source.Beside) {
			continue // its families pass, unless another row reads them
		}
		p.consume(s, source.From, ended)
		if source.With >= 0 {
			p.consume(s, []int{source.With}, ended)
		}
		if slices.ContainsFunc(source.Unless, instead) {
			continue
		}
		selection := Selection{Row: row, Number: r, Key: source.Key, Series: source.Series, From: from, Rest: rest}
		if source.With >= 0 {
			selection.With = s.families[source.With].metrics
		}
		out.Rows = append(out.Rows, selection)
	}
}

// consume marks families as those of a row, whether they gave the values or another
// did.
func (p *Page) consume(s *seen, ids []int, ended bool) {
	for _, id := range ids {
		f := &s.families[id]
		for _, number := range f.over {
			p.uses[number] = Used
		}
		if ended {
			continue
		}
		for _, number := range f.live {
			p.uses[number] = Used
		}
	}
}

// values are the metrics of the first family that has values on the page, and the
// others: a series that goes on under another name has not ended.
func (s *seen) values(ids []int, ended bool) (metrics, rest []pmetric.Metric) {
	for _, id := range ids {
		f := &s.families[id]
		switch {
		case ended:
		case metrics == nil && len(f.metrics) > 0:
			metrics = f.metrics
		default:
			rest = append(rest, f.metrics...)
		}
		rest = append(rest, f.rest...)
	}
	return metrics, rest
}

// Use is what a metric is for, by its number in the order of the resource.
func (p *Page) Use(number int) Use { return p.uses[number] }

// begins notes when the series of a family began, by its _created series.
func (p *Page) begins(family string, m pmetric.Metric) {
	points, ok := Numbers(m)
	if !ok {
		return
	}
	id := xxhash.Sum64String(family)
	for _, point := range points.All() {
		if v := Value(point); v > 0 {
			p.starts[id+Identity(point.Attributes())] = pcommon.Timestamp(v * 1e9)
		}
	}
}

// Start is when a series of the page began, as far as the page knows: its own start
// time, that of the family's _created series with the same labels, or that of the
// process. It is 0 where nothing on the page has it.
func (p *Page) Start(family string, attributes pcommon.Map, own, at pcommon.Timestamp) pcommon.Timestamp {
	if own != 0 && own <= at {
		return own
	}
	if len(p.starts) > 0 {
		id := Identity(attributes)
		start, ok := p.starts[xxhash.Sum64String(strings.TrimSuffix(family, "_total"))+id]
		if !ok {
			start = p.starts[xxhash.Sum64String(family)+id]
		}
		if start != 0 && start <= at {
			return start
		}
	}
	if p.ProcessStart <= at {
		return p.ProcessStart
	}
	return 0
}
