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
	if t.several && t.givenBy(e, r, subject.model, c.ended) {
		return
	}
	base := t.key(e, s.Series, &subject, c.attributes)
	key := base
	if r.Metric.Kind == names.Histogram && !c.ended {
		key += uint64(c.layout) + 1
	}
	rank := lowest(e, c.attributes)
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
		o.row, o.live, o.value, o.readings, o.points = r, 0, 0, o.readings[:0], o.points[:0]
	case rank.compare(o.lowest) > 0:
		return // the lowest rank has the same figure
	}
	o.at = max(o.at, c.at)
	if c.ended {
		if o.live == 0 {
			o.points = append(o.points, c.point)
		}
		return
	}
	o.add(e, c)
	t.live++
}

// givenBy reports whether an earlier engine of the page gives a metric of a model: one
// that this one embeds, and that counts the same requests.
func (t *reader) givenBy(e *families.Engine, r *families.Row, model string, ended bool) bool {
	of := given{r.Metric, model, t.over}
	if by, ok := t.given[of]; ok {
		return by != e
	}
	if !ended || t.over {
		t.given[of] = e
	}
	return false
}

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
	*o = output{readings: o.readings[:0], points: o.points[:0]}
	return o
}

func (o *output) add(e *families.Engine, c *sample) {
	o.live++
	o.points = append(o.points, c.point)
	switch {
	case o.row.Metric.Kind == names.Counter || o.row.Metric.Kind == names.Histogram:
		o.readings = append(o.readings, series.Reading{
			Source: page.Identity(c.attributes, e.Lowest...), // the lowest rank may be another one
			Count: c.value, Sum: c.sum, Histogram: o.row.Metric.Kind == names.Histogram, Start: c.start, Time: c.at,
		})
	case o.row.Rule == families.LabelList:
		if o.live == 1 || c.sum > o.newest { // each mix of adapters is a series, with its time
			o.newest, o.value, o.first = c.sum, c.value, c.attributes
		}
	case o.live == 1:
		o.value = c.value
	case o.row.Fold == families.Highest:
		o.value = max(o.value, c.value)
	default:
		o.value += c.value
	}
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
