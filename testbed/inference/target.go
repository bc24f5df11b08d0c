// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/prompage"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/pages"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// successor is the engine that an upgrade makes of one. Others are as they were.
var successor = map[string]string{
	"vllm-0.5": "vllm-0.8", "vllm-0.8": "vllm-0.11", "vllm-0.11": "vllm-0.21", "nim-1": "vllm-0.21", "trtllm-1.1": "sglang-0.5", "sglang-0.5": "vllm-0.21",
	"lmdeploy": "vllm-0.5",
}

// target is a page that is scraped.
type target struct {
	name     string // of the page
	instance string // is the same whatever it becomes
	hint     string // model, for pages that do not name it
	upgrades int
	scraper  prompage.Target
	series   map[string]*history
	torn     map[string]bool // series that were once read while they were written
	engine   string          // of the last page that could be read
	out      *output
	wants    []want
	bounds   map[string][]float64 // by value of inference.bounds, of all targets
	report   func(what string)
}

func newTarget(name, model string, bounds map[string][]float64, report func(string)) *target {
	t := &target{name: name, instance: name, bounds: bounds, series: map[string]*history{}, torn: map[string]bool{}, report: report}
	if name == "tgi-3" || name == "llamacpp" {
		t.hint = model
	}
	return t
}

// forget is a restart of the collector: neither the scraper nor the processor knows what
// was on the pages before. A store does.
func (t *target) forget() {
	t.scraper, t.engine = prompage.Target{}, ""
	for key, h := range t.series {
		h.forgotten = true
		if t.torn[key] { // of which it is not known what the processor had
			h.known = false
			t.over(key, h)
			delete(t.series, key)
		}
	}
}

func (t *target) failf(format string, args ...any) {
	t.report(t.name + ": " + fmt.Sprintf(format, args...))
}

// scrape reads the page of a world at its time.
func (t *target) scrape(w *world, tr *translator, fails, race bool) error {
	for t.upgrades < w.upgrades {
		t.upgrades++
		if next, ok := successor[t.name]; ok {
			t.name = next
		}
	}
	text, err := printed(t.name, w, fails, race)
	if err != nil {
		return err
	}
	at := w.epoch.Add(w.now())
	md, err := t.scraper.Scrape(text, at)
	if err != nil {
		return err
	}
	torn := race && isTorn(md)
	attributes := md.ResourceMetrics().At(0).Resource().Attributes()
	attributes.PutStr("service.instance.id", t.instance)
	if t.hint != "" {
		attributes.PutStr("inference.model.hint", t.hint)
	}
	rm, err := tr.pass(md)
	if err != nil {
		return err
	}
	t.check(w, rm, text != nil, torn, at)
	return nil
}

// printed is the page of an engine for a world at its time; nil if it cannot be had.
func printed(name string, w *world, fails, race bool) ([]byte, error) {
	engine, err := pages.Find(name)
	if err != nil || fails || w.down && !engine.Gateway {
		return nil, err
	}
	in := pages.Input{Epoch: w.epoch, Pod: "pod-0", Ranks: w.tensorRanks, Race: race}
	if engine.Gateway {
		in.States = w.gatewayStates()
		for i := range in.States {
			in.States[i].Process = 0
		}
	} else {
		in.States = w.engineStates()
	}
	return engine.Page(in), nil
}

// isTorn is whether a bucket of a page has less than the one below it.
func isTorn(md pmetric.Metrics) bool {
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if m.Type() != pmetric.MetricTypeHistogram {
			continue
		}
		for _, p := range m.Histogram().DataPoints().All() {
			for _, b := range p.BucketCounts().All() {
				if b > 1<<53 {
					return true
				}
			}
		}
	}
	return false
}

// expected is what the page must give.
func (t *target) expected(w *world) *page {
	if g, ok := gateways[t.name]; ok {
		p := &page{engine: g.engine, prefix: "inference.gateway.", begins: g.begins}
		all, models := w.served()
		g.wants(p, all, models)
		return p
	}
	s := servers[t.name]
	p := &page{engine: s.engine, prefix: "inference.server.", begins: s.begins}
	s.wants(p, w.pod(t.hint))
	return p
}

