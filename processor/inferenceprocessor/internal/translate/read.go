// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/histogram"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/page"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"
)

// output is a series that a page gives values for.
type output struct {
	row     *families.Row
	base    uint64
	key     uint64 // base, or with the layout of a histogram
	layout  uint32
	alone   bool // no other series is made of the same points
	subject subject
	first   pcommon.Map // labels of the first point
	lowest  ranks
	unit    string

	at       pcommon.Timestamp
	live     int
	value    float64 // of LabelList
	newest   float64 // its time
	readings []series.Reading
	points   []point // of the readings; markers, if none is live
}

// point is a point of the page.
type point struct {
	metric pmetric.Metric
	number int
}

// histogram is the point of a histogram with explicit bounds; not ok for others.
func (p *point) histogram() (_ pmetric.HistogramDataPoint, ok bool) {
	if p.metric.Type() != pmetric.MetricTypeHistogram {
		return pmetric.HistogramDataPoint{}, false
	}
	return p.metric.Histogram().DataPoints().At(p.number), true
}

// sample is what a point gives to a series.
type sample struct {
	attributes pcommon.Map
	at, start  pcommon.Timestamp
	ended      bool
	value      float64 // or the count of a histogram
	sum        float64
	layout     uint32
	point      point
}

// partner is a value of the second family of a row.
type partner struct {
	value float64
	at    pcommon.Timestamp
}

// reader collects what a page gives to each series.
type reader struct {
	*refusals
	o      *Options
	page   *page.Page
	target *series.Target
	model  string // of the target, for pages that do not name one
	now    time.Time

	known   string // the last model of the page that is one of the target's
	several bool   // engines on the page
	over    bool   // the engine has ended
	markers bool   // only markers count: another family has the values
	given   map[given]*families.Engine

	last  map[*families.Row]*histogram.Last
	alone map[*families.Row]bool
	only  bool // the row is one of them

	outputs []output
	byKey   map[uint64]int
	made    []bool
	live    int // points that gave something
	partner map[uint64]partner
}

// read collects what an engine's page gives to each series.
func (t *reader) read(e *page.Engine) {
	t.outputs, t.known, t.over = t.outputs[:0], "", e.Ended
	clear(t.byKey)
	t.made = append(t.made[:0], make([]bool, len(e.Engine.Rows))...)
	for i := range e.Rows {
		s := &e.Rows[i]
		before, made := t.live, t.made[s.Series] // by an earlier row
		t.markers = made
		for _, m := range s.From {
			t.metric(e.Engine, s, m)
		}
		t.made[s.Series] = made || t.live > before
		t.markers = true
		for _, m := range s.Rest {
			t.metric(e.Engine, s, m)
		}
	}
}

func (t *reader) metric(e *families.Engine, s *page.Selection, m pmetric.Metric) {
	r := s.Row
	t.only = t.alone[r]
	switch {
	case r.Rule == families.SumOf || r.Rule == families.CountOf:
		t.totals(e, s, m)
	case r.Metric.Kind == names.Histogram && r.Rule == families.Copy:
		t.histograms(e, s, m)
	default:
		t.numbers(e, s, m)
	}
}

func (t *reader) numbers(e *families.Engine, s *page.Selection, m pmetric.Metric) {
	points, ok := page.Numbers(m)
	if !ok || m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta {
		reason := Delta
		if !ok {
			reason = Mistyped
		}
		t.unfit(m, reason)
		return
	}
	r := s.Row
	if r.With != "" && !t.markers {
		t.partners(s)
	}
	for i, p := range points.All() {
		attributes := p.Attributes()
		if !t.counted(p.Flags()) || !taken(r.Where, r.Or, attributes) {
			continue
		}
		c := sample{
			attributes: attributes, at: p.Timestamp(), ended: p.Flags().NoRecordedValue(), value: page.Value(p),
			point: point{m, i},
		}
		if !c.ended {
			if !t.compute(r, &c) {
				continue
			}
			if r.Metric.Kind == names.Counter || r.Metric.Kind == names.Histogram {
				c.start = t.page.Start(m.Name(), attributes, p.StartTimestamp(), c.at)
			}
		}
		t.give(e, s, &c)
	}
}

// partners are the values of the second family, by the labels that both have.
func (t *reader) partners(s *page.Selection) {
	clear(t.partner)
	for _, m := range s.With {
		points, ok := page.Numbers(m)
		if !ok {
			continue
		}
		for _, p := range points.All() {
			attributes := p.Attributes()
			if !taken(s.Row.WithWhere, "", attributes) || p.Flags().NoRecordedValue() {
				continue
			}
			t.partner[page.Identity(attributes, s.Row.WithWhere.Label)] = partner{page.Value(p), p.Timestamp()}
		}
	}
}

