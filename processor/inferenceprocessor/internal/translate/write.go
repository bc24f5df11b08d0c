// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package translate // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/translate"

import (
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/histogram"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/series"
)

// emitter writes the series of a page.
type emitter struct {
	*refusals
	o       *Options
	target  *series.Target
	out     writer
	outputs []output
	named   string // the gateway
	// takes is whether values may be taken from points of the page that no other series is
	// made of, since these points are left out. taken is how many buckets were.
	takes bool
	taken removal

	sources []uint64 // of a series

	layout uint32 // of the last histogram
	text   string // the value of inference.bounds for it
}

// write writes what the page of an engine has for each series.
func (t *emitter) write(e *families.Engine) {
	for i := range t.outputs {
		o := &t.outputs[i]
		if t.repeated(o) {
			o.unique()
		}
		switch kind := o.row.Metric.Kind; {
		case o.live == 0:
			t.ended(e, o)
		case kind == names.Histogram:
			t.histogram(e, o)
		case kind == names.Counter:
			t.counter(e, o)
		case o.row.Rule == families.LabelList:
			t.adapters(e, o)
		default:
			if v := o.fold(); math.IsInf(v, 1) { // as a sum
				t.refuseOutput(o, Sentinel)
			} else {
				t.number(e, o, v)
			}
		}
	}
	t.stale(e)
}

// mayTake reports whether a series may take what its points have: it saves making the
// same.
func (t *emitter) mayTake(o *output) bool { return t.takes && o.alone }

// repeated reports whether a source of a series is several times on the page.
func (t *emitter) repeated(o *output) bool {
	if len(o.readings) < 2 {
		return false
	}
	t.sources = t.sources[:0]
	for i := range o.readings {
		t.sources = append(t.sources, o.readings[i].Source)
	}
	slices.Sort(t.sources)
	for i, s := range t.sources[1:] {
		if s == t.sources[i] {
			return true
		}
	}
	return false
}

// number writes a value of what is no count.
func (t *emitter) number(e *families.Engine, o *output, v float64) pmetric.NumberDataPoint {
	p := t.out.numbers(o.row.Metric, o.unit).AppendEmpty()
	p.SetTimestamp(o.at)
	if o.row.Metric.Kind != names.Gauge && o.row.Metric.Int() && v < 1<<63 {
		p.SetIntValue(int64(v))
	} else {
		p.SetDoubleValue(v)
	}
	t.attributes(p.Attributes(), e, o)
	t.result.now().Normalised++
	return p
}

func (t *emitter) counter(e *families.Engine, o *output) {
	total, result := t.target.Count(o.key, o.key, 0, o.readings)
	if result == series.Full {
		t.refuseOutput(o, LimitSeries)
		return
	}
	if math.IsInf(total.Count, 1) { // as a sum of its sources
		t.refuseOutput(o, Sentinel)
		return
	}
	t.number(e, o, total.Count).SetStartTimestamp(total.Start)
}

// adapters writes how many adapters there are, and apart from them those that have a
// series of their own.
func (t *emitter) adapters(e *families.Engine, o *output) {
	count := o.value
	for _, name := range list(label(o.first, o.row.WithLabels[0])) {
		if slices.Contains(t.o.LoraNames, name) {
			t.number(e, o, 1).Attributes().PutStr(names.InferenceLoraName, name)
			count--
		}
	}
	t.number(e, o, count)
}

func (t *emitter) histogram(e *families.Engine, o *output) {
	if o.layout == histogram.Exponential {
		t.exponential(e, o)
		return
	}
	if len(o.readings) > 1 || t.target.Folded(o.key) {
		o.buckets()
	}
	total, result := t.target.Count(o.key, o.base, o.layout, o.readings)
	switch {
	case result == series.Full:
		t.refuseOutput(o, LimitSeries)
		return
	case result == series.Fell, !histogram.Possible(total.Count, total.Sum): // of several families or sources
		t.refuseOutput(o, InvalidHistogram)
		return
	}
	p := t.out.histograms(o.row.Metric, o.unit).AppendEmpty()
	if first, ok := o.points[0].histogram(); ok {
		t.taken += buckets(p, first, t.mayTake(o))
		if total.Buckets != nil {
			p.BucketCounts().FromRaw(total.Buckets)
		} else {
			extremes(p, first, o.row.Convert)
		}
		for i := range o.points {
			from, _ := o.points[i].histogram()
			exemplars(p.Exemplars(), from.Exemplars(), o.row.Convert)
		}
		if bounds := p.ExplicitBounds(); o.row.Converts() {
			for i := range bounds.Len() {
				bounds.SetAt(i, o.row.Convert(bounds.At(i)))
			}
		}
	}
	p.SetCount(uint64(total.Count))
	if o.hasSum() {
		p.SetSum(total.Sum)
	}
	p.SetStartTimestamp(total.Start)
	p.SetTimestamp(o.at)
	histogram.Thin(p, t.o.MaxBounds, families.Advised(o.row))
	if !total.Bounded {
		t.target.SetBounds(o.key, series.NewBounds(p.ExplicitBounds().AsRaw()))
	}
	t.attributes(p.Attributes(), e, o)
	if t.text == "" || o.layout != t.layout { // most points are of the same bounds as the last
		t.layout, t.text = o.layout, histogram.Text(o.layout)
	}
	p.Attributes().PutStr(names.InferenceBounds, t.text)
	t.result.now().Normalised++
}

// extremes copies the least and the greatest value of a histogram of one source: those of
// several are not since the same time.
func extremes(to, from pmetric.HistogramDataPoint, convert func(float64) float64) {
	if from.HasMin() {
		to.SetMin(convert(from.Min()))
	}
	if from.HasMax() {
		to.SetMax(convert(from.Max()))
	}
}

