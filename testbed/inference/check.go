// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package inference compares what the inference processor makes of the pages of all
// engines with the requests that the pages are about, and with each other. A set is a pod
// with requests of its own, which every engine reports; it restarts, is upgraded, loads
// another model, sleeps, and its pages fail or are read while they are written; the
// collector restarts, too. It has no clock: a set is a function of its seed.
package inference

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/pages"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// Difference is one that was found in a set.
type Difference struct {
	Seed uint64
	What string
}

func (d Difference) String() string { return fmt.Sprintf("seed %d: %s", d.Seed, d.What) }

// Sets checks the sets of seeds, as many at once as there are cores, and calls found for
// each difference in their order.
func Sets(seeds []uint64, found func(Difference)) error {
	type result struct {
		all []Difference
		err error
	}
	results := make([]chan result, len(seeds))
	for i := range results {
		results[i] = make(chan result, 1)
	}
	var taken atomic.Int64
	next := func() int { return int(taken.Add(1)) - 1 }
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for i := next(); i < len(seeds); i = next() {
				all, err := Set(seeds[i])
				results[i] <- result{all, err}
			}
		}()
	}
	for i := range results {
		r := <-results[i]
		if r.err != nil {
			taken.Store(int64(len(seeds))) // the others end, too
			return fmt.Errorf("seed %d: %w", seeds[i], r.err)
		}
		for _, d := range r.all {
			found(d)
		}
	}
	return nil
}

// Set checks the set of a seed.
func Set(seed uint64) ([]Difference, error) { return set(seed, fault{}) }

// helpers are models on Triton's page that hand requests to others.
var helpers = map[string]any{"models_exclude": []any{"ensemble", "preprocessing", "postprocessing"}}

func set(seed uint64, f fault) (all []Difference, err error) {
	report := func(what string) { all = append(all, Difference{seed, what}) }
	d := rand.New(rand.NewPCG(seed, 0x1f))
	reads := 3 + d.IntN(3)
	interval := time.Duration(3+d.IntN(10)) * time.Second
	w, err := newWorld(d, time.Duration(reads)*interval)
	if err != nil {
		return nil, err
	}
	tr, err := newTranslator(f, helpers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tr.Shutdown(context.Background())) }()
	var targets []*target
	bounds := map[string][]float64{}
	for _, name := range pages.Names() {
		targets = append(targets, newTarget(name, w.model, bounds, report))
	}
	restarts := rand.New(rand.NewPCG(seed, 0x2e)) // of the collector: other sets are as they were without
	restarted := false                            // and no page has been read since
	for i := range reads {
		if seed%5 == 0 && i > 0 && restarts.IntN(3) == 0 {
			restarted = true
			if tr, err = tr.restart(); err != nil {
				return all, err
			}
			for _, t := range targets {
				t.forget()
			}
		}
		w.advance(time.Duration(i+1)*interval - time.Duration(d.IntN(1_000_000))*time.Microsecond)
		fails, race := d.IntN(8) == 0, d.IntN(6) == 0
		race = race && !restarted // what a torn page leaves out is known from the page before
		restarted = restarted && (fails || w.down)
		for _, t := range targets {
			if err := t.scrape(w, tr, fails, race); err != nil {
				return all, fmt.Errorf("%s: %w", t.name, err)
			}
		}
		if !fails && !race && !w.down {
			agree(targets, w, report)
		}
	}
	for _, t := range targets {
		for key, h := range t.series {
			t.over(key, h)
		}
	}
	return all, service(d, w, targets, tr, report)
}

// agree compares the engines with each other.
func agree(targets []*target, w *world, report func(string)) {
	type seen struct {
		engine string
		value  float64
	}
	have := map[string]seen{}
	same := func(t *target, what string, v float64) {
		was, ok := have[what]
		if !ok {
			have[what] = seen{t.name, v}
		} else if was.value != v {
			report(fmt.Sprintf("%s of %s is %v, of %s %v", what, was.engine, was.value, t.name, v))
		}
	}
	success := outcome(requests.Success)(w.pod("").whole)
	for _, t := range targets {
		if gateways[t.name].engine != "" {
			sum := t.sum("inference.gateway.requests.finished{", "inference.request.outcome=success")
			if all, _ := w.served(); sum != succeeded(all) {
				report(fmt.Sprintf("%s has %v successes, not %v", t.name, sum, succeeded(all)))
			}
			if n := t.sum("inference.server.", "") + t.sum("gen_ai.server.", ""); n != 0 {
				report(t.name + " is a gateway and counts as a server")
			}
			continue
		}
		if t.name == "ray-vllm" && w.lives > 0 && len(w.ranks) > 1 {
			continue // where one of its workers did not fall, it goes on with what was before
		}
		if t.name != "llamacpp" {
			if sum := t.sum("inference.server.requests.finished{", "inference.request.outcome=success"); sum != success {
				report(fmt.Sprintf("%s has %v successes, not %v", t.name, sum, success))
			}
		}
		for _, f := range []string{"gen_ai.server.request.duration", "gen_ai.server.time_to_first_token", "gen_ai.server.time_per_output_token",
			"inference.server.inter_token_latency", "inference.server.request.queue_time", "inference.server.request.tokens"} {
			for what, n := range t.histograms(f) {
				same(t, what, n)
			}
		}
	}
}

