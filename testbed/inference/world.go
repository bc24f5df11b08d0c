// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/pages"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// world is a pod with its requests, which each engine reports, and what happens to it.
type world struct {
	epoch       time.Time
	tensorRanks int
	ranks       []*requests.Process
	model       string
	models      []string
	changed     []time.Duration // when each model but the first was loaded
	process     time.Duration   // when the process started last
	since       time.Duration   // when it began to count
	down        bool
	lives       int // how often it began to count from zero
	upgrades    int // how often it was another engine afterwards
	events      []event
}

type event struct {
	at time.Duration
	do func()
}

var modelNames = []string{"meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-32B", "mistral", "org/Model_v2.1-AWQ"}

// config is any traffic that an engine can have.
func config(d *rand.Rand) requests.Config {
	c := requests.Config{
		Model: modelNames[d.IntN(len(modelNames))], Rate: .2 + 6*d.Float64()*d.Float64(), Prompt: 5 + d.IntN(400), Output: 2 + d.IntN(60),
		Context: 256 << d.IntN(4), Slots: 1 + d.IntN(24), Queue: 1 + d.IntN(30), BlockSize: 8 << d.IntN(3),
	}
	c.Blocks = (c.Context+16)/c.BlockSize + 2 + d.IntN(100)
	some := func(most float64) float64 {
		if d.IntN(3) == 0 {
			return 0
		}
		return most * d.Float64()
	}
	c.Aborts, c.Errors, c.PrefixHits = some(.4), some(.2), some(1)
	if d.IntN(2) == 0 {
		c.Drafts, c.Accepted = 1+d.IntN(4), d.Float64()
	}
	for i := range d.IntN(4) {
		c.Adapters = append(c.Adapters, fmt.Sprintf("adapter-%d", i))
	}
	return c
}

// newWorld is a pod in which something may happen until a time.
func newWorld(d *rand.Rand, until time.Duration) (*world, error) {
	c := config(d)
	w := &world{
		epoch: time.Unix(1_790_000_000+d.Int64N(1e6), 0), tensorRanks: 1 + d.IntN(2), model: c.Model, models: []string{c.Model}, since: -1,
	}
	for range 1 + d.IntN(2) {
		p, err := requests.New(c, d.Uint64(), 0, load(d), pages.Bounds)
		if err != nil {
			return nil, err
		}
		w.ranks = append(w.ranks, p)
	}
	sometime := func() time.Duration { return time.Duration(d.Int64N(int64(until/time.Microsecond))) * time.Microsecond }
	for range d.IntN(3) {
		at := sometime()
		switch kind := d.IntN(5); kind {
		case 0, 1, 2:
			if kind == 2 {
				w.events = append(w.events, event{at, func() { w.upgrades++ }})
			}
			w.events = append(w.events, event{at, w.stop}, event{at + time.Duration(1+d.IntN(8_000_000))*time.Microsecond, w.start})
		case 3:
			next := modelNames[d.IntN(len(modelNames))]
			w.events = append(w.events, event{at, func() { w.swap(next) }})
		default:
			w.events = append(w.events, event{at, func() { w.sleep(true) }},
				event{at + time.Duration(1+d.IntN(5_000_000))*time.Microsecond, func() { w.sleep(false) }})
		}
	}
	slices.SortStableFunc(w.events, func(a, b event) int { return int(a.at - b.at) })
	return w, nil
}

// load is a rate that changes.
func load(d *rand.Rand) func(int64) float64 {
	quiet := d.Int64N(40)
	return func(second int64) float64 {
		if second >= quiet && second < quiet+5 {
			return 0
		}
		return 1
	}
}

func (w *world) advance(to time.Duration) {
	for len(w.events) > 0 && w.events[0].at <= to {
		w.run(w.events[0].at)
		w.events[0].do()
		w.events = w.events[1:]
	}
	w.run(to)
}

func (w *world) run(to time.Duration) {
	for _, p := range w.ranks {
		p.Advance(to)
	}
}

func (w *world) now() time.Duration { return w.ranks[0].Now() }

func (w *world) stop() {
	for _, p := range w.ranks {
		p.Stop()
	}
	w.down = true
}

func (w *world) start() {
	if !w.down {
		return
	}
	for _, p := range w.ranks {
		p.Start()
	}
	w.down, w.process, w.since = false, w.now(), w.now()
	w.lives++
}

func (w *world) swap(model string) {
	if w.down || slices.Contains(w.models, model) {
		return
	}
	for _, p := range w.ranks {
		p.Swap(model)
	}
	w.model, w.since = model, w.now()
	w.models, w.changed = append(w.models, model), append(w.changed, w.since)
	w.lives++
}

func (w *world) sleep(asleep bool) {
	if w.down {
		return
	}
	for _, p := range w.ranks {
		p.Sleep(asleep)
	}
}

// pod is what a page of it is about now.
func (w *world) pod(hint string) *pod {
	d := &pod{model: w.model, hint: hint}
	var states []requests.State
	for _, p := range w.ranks {
		s := p.State()
		states = append(states, s)
		d.ranks = append(d.ranks, newAbout(w.since, w.now(), s, p))
	}
	d.whole = newAbout(w.since, w.now(), requests.Merge(states), w.ranks...)
	return d
}

// engineStates are what the page of an engine is printed from.
func (w *world) engineStates() (out []requests.State) {
	for _, p := range w.ranks {
		s := p.State()
		s.Name = "pod-0"
		out = append(out, s)
	}
	return out
}

// gatewayStates are what the page of a gateway is printed from.
func (w *world) gatewayStates() (out []requests.State) {
	for i, p := range w.ranks {
		for _, s := range p.Seen() {
			s.Name = fmt.Sprintf("pod-0-%d", i)
			out = append(out, s)
		}
	}
	return out
}

// served are all models, as a gateway knows them.
func (w *world) served() (all *about, models []served) {
	byModel := map[string][]requests.State{}
	for _, p := range w.ranks {
		for _, s := range p.Seen() {
			byModel[s.Model] = append(byModel[s.Model], s)
		}
	}
	all = newAbout(-1, w.now(), requests.Merge(w.gatewayStates()), w.ranks...)
	for i, name := range w.models {
		from, to := time.Duration(-1), w.now()
		if i > 0 {
			from = w.changed[i-1]
		}
		if i < len(w.changed) {
			to = w.changed[i]
		}
		m := served{model: name, whole: newAbout(from, to, requests.Merge(byModel[name]), w.ranks...)}
		for r, p := range w.ranks {
			m.ranks = append(m.ranks, newAbout(from, to, byModel[name][r], p))
		}
		models = append(models, m)
	}
	return all, models
}