func (t *target) check(w *world, rm pmetric.ResourceMetrics, had, torn bool, at time.Time) {
	p := &page{}
	if had {
		p = t.expected(w)
		t.engine = p.engine
	}
	o := read(rm, p.engine)
	for _, what := range o.wrong {
		t.failf("%s", what)
	}
	t.out, t.wants = o, p.wants
	t.up(o, had)
	known := t.known(w, p.begins)
	seen, excused := map[string]bool{}, !torn
	for i := range p.wants {
		want := &p.wants[i]
		seen[want.key] = true
		got := o.points[want.key]
		what := ""
		if got == nil {
			what = "is absent"
		} else {
			what = t.compare(want, got, known, at)
		}
		switch {
		case what == "":
		case want.kind == histogram && !excused:
			excused = true // the one that was read while it was written
			t.torn[want.key] = true
			t.without(want, got, known, at)
			if h := t.series[want.key]; h != nil && got == nil {
				h.refused = true
			}
		default:
			t.failf("%s %s", want.key, what)
		}
	}
	for key := range o.points {
		if !seen[key] {
			t.failf("%s is more than the page has", key)
		}
	}
	t.ends(o, had)
}

// without remembers a point of which one source was read while it was written, and left
// out.
func (t *target) without(whole *want, got *point, known, at time.Time) {
	for i := range whole.parts {
		w := *whole
		w.parts = slices.Clone(whole.parts)
		w.parts[i].count = absent
		if got != nil && len(w.parts) > 1 && t.compare(&w, got, known, at) == "" {
			return
		}
	}
}

func (t *target) up(o *output, had bool) {
	if t.engine == "" {
		return
	}
	metric := "inference.server.up "
	if gateways[t.name].engine != "" {
		metric = "inference.gateway.up "
	}
	want := 0.0
	if had {
		want = 1
	}
	if len(o.ups) != 1 || o.ups[0] != metric+t.engine || o.up != want {
		t.failf("up is %v of %v, not %v of %s%s", o.up, o.ups, want, metric, t.engine)
	}
	if slices.Contains(o.downs, metric+t.engine) {
		t.failf("%s%s has ended", metric, t.engine)
	}
}

// known is the start that series have by the page; zero if it has none.
func (t *target) known(w *world, b begins) time.Time {
	gateway := gateways[t.name].engine != ""
	switch {
	case b == nothing:
		return time.Time{}
	case gateway:
		return w.epoch
	case b == ofProcess:
		return w.epoch.Add(w.process)
	default:
		return w.epoch.Add(max(w.since, 0))
	}
}

// compare returns what is wrong with a point.
func (t *target) compare(want *want, got *point, known, at time.Time) string {
	if got.kind != want.kind {
		return fmt.Sprintf("is of kind %d, not %d", got.kind, want.kind)
	}
	if want.kind == gauge {
		delete(t.series, want.key)
		t.series[want.key] = &history{}
		if !near(got.value, want.value) {
			return fmt.Sprintf("is %v, not %v", got.value, want.value)
		}
		return ""
	}
	h := t.series[want.key]
	first := h == nil || h.layout != got.layout
	if first {
		if h != nil {
			t.changed(want.key, h)
		}
		h = &history{layout: got.layout}
	}
	trial := h.clone()
	expect, start := trial.next(want.parts, got.bounds, known, at)
	if got.value != expect.count {
		return fmt.Sprintf("is %v, not %v", got.value, expect.count)
	}
	if t.torn[want.key] && (got.start.Before(start) || got.start.Equal(at) || got.start.Equal(trial.began)) {
		trial.start = got.start // one of its sources was sound before the others, or instead of another
	} else if d := got.start.Sub(start); d.Abs() > time.Millisecond {
		return fmt.Sprintf("begins %v after the time that the page has", d)
	}
	if want.kind == histogram {
		if had, ok := t.bounds[got.layout]; ok && !slices.Equal(had, got.bounds) {
			return fmt.Sprintf("has the layout %s of other bounds, %v", got.layout, had)
		}
		t.bounds[got.layout] = got.bounds
		if what := compareHistogram(want, got, &expect); what != "" {
			return what
		}
	}
	if !trial.observe(got, first) {
		return fmt.Sprintf("falls to %v", got.value)
	}
	t.series[want.key] = trial
	return ""
}

