// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"sort"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// about is what a series is about: the requests of some engines since they began to count.
type about struct {
	procs    []*requests.Process
	from, to time.Duration // later than from, not later than to
	state    requests.State
	truth    *requests.Window
	sorted   map[requests.Figure][]float64
}

func newAbout(from, to time.Duration, state requests.State, procs ...*requests.Process) *about {
	return &about{procs: procs, from: from, to: to, state: state, sorted: map[requests.Figure][]float64{}}
}

// window counts the requests.
func (a *about) window() *requests.Window {
	if a.truth == nil {
		w := requests.Truth(a.procs, a.from, a.to)
		a.truth = &w
	}
	return a.truth
}

// values of a figure of the requests, sorted.
func (a *about) values(f requests.Figure) []float64 {
	v, ok := a.sorted[f]
	if !ok {
		v = requests.Values(a.procs, f, a.from, a.to)
		a.sorted[f] = v
	}
	return v
}

// each adds up something of the requests that arrived.
func (a *about) each(of func(*requests.Request) int) float64 {
	n := 0
	for _, p := range a.procs {
		for _, r := range p.Requests() {
			if r.Arrival > a.from && r.Arrival <= a.to {
				n += of(r)
			}
		}
	}
	return float64(n)
}

// scheduled is the part of a figure of requests that have left the queue.
func scheduled(of func(*requests.Request) int) func(*about) float64 {
	return func(a *about) float64 {
		return a.each(func(r *requests.Request) int {
			if r.Scheduled < 0 {
				return 0
			}
			return of(r)
		})
	}
}

// steps are figures of the engine's steps, of which no list is kept.
func steps(f requests.Figure) bool {
	return f == requests.StepTokens || f == requests.StepBatch || f == requests.StepSeconds
}

// amount is a part of a series that is counted: how many and how much, and how many were at
// most a bound, where that is known.
type amount struct {
	count, sum float64
	below      func(bound float64) float64
}

func (a *about) amount(f requests.Figure) amount {
	if steps(f) {
		h := a.state.Histogram(f)
		return amount{float64(h.Count), h.Sum, func(b float64) float64 { return float64(h.At(b)) }}
	}
	values := a.values(f)
	total := 0.0
	for _, v := range values {
		total += v
	}
	return amount{float64(len(values)), total, func(b float64) float64 {
		return float64(sort.Search(len(values), func(i int) bool { return values[i] > b }))
	}}
}

// What counters count of the requests.

func reason(r requests.Reason) func(*about) float64 {
	return func(a *about) float64 { return float64(a.window().Reasons[r.String()]) }
}

func outcome(all ...requests.Outcome) func(*about) float64 {
	return func(a *about) float64 {
		n := 0
		for _, o := range all {
			n += a.window().Finished[o]
		}
		return float64(n)
	}
}

func total(of func(*requests.Window) int) func(*about) float64 {
	return func(a *about) float64 { return float64(of(a.window())) }
}

func now(of func(*requests.State) int) func(*about) float64 {
	return func(a *about) float64 { return float64(of(&a.state)) }
}

var (
	inputTokens    = total(func(w *requests.Window) int { return w.InputTokens })
	outputTokens   = total(func(w *requests.Window) int { return w.OutputTokens })
	finishedInput  = total(func(w *requests.Window) int { return w.FinishedInput })
	finishedOutput = total(func(w *requests.Window) int { return w.FinishedOutput })
	finishedCached = total(func(w *requests.Window) int { return w.FinishedCached })
	succeeded      = outcome(requests.Success)
	failed         = outcome(requests.Failed)
	// cachedInput is of prompts that were prefilled, as inputTokens.
	cachedInput = func(a *about) float64 {
		return a.each(func(r *requests.Request) int {
			if r.Output() == 0 {
				return 0
			}
			return r.Cached
		})
	}
	queried       = scheduled(func(r *requests.Request) int { return r.Prompt })
	hits          = scheduled(func(r *requests.Request) int { return r.Cached })
	preemptions   = func(a *about) float64 { return a.each(func(r *requests.Request) int { return r.Preemptions }) }
	queriedBlocks = func(a *about) float64 {
		return scheduled(func(r *requests.Request) int { return r.Prompt / a.state.Block })(a)
	}
	hitBlocks = func(a *about) float64 {
		return scheduled(func(r *requests.Request) int { return r.Cached / a.state.Block })(a)
	}
	drafts      = now(func(s *requests.State) int { return s.Drafts })
	running     = now(func(s *requests.State) int { return s.Running })
	waiting     = now(func(s *requests.State) int { return s.Waiting })
	slots       = now(func(s *requests.State) int { return s.Slots })
	capacity    = now(func(s *requests.State) int { return s.Blocks * s.Block })
	noToken     = now(func(s *requests.State) int { return s.NoToken })
	utilization = func(a *about) float64 { return float64(a.state.Used) / float64(max(a.state.Blocks, 1)) }
)

func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
