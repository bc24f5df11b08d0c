// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"

import (
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"
)

// give adds what a point has to the series that it belongs to.
func (t *reader) give(e *families.Engine, s *page.Selection, c *sample) {
	r := s.Row
	if repeated(e, r, c.attributes) {
		return
	}
	subject := t.subject(e, r, c.attributes)
	if subject.model != "" {
		if slices.Contains(t.o.ModelsExclude, subject.model) {
			return
		}
		if c.ended && !t.target.Seen(kindModel, subject.model) {
			t.keep(&c.point) // of a series that passed as it came
			return
		}
		if !c.ended && subject.model != t.known {
			if !t.target.Known(kindModel, subject.model, t.o.MaxModels, keepWord, t.now) {
				t.refuse(&c.point, LimitModels)
				return
			}
			t.known = subject.model // most pages have one
		}
	}
	if t.several && t.givenBy(e, r, modelOn(e, c.attributes), c.ended) {
		return
	}
	base := t.key(s, &subject, c.attributes)
	key := base
	if r.Metric.Kind == names.Histogram && !c.ended {
		key += uint64(c.layout) + 1
	}
	rank := lowest(e, r, c.attributes)
	o := t.output(key)
	switch {
	case o.row == nil:
		o.row, o.base, o.key, o.layout, o.subject, o.first, o.lowest = r, base, key, c.layout, subject, c.attributes, rank
		if r.Unit != "" && c.point.metric.Description() != "" && strings.Contains(c.point.metric.Description(), r.UnitHelp) {
			o.unit = r.Unit
		}
	case c.ended:
	case o.live == 0 || rank.compare(o.lowest) < 0:
		o.lowest, o.first = rank, c.attributes
		o.row, o.live, o.readings, o.points = r, 0, o.readings[:0], o.points[:0]
	case rank.compare(o.lowest) > 0:
		return // the lowest rank has the same figure
	}
	o.alone = o.alone && t.only
	o.at = max(o.at, c.at)
	if c.ended {
		if o.live == 0 {
			o.points = append(o.points, c.point)
		}
		return
	}
	o.add(c, sourceID(e, s, c.attributes))
	t.live++
}

// givenBy reports whether an earlier engine of the page gives a metric of a model: one
// that this one embeds, and that counts the same requests. Where one of them does not name
// models, its series are of any.
func (t *reader) givenBy(e *families.Engine, r *families.Row, model string, ended bool) bool {
	of, all, unnamed := given{r.Metric, model, t.over}, given{r.Metric, anyModel, t.over}, given{r.Metric, "", t.over}
	if model == "" {
		of = all
	}
	for _, g := range [...]given{of, unnamed} {
		if by, ok := t.given[g]; ok && by != e {
			return true
		}
	}
	if ended && !t.over {
		return false
	}
	for _, g := range [...]given{{r.Metric, model, t.over}, all} {
		if _, ok := t.given[g]; !ok {
			t.given[g] = e
		}
	}
	return false
}

// anyModel stands for all models of an engine; no label has it.
const anyModel = "\x00"

// given is what one engine of a page gives.
type given struct {
	metric *names.Metric
	model  string
	over   bool // of engines that have ended
}

// output finds the output of a key on this page, or begins it.
func (t *reader) output(key uint64) *output {
	if i, ok := t.byKey[key]; ok {
		return &t.outputs[i]
	}
	n := len(t.outputs)
	t.byKey[key] = n
	if n < cap(t.outputs) {
		t.outputs = t.outputs[:n+1]
	} else {
		t.outputs = append(t.outputs, output{})
	}
	o := &t.outputs[n]
	*o = output{alone: true, readings: o.readings[:0], points: o.points[:0]}
	return o
}

func (o *output) add(c *sample, source uint64) {
	o.live++
	if o.row.Rule == families.LabelList {
		if o.live == 1 || c.sum > o.newest { // each mix of adapters is a series, with its time
			o.newest, o.value, o.first = c.sum, c.value, c.attributes
		}
		return
	}
	o.points = append(o.points, c.point)
	o.readings = append(o.readings, series.Reading{
		Source: source, Count: c.value, Sum: c.sum, Histogram: o.row.Metric.Kind == names.Histogram, Start: c.start, Time: c.at,
	})
}

// unique leaves the newest reading of each source, of which a page from elsewhere may have
// several.
func (o *output) unique() {
	newest := map[uint64]int{}
	for i := range o.readings {
		r := &o.readings[i]
		j, known := newest[r.Source]
		switch {
		case !known:
			j = len(newest)
			newest[r.Source] = j
		case r.Time < o.readings[j].Time:
			continue
		}
		o.readings[j], o.points[j] = *r, o.points[i]
	}
	o.readings, o.points = o.readings[:len(newest)], o.points[:len(newest)]
}

// fold is the value of what is no count.
func (o *output) fold() float64 {
	v := o.readings[0].Count
	for i := range o.readings[1:] {
		if next := o.readings[1+i].Count; o.row.Fold == families.Highest {
			v = max(v, next)
		} else {
			v += next
		}
	}
	return v
}

// hasSum reports whether all sources of a histogram have a sum.
func (o *output) hasSum() bool {
	return !slices.ContainsFunc(o.points, func(p point) bool {
		h, ok := p.histogram()
		return ok && !h.HasSum()
	})
}

// buckets reads the buckets of the points into their readings.
func (o *output) buckets() {
	for i := range o.readings {
		if h, ok := o.points[i].histogram(); ok {
			o.readings[i].Buckets = h.BucketCounts().AsRaw()
		}
	}
}
