// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

type kind int

const (
	gauge kind = iota
	counter
	histogram
)

// want is a series that a page must give.
type want struct {
	key    string // name and attributes
	metric string
	kind   kind
	value  float64 // of a gauge
	// parts are the series of the page that a counter or a histogram is made of.
	parts []amount
	// figure, values: of a histogram of requests.
	figure requests.Figure
	values []float64
	sums   bool // a histogram without bounds
}

// identity of a series: its name and its attributes, in order.
func identity(metric string, pairs []string) string {
	pairs = slices.Clone(pairs)
	slices.Sort(pairs)
	return metric + "{" + strings.Join(slices.Compact(pairs), ",") + "}"
}

// subject is one series of each family: what it is of and the attributes of that.
type subject struct {
	attributes []string // key=value
	// of are the sources of the page, of which the series has the sum. Gauges are of all.
	of  []*about
	all *about
}

// page collects what a page must give.
type page struct {
	engine string
	prefix string // of the metrics: inference.server. or inference.gateway.
	begins begins
	wants  []want
}

// begins is what a page reports of the begin of its series.
type begins int

const (
	nothing   begins = iota
	ofProcess        // of the process
	ofSeries         // of the series: when the engine began to count
)

// view is the page for some subjects.
type view struct {
	*page
	subjects []subject
	present  bool // a counter of 0 is not on the page
}

func (p *page) of(subjects ...subject) view { return view{page: p, subjects: subjects} }

// counted is for families with series that come with the first count.
func (v view) counted() view {
	v.present = true
	return v
}

func (v view) add(metric string, s *subject, attributes []string, w want) {
	if !strings.HasPrefix(metric, "gen_ai.") {
		metric = v.prefix + metric
	}
	w.metric = metric
	w.key = identity(metric, slices.Concat([]string{"inference.engine=" + v.engine}, s.attributes, attributes))
	v.wants = append(v.wants, w)
}

func (v view) gauge(metric string, of func(*about) float64, attributes ...string) view {
	for i := range v.subjects {
		v.add(metric, &v.subjects[i], attributes, want{kind: gauge, value: of(v.subjects[i].all)})
	}
	return v
}

func (v view) count(metric string, of func(*about) float64, attributes ...string) view {
	return v.sources(metric, attributes, of)
}

// sources is a counter of which each source of the page is several series.
func (v view) sources(metric string, attributes []string, all ...func(*about) float64) view {
	for i := range v.subjects {
		w := want{kind: counter}
		any := false
		for _, a := range v.subjects[i].of {
			for _, of := range all {
				n := of(a)
				any = any || n > 0
				w.parts = append(w.parts, amount{count: n})
			}
		}
		if any || !v.present {
			if v.present {
				for j := range w.parts {
					if w.parts[j].count == 0 {
						w.parts[j].count = absent
					}
				}
			}
			v.add(metric, &v.subjects[i], attributes, w)
		}
	}
	return v
}

// absent is a source that is not on the page.
const absent = -1

func (v view) histogram(metric string, f requests.Figure, attributes ...string) view {
	for i := range v.subjects {
		s := &v.subjects[i]
		w := want{kind: histogram, figure: f}
		for _, a := range s.of {
			w.parts = append(w.parts, a.amount(f))
		}
		if len(s.of) == 1 && !steps(f) {
			w.values = s.of[0].values(f)
		}
		v.add(metric, s, attributes, w)
	}
	return v
}

// means is a histogram without bounds.
func (v view) means(metric string, count, sum func(*about) float64) view {
	for i := range v.subjects {
		a := v.subjects[i].of[0]
		v.add(metric, &v.subjects[i], nil, want{kind: histogram, sums: true, parts: []amount{{count: count(a), sum: sum(a)}}})
	}
	return v
}

// state, tokens, finished: attributes.

func state(s string) string  { return "inference.request.state=" + s }
func tokens(t string) string { return "inference.token.type=" + t }
func tier(t string) string   { return "inference.cache.tier=" + t }
func ended(o string) string  { return "inference.request.outcome=" + o }
func finish(r string) string { return "inference.finish_reason=" + r }

func model(name string) string { return "gen_ai.request.model=" + name }
func rank(i int) string        { return "inference.engine.rank=" + strconv.Itoa(i) }