// compute turns the value on the page into that of the row; false where there is none.
func (t *reader) compute(r *families.Row, c *sample) bool {
	v := c.value
	switch r.Rule {
	case families.Product, families.Quotient, families.Difference, families.Mean, families.Given:
		with, ok := t.partner[page.Identity(c.attributes, r.Where.Label)]
		switch {
		case !ok:
			return false
		case r.Rule == families.Product:
			v *= with.value
		case r.Rule == families.Difference:
			v = max(0, v-with.value)
		case r.Rule == families.Mean:
			c.value, c.sum, c.layout = with.value, r.Convert(v), histogram.None
			return t.counts(c.value, c.sum)
		case with.value == 0:
			return false
		case r.Rule == families.Quotient:
			v /= with.value
		}
	case families.LabelProduct:
		v = 1
		for _, key := range r.WithLabels {
			n, err := strconv.ParseFloat(label(c.attributes, key), 64)
			if err != nil {
				return false // such as None
			}
			v *= n
		}
	case families.LabelList:
		c.sum = v
		v = float64(len(list(label(c.attributes, r.WithLabels[0]))))
	}
	c.value = r.Convert(v)
	if r.ZeroIsAbsent && c.value == 0 || r.Negative && c.value < 0 {
		return false
	}
	if r.Ratio() {
		if c.value > 1 && c.value <= 1.05 {
			c.value = 1 // of blocks that are rounded
		}
		if c.value > 1 {
			return t.sentinel()
		}
	}
	return t.counts(c.value)
}

// counts reports whether values can be those of quantities; it counts the point
// otherwise.
func (t *reader) counts(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return t.sentinel()
		}
	}
	return true
}

// list is the entries of a comma-separated label, each once.
func list(text string) []string {
	entries := strings.Split(text, ",")
	for i := range entries {
		entries[i] = strings.TrimSpace(entries[i])
	}
	slices.Sort(entries)
	return slices.DeleteFunc(slices.Compact(entries), func(s string) bool { return s == "" })
}

// taken reports whether a row reads the series with these labels.
func taken(w families.Selector, or string, attributes pcommon.Map) bool {
	if w.Label == "" {
		return true
	}
	v := label(attributes, w.Label)
	return v == w.Value || or != "" && v == or
}

// counted reports whether a point counts, by its being a marker.
func (t *reader) counted(f pmetric.DataPointFlags) bool { return !t.markers || f.NoRecordedValue() }

// unfit refuses the points of a metric that a row cannot read.
func (t *reader) unfit(m pmetric.Metric, reason Reason) {
	if !t.markers {
		t.refuseAll(m, reason)
	}
}

// totals gives the sums or the counts of histograms to a counter.
func (t *reader) totals(e *families.Engine, s *page.Selection, m pmetric.Metric) {
	if m.Type() != pmetric.MetricTypeHistogram {
		t.unfit(m, Mistyped)
		return
	}
	if m.Histogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta {
		t.unfit(m, Delta)
		return
	}
	for i, p := range m.Histogram().DataPoints().All() {
		if !t.counted(p.Flags()) || !taken(s.Row.Where, s.Row.Or, p.Attributes()) {
			continue
		}
		value := p.Sum()
		if s.Row.Rule == families.CountOf {
			value = float64(p.Count())
		}
		c := sample{
			attributes: p.Attributes(), at: p.Timestamp(), ended: p.Flags().NoRecordedValue(), value: s.Row.Convert(value),
			point: point{m, i},
		}
		if !c.ended {
			if s.Row.Rule == families.SumOf && !p.HasSum() {
				t.sentinel()
				continue
			}
			if !t.counts(c.value) {
				continue
			}
			c.start = t.page.Start(m.Name(), c.attributes, p.StartTimestamp(), c.at)
		}
		t.give(e, s, &c)
	}
}

func (t *reader) histograms(e *families.Engine, s *page.Selection, m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeHistogram:
		if m.Histogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta {
			t.unfit(m, Delta)
			return
		}
		last, convert := t.bounds(s.Row), s.Row.Convert
		for i, p := range m.Histogram().DataPoints().All() {
			if !t.counted(p.Flags()) || !taken(s.Row.Where, s.Row.Or, p.Attributes()) {
				continue
			}
			c := sample{
				attributes: p.Attributes(), at: p.Timestamp(), ended: p.Flags().NoRecordedValue(), value: float64(p.Count()),
				sum: convert(p.Sum()), point: point{m, i},
			}
			if !c.ended {
				var ok bool
				if c.layout, ok = last.Layout(p, t.o.MaxBounds, convert); !ok {
					t.refuse(&c.point, InvalidHistogram)
					continue
				}
				c.start = t.page.Start(m.Name(), c.attributes, p.StartTimestamp(), c.at)
			}
			t.give(e, s, &c)
		}
	case pmetric.MetricTypeExponentialHistogram:
		t.exponentials(e, s, m)
	default:
		t.unfit(m, Mistyped)
	}
}

func (t *reader) bounds(r *families.Row) *histogram.Last {
	last := t.last[r]
	if last == nil {
		last = &histogram.Last{}
		t.last[r] = last
	}
	return last
}

func (t *reader) exponentials(e *families.Engine, s *page.Selection, m pmetric.Metric) {
	if m.ExponentialHistogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta {
		t.unfit(m, Delta)
		return
	}
	for i, p := range m.ExponentialHistogram().DataPoints().All() {
		if !t.counted(p.Flags()) || !taken(s.Row.Where, s.Row.Or, p.Attributes()) {
			continue
		}
		c := sample{
			attributes: p.Attributes(), at: p.Timestamp(), ended: p.Flags().NoRecordedValue(), value: float64(p.Count()),
			sum: s.Row.Convert(p.Sum()), layout: histogram.Exponential, point: point{m, i},
		}
		if !c.ended {
			if !histogram.ValidExponential(p, s.Row.Convert) {
				t.refuse(&c.point, InvalidHistogram)
				continue
			}
			c.start = t.page.Start(m.Name(), c.attributes, p.StartTimestamp(), c.at)
		}
		t.give(e, s, &c)
	}
}
