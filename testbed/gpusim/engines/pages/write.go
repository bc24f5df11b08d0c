// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// style is how a client library writes a page.
type style struct {
	number  func(float64) string
	le      func(float64) string // default: as number
	order   string               // of a histogram's parts: b(uckets), c(ount), s(um); default bcs
	leLast  bool                 // le and quantile stand behind the labels; else all are sorted
	created bool                 // a gauge NAME_created for each counter and histogram
	process bool                 // families of the Python process come first
	cut     bool                 // the last line does not end
}

// Page is what the engine prints.
func (e *Engine) Page(in Input) []byte {
	w := &writer{engine: e, in: &in}
	w.whole = view{requests.Merge(in.States), 0, &in}
	for i, state := range w.parts() {
		w.ranks = append(w.ranks, &view{state, i, &in})
	}
	if e.style.process {
		for i := range processRows {
			w.family(&processRows[i])
		}
	}
	for i := range e.rows {
		w.family(&e.rows[i])
	}
	out := w.Bytes()
	if e.style.cut {
		out = bytes.TrimSuffix(out, []byte("\n"))
	}
	return out
}

// parts are what has series of its own: each rank of an engine; each model behind a
// gateway.
func (w *writer) parts() []requests.State {
	if !w.engine.Gateway {
		return w.in.States
	}
	var models []string
	byModel := map[string][]requests.State{}
	for _, s := range w.in.States {
		if byModel[s.Model] == nil {
			models = append(models, s.Model)
		}
		byModel[s.Model] = append(byModel[s.Model], s)
	}
	var out []requests.State
	for _, m := range models {
		out = append(out, requests.Merge(byModel[m]))
	}
	return out
}

type writer struct {
	bytes.Buffer
	engine *Engine
	in     *Input
	whole  view
	ranks  []*view
	raced  bool
}

// series is where samples of a family come from: a view under some labels.
type series struct {
	view   *view
	labels labels
}

func (w *writer) series(r *row) []series {
	if r.of != nil {
		return r.of(w.in)
	}
	views, base := []*view{&w.whole}, w.engine.labels
	if (w.engine.ranked || w.engine.Gateway) && !r.merged && !r.free {
		views = w.ranks
	}
	switch {
	case r.free:
		base = noLabels
	case r.base != nil:
		base = r.base
	}
	var out []series
	for _, v := range views {
		if w.engine.repeated == nil || r.merged || r.free || r.base != nil {
			out = append(out, series{v, base(v)})
			continue
		}
		for _, l := range w.engine.repeated(v) {
			out = append(out, series{v, l})
		}
	}
	return out
}

func (w *writer) family(r *row) {
	if r.when != nil && !r.when(&w.whole) {
		return
	}
	name := w.engine.prefix + r.name
	if strings.HasPrefix(r.name, "=") {
		name = r.name[1:]
	}
	headed := false
	var started []labels
	for _, s := range w.series(r) {
		fixed := slices.Concat(s.labels, r.labels)
		if !headed && (r.each == nil || len(r.each(s.view)) > 0) {
			w.header(name, r.typ, r.help)
			headed = true
		}
		switch {
		case r.quantiles != nil:
			w.summary(name, fixed, s.view, r)
		case r.bounds != nil:
			w.histogram(name, fixed, s.view, r)
			started = append(started, fixed)
		case r.each != nil:
			for _, one := range r.each(s.view) {
				w.sample(name, slices.Concat(fixed, one.labels), "", one.value)
				started = append(started, slices.Concat(fixed, one.labels))
			}
		default:
			w.sample(name, fixed, "", r.value(s.view))
			started = append(started, fixed)
		}
	}
	if w.engine.style.created && headed && !r.early && (r.typ == "counter" || r.typ == "histogram") {
		w.created(name, r, started)
	}
}

// created prints when each series of a family began.
func (w *writer) created(name string, r *row, all []labels) {
	if r.typ == "counter" {
		name = strings.TrimSuffix(name, "_total")
	}
	name += "_created"
	w.header(name, "gauge", r.help)
	for _, l := range all {
		w.sample(name, l, "", w.whole.unix(w.whole.Since))
	}
}

func (w *writer) header(name, typ, help string) {
	w.WriteString("# HELP " + name + " " + help + "\n# TYPE " + name + " " + typ + "\n")
}

// sample writes one line; last is a label that the style may put last, as le="1".
func (w *writer) sample(name string, l labels, last string, v float64) {
	w.line(name, l, last, w.engine.style.number(v))
}

func (w *writer) line(name string, l labels, last, value string) {
	w.WriteString(name)
	pairs := make([]string, 0, len(l)/2+1)
	for i := 0; i < len(l); i += 2 {
		pairs = append(pairs, l[i]+"="+strconv.Quote(l[i+1]))
	}
	if !w.engine.style.leLast {
		if last != "" {
			pairs = append(pairs, last)
		}
		slices.Sort(pairs)
	} else if last != "" {
		pairs = append(pairs, last)
	}
	if len(pairs) > 0 {
		w.WriteString("{" + strings.Join(pairs, ",") + "}")
	}
	w.WriteString(" " + value + "\n")
}

func (w *writer) histogram(name string, l labels, v *view, r *row) {
	h, st := v.Histogram(r.figure), &w.engine.style
	le := st.le
	if le == nil {
		le = st.number
	}
	order := st.order
	if order == "" {
		order = "bcs"
	}
	count := strconv.FormatUint
	number := func(n uint64) string {
		if n > 1<<53 {
			return count(n, 10)
		}
		return st.number(float64(n))
	}
	for _, part := range order {
		switch part {
		case 'c':
			w.line(name+"_count", l, "", number(h.Count))
		case 's':
			w.line(name+"_sum", l, "", st.number(h.Sum*r.factor()))
		default:
			var below uint64
			for _, b := range r.bounds(v.Limits()) {
				n := h.At(b / r.factor())
				if w.in.Race && !w.raced && below > 0 {
					n, w.raced = below-1, true
				}
				below = n
				w.line(name+"_bucket", l, "le="+strconv.Quote(le(b)), number(n))
			}
			w.line(name+"_bucket", l, `le="+Inf"`, number(h.Count))
		}
	}
}

// summary prints quantiles of what there was since the start. The value of a family
// without an observation is 3, as Triton's.
func (w *writer) summary(name string, l labels, v *view, r *row) {
	h := v.Histogram(r.figure)
	w.sample(name+"_count", l, "", float64(h.Count))
	w.sample(name+"_sum", l, "", math.Round(h.Sum*r.factor()))
	for _, q := range r.quantiles {
		value := 3.0
		if h.Count > 0 {
			value = math.Round(h.Quantile(q) * r.factor())
		}
		w.sample(name, l, "quantile="+strconv.Quote(strconv.FormatFloat(q, 'f', -1, 64)), value)
	}
}

// python is how the Prometheus client for Python writes a number: always with a point,
// and from a million on with an exponent of one zero and as many digits as it takes.
func python(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "+Inf"
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if a := math.Abs(v); v != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	whole, part, _ := strings.Cut(s, ".")
	if part == "" {
		part = "0"
	}
	if v > 0 && len(whole) > 6 {
		mantissa := strings.TrimRight(whole[:1]+"."+whole[1:]+part, "0.")
		return mantissa + "e+0" + strconv.Itoa(len(whole)-1)
	}
	return whole + "." + part
}

// plain has no exponents: the libraries of Rust and C++.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// golang is the library for Go.
func golang(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// sixDigits is what a C++ stream prints.
func sixDigits(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