// exemplars adds converted copies.
func exemplars(to, from pmetric.ExemplarSlice, convert func(float64) float64) {
	for _, e := range from.All() {
		x := to.AppendEmpty()
		e.CopyTo(x)
		v := x.DoubleValue()
		if x.ValueType() == pmetric.ExemplarValueTypeInt {
			v = float64(x.IntValue())
		}
		x.SetDoubleValue(convert(v))
	}
}

// exponential writes an exponential histogram, which cannot be added to another.
func (t *emitter) exponential(e *families.Engine, o *output) {
	if len(o.points) > 1 {
		t.refuseOutput(o, InvalidHistogram)
		return
	}
	total, result := t.target.Count(o.key, o.base, o.layout, o.readings)
	if result != series.OK {
		t.refuse(&o.points[0], map[series.Result]Reason{series.Full: LimitSeries, series.Fell: InvalidHistogram}[result])
		return
	}
	p := pmetric.NewExponentialHistogramDataPoint()
	from := o.points[0].metric.ExponentialHistogram().DataPoints().At(o.points[0].number)
	from.CopyTo(p)
	p.Exemplars().RemoveIf(func(pmetric.Exemplar) bool { return true })
	exemplars(p.Exemplars(), from.Exemplars(), o.row.Convert)
	if !histogram.ConvertExponential(p, o.row.Convert) {
		t.refuse(&o.points[0], InvalidHistogram)
		return
	}
	p.SetStartTimestamp(total.Start)
	p.Attributes().RemoveIf(func(string, pcommon.Value) bool { return true })
	t.attributes(p.Attributes(), e, o)
	p.MoveTo(t.out.exponentials(o.row.Metric).AppendEmpty())
	t.result.now().Normalised++
}

func (t *emitter) refuseOutput(o *output, reason Reason) {
	for i := range o.points {
		t.refuse(&o.points[i], reason)
	}
}

// keepOutput lets the markers of a series pass that has never been one here.
func (t *emitter) keepOutput(o *output) {
	for i := range o.points {
		t.keep(&o.points[i])
	}
}

// ended writes that a series has ended, with the last of its sources: each marker in a
// metric of its own.
func (t *emitter) ended(e *families.Engine, o *output) {
	if o.row.Metric.Kind == names.Histogram {
		if t.live(o.base) != nil {
			return // in another source; what changed its layout is stale
		}
		all := t.target.EndAll(o.base)
		if len(all) == 0 {
			t.keepOutput(o)
		}
		for _, ended := range all {
			t.endedHistogram(e, o, ended)
		}
		return
	}
	if !t.target.End(o.key) && o.row.Metric.Kind == names.Counter {
		t.keepOutput(o)
		return
	}
	p := t.out.marker(o.row.Metric, o.unit)
	p.SetTimestamp(o.at)
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	t.attributes(p.Attributes(), e, o)
}

func (t *emitter) endedHistogram(e *families.Engine, o *output, is series.Ended) {
	if is.Layout == histogram.Exponential {
		p := t.out.exponentialMarker(o.row.Metric)
		p.SetTimestamp(o.at)
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		t.attributes(p.Attributes(), e, o)
		return
	}
	p := t.out.histogramMarker(o.row.Metric, o.unit)
	p.SetTimestamp(o.at)
	points.EndHistogram(p, is.Bounds.List())
	t.attributes(p.Attributes(), e, o)
	p.Attributes().PutStr(names.InferenceBounds, histogram.Text(is.Layout))
}

// stale ends histograms with another layout than before: other bounds are another series.
func (t *emitter) stale(e *families.Engine) {
	on := func(base uint64) bool {
		return t.live(base) != nil
	}
	t.target.Stale(on, func(base uint64, ended series.Ended) { t.endedHistogram(e, t.live(base), ended) })
}

func (t *emitter) live(base uint64) *output {
	for i := range t.outputs {
		if o := &t.outputs[i]; o.base == base && o.live > 0 && o.row.Metric.Kind == names.Histogram {
			return o
		}
	}
	return nil
}

// attributes writes the attributes of a series.
func (t *emitter) attributes(to pcommon.Map, e *families.Engine, o *output) {
	genAI, room := strings.HasPrefix(o.row.Metric.Name, "gen_ai."), 3+len(o.row.Attributes)+len(o.row.Dimensions)
	if genAI {
		room += 2
	}
	if o.row.Metric.Kind == names.Histogram {
		room++ // the bounds
	}
	if t.named != "" {
		room++
	}
	if o.subject.outcome != "" {
		room++
	}
	to.EnsureCapacity(room)
	to.PutStr(names.InferenceEngine, e.Name)
	put := func(key, value string) {
		if value != "" {
			to.PutStr(key, value)
		}
	}
	from := source{o.first, t.mayTake(o)}
	put(names.InferenceGateway, t.named)
	from.put(to, names.GenAIRequestModel, o.subject.model, e.Model...)
	from.put(to, names.InferenceEngineRank, o.subject.rank, e.Rank)
	put(names.InferenceOutcome, o.subject.outcome)
	for i, d := range o.row.Dimensions {
		from.put(to, d.Attribute, o.subject.words[i], d.Label)
	}
	for _, a := range o.row.Attributes {
		to.PutStr(a.Key, a.Value)
	}
	if genAI {
		to.PutStr(names.GenAIProviderName, e.Name)
		if _, ok := to.Get(names.GenAIOperationName); !ok {
			to.PutStr(names.GenAIOperationName, names.GenAIOperationAny)
		}
	}
	for _, key := range t.o.Attributes {
		put(key, label(o.first, key))
	}
}