// sum adds up the numbers of series.
func (t *target) sum(prefix, attribute string) (n float64) {
	for key, p := range t.out.points {
		if strings.HasPrefix(key, prefix) && strings.Contains(key, attribute) {
			n += p.value
		}
	}
	return n
}

// histograms are the counts of a metric at each bound, of all ranks, by what they count.
func (t *target) histograms(metric string) map[string]float64 {
	out := map[string]float64{}
	for i := range t.wants {
		w := &t.wants[i]
		p := t.out.points[w.key]
		if w.metric != metric || w.sums || p == nil {
			continue
		}
		what := fmt.Sprintf("%s (figure %d)", metric, w.figure)
		out[what+" count"] += p.value
		for i, b := range p.bounds {
			out[fmt.Sprintf("%s at most %v", what, b)] += p.below(i)
		}
	}
	return out
}

// service adds a second pod of the same service with an engine of its own, and compares
// the service's quantiles, by layout of bounds, with those of the pods.
func service(d *rand.Rand, w *world, targets []*target, tr *translator, report func(string)) error {
	other, err := newWorld(d, time.Minute)
	if err != nil {
		return err
	}
	other.events = nil
	other.advance(time.Duration(10+d.IntN(20)) * time.Second)
	engines := engineNames()
	first := targets[d.IntN(len(targets))]
	second := newTarget(engines[d.IntN(len(engines))], other.model, first.bounds, report)
	second.instance += " of another pod"
	if gateways[first.name].engine != "" || first.out == nil {
		return nil
	}
	if err := second.scrape(other, tr, false, false); err != nil {
		return err
	}
	for _, metric := range []string{"gen_ai.server.request.duration", "gen_ai.server.time_to_first_token", "inference.server.inter_token_latency"} {
		layouts(metric, []*target{first, second}, report)
	}
	return nil
}

// engineNames are the pages of engines, in order.
func engineNames() (out []string) {
	for _, name := range pages.Names() {
		if _, ok := servers[name]; ok {
			out = append(out, name)
		}
	}
	return out
}

// layouts checks the quantiles of a service: the greatest of those of its layouts.
func layouts(metric string, targets []*target, report func(string)) {
	type layout struct{ bounds, below []float64 }
	all, counts := map[string]*layout{}, map[string]float64{}
	var pods [][]float64
	step := func(float64) (float64, float64) { return math.Inf(1), math.Inf(-1) }
	for _, t := range targets {
		for i := range t.wants {
			w := &t.wants[i]
			p := t.out.points[w.key]
			if w.metric != metric || p == nil || len(w.values) == 0 || float64(len(w.values)) != p.value {
				continue
			}
			pods = append(pods, w.values)
			l := all[p.layout]
			if l == nil {
				l = &layout{p.bounds, make([]float64, len(p.bounds))}
				all[p.layout] = l
			}
			for i := range p.bounds {
				l.below[i] += p.below(i)
			}
			counts[p.layout] += p.value
			before, bounds := step, p.bounds
			step = func(v float64) (float64, float64) {
				lower, upper := before(v)
				from, to := bucket(bounds, v)
				return min(lower, from), max(upper, to)
			}
		}
	}
	if len(pods) == 0 {
		return
	}
	for _, q := range []float64{.5, .95, .99} {
		got := math.Inf(-1)
		for name, l := range all {
			got = max(got, quantile(q, l.bounds, l.below, counts[name]))
		}
		least, most := math.Inf(1), math.Inf(-1)
		for _, values := range pods {
			v := requests.Quantile(values, q)
			least, most = min(least, v), max(most, v)
		}
		lower, _ := step(least)
		_, upper := step(most)
		if got < lower-1e-9 || got > upper+1e-9 {
			report(fmt.Sprintf("%s of %s and %s: quantile %v of the service is %v, and those of its pods are between %v and %v", metric,
				targets[0].name, targets[1].name, q, got, least, most))
		}
	}
}