func compareHistogram(want *want, got *point, expect *amount) (what string) {
	defer func() {
		if r := recover(); r != nil { // a bound that no page has
			what = fmt.Sprint(r)
		}
	}()
	if !near(got.sum, expect.sum) {
		return fmt.Sprintf("has a sum of %v, not %v", got.sum, expect.sum)
	}
	if want.sums {
		if len(got.bounds) > 0 || got.layout != "none" {
			return fmt.Sprintf("has bounds %v", got.bounds)
		}
		return ""
	}
	if len(got.bounds) == 0 || len(got.buckets) != len(got.bounds)+1 {
		return fmt.Sprintf("has %d bounds and %d buckets", len(got.bounds), len(got.buckets))
	}
	below := make([]float64, len(got.bounds))
	for i, b := range got.bounds {
		below[i] = got.below(i)
		if n := expect.below(b); below[i] != n {
			return fmt.Sprintf("has %v at most %v, not %v", below[i], b, n)
		}
	}
	if len(want.values) == 0 || expect.count != float64(len(want.values)) {
		return ""
	}
	for _, q := range []float64{.5, .95, .99} {
		lower, upper := bucket(got.bounds, requests.Quantile(want.values, q))
		if v := quantile(q, got.bounds, below, got.value); v < lower-1e-9 || v > upper+1e-9 {
			return fmt.Sprintf("has quantile %v %v, not between %v and %v", q, v, lower, upper)
		}
	}
	return ""
}

// bucket holds a value: of one above the last bound it is that bound, as it is for
// quantiles.
func bucket(bounds []float64, v float64) (lower, upper float64) {
	i, _ := slices.BinarySearch(bounds, v)
	if i == len(bounds) {
		return bounds[i-1], bounds[i-1]
	}
	if i > 0 {
		lower = bounds[i-1]
	}
	return min(lower, bounds[i]), bounds[i]
}

// changed is a series with other bounds: the one before must end.
func (t *target) changed(key string, h *history) {
	if !h.forgotten && t.out.ends[key+h.layout] != 1 {
		t.failf("%s: there is no end of the bounds before", key)
	}
	delete(t.out.ends, key+h.layout)
	t.over(key, h)
}

// ends checks that each series that is there no more has ended, and no other.
func (t *target) ends(o *output, had bool) {
	for _, key := range slices.Sorted(maps.Keys(t.series)) {
		h := t.series[key]
		if o.points[key] != nil {
			continue
		}
		if h.forgotten && !had {
			continue
		}
		n := o.ends[key+h.layout]
		delete(o.ends, key+h.layout)
		if h.refused && n == 0 {
			h.refused = false
			continue
		}
		if n != 1 && !h.forgotten && !t.replaced(key) && !t.unset(key) {
			t.failf("%s has %d markers of its end", key, n)
		}
		t.over(key, h)
		delete(t.series, key)
	}
	// Of a value that stands for none, such as -1, the end is there and never was a point.
	for key := range o.ends {
		if p := o.points[key]; p != nil && p.layout == "" {
			t.failf("%s ends and is there", key)
		}
	}
}

// replaced is whether a series is NIM's count of successes before there is one: 0, and
// replaced by those with a reason while its family is still on the page.
func (t *target) replaced(key string) bool {
	return t.name == "nim-1" && strings.Contains(key, "outcome=success") && !strings.Contains(key, "finish_reason")
}

// unset is whether a series is a ratio that is 0 on the page before there is one, as it is
// after a restart: of a gauge nothing is remembered that could end.
func (t *target) unset(key string) bool {
	return t.name == "sglang-0.5" && strings.HasPrefix(key, "inference.server.speculation.acceptance_ratio{")
}

// over compares what a store would have added up with the requests of all lives.
func (t *target) over(key string, h *history) {
	if h.prev == nil {
		return
	}
	if truth := h.lives + h.life; h.increase > truth || h.known && h.increase != truth {
		t.failf("%s: all increases are %v, and the requests' %v", key, h.increase, truth)
	}
}
