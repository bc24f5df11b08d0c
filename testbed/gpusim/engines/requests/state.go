// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"slices"
	"strings"
	"time"
)

// State is what an engine can report about itself now, since it started.
type State struct {
	Name    string // of the engine, for a page about several; set by the caller
	Model   string
	Up      bool          // it serves
	Process time.Duration // when the process started
	Since   time.Duration // when it began to count: later, if it has loaded another model
	Now     time.Duration
	Engines int // that the state is of
	Asleep  bool

	Running  int // paused ones too
	Waiting  int
	NoToken  int // requests that have no token yet, in the queue or not
	Slots    int
	Used     int // blocks
	Blocks   int
	Block    int // tokens of a block
	InBlocks int // tokens that the running requests have in memory
	Context  int
	Drafts   int // tokens proposed at once

	Adapters []string // that can be asked for
	// Mixes are the adapters of running and of waiting requests, as lists with commas
	// between them, and when each such mix was last there, newest last.
	Mixes []Mix

	Counts
	histograms [figures]Histogram
}

func (s *State) counted(l *life) {
	s.Since, s.Counts = l.since, l.Counts
	for f := range s.histograms {
		s.histograms[f].add(&l.histograms[f])
	}
}

// Seen is what stands before the engine knows, a state for each model that it has
// served: counts go on when the engine starts again, and requests that this took with
// it have ended.
func (p *Process) Seen() (out []State) {
	for _, model := range p.models {
		var s State
		if model == p.cfg.Model {
			s = p.State()
			s.histograms = [figures]Histogram{}
		} else {
			s = State{Now: p.now, Model: model, Block: p.cfg.BlockSize, Context: p.cfg.Context}
		}
		s.counted(p.ever[model])
		out = append(out, s)
	}
	return out
}

// Less takes away what was counted before, by the same engines.
func (s *State) Less(before *State) {
	s.Since = before.Now
	s.Counts.add(&before.Counts, -1)
	for f := range s.histograms {
		s.histograms[f].less(&before.histograms[f])
	}
}

// maxMixes is how many are remembered: those seen last.
const maxMixes = 50

// mix adds the adapters that are there now.
func mix(all []Mix, now Mix) []Mix {
	all = slices.DeleteFunc(all, func(m Mix) bool { return m.Running == now.Running && m.Waiting == now.Waiting })
	return append(all[max(len(all)-maxMixes+1, 0):], now)
}

// Mix of LoRA adapters.
type Mix struct {
	Running, Waiting string
	Seen             time.Duration
}

// Histogram of a figure.
func (s *State) Histogram(f Figure) *Histogram { return &s.histograms[f] }

// Limits of the engine.
func (s *State) Limits() Limits { return (&Config{Context: s.Context}).limits() }

// State is what there is to report now.
func (p *Process) State() State {
	s := State{
		Model: p.cfg.Model, Up: p.now >= p.up, Process: p.started, Now: p.now, Engines: 1, Asleep: p.asleep, Running: len(p.running), Waiting: len(p.waiting),
		Slots: p.cfg.Slots, Used: p.used, Blocks: p.cfg.Blocks, Block: p.cfg.BlockSize, Context: p.cfg.Context, Drafts: p.cfg.Drafts,
		Adapters: p.cfg.Adapters,
	}
	for _, r := range p.running {
		s.InBlocks += r.Prompt + r.Output()
	}
	for _, r := range slices.Concat(p.running, p.waiting) {
		if r.Output() == 0 {
			s.NoToken++
		}
	}
	s.counted(p.life)
	s.Mixes = slices.Clone(p.life.mixes)
	return s
}

func adapters(all []*Request) string {
	var names []string
	for _, r := range all {
		if r.Adapter != "" {
			names = append(names, r.Adapter)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// Merge is the state of several engines as one: what can be added is added.
func Merge(states []State) State {
	out := State{}
	for i := range states {
		s := &states[i]
		if i == 0 {
			out = *s
			out.histograms = [figures]Histogram{}
			out.Counts, out.Mixes = Counts{}, nil
			out.Engines, out.Running, out.Waiting, out.NoToken, out.Slots, out.Used, out.Blocks, out.InBlocks = 0, 0, 0, 0, 0, 0, 0, 0
		}
		out.Up = out.Up || s.Up
		out.Since = min(out.Since, s.Since)
		out.Engines += s.Engines
		out.Running += s.Running
		out.Waiting += s.Waiting
		out.NoToken += s.NoToken
		out.Slots += s.Slots
		out.Used += s.Used
		out.Blocks += s.Blocks
		out.InBlocks += s.InBlocks
		out.Counts.add(&s.Counts, 1)
		for _, m := range s.Mixes {
			out.Mixes = mix(out.Mixes, m)
		}
		for f := range out.histograms {
			out.histograms[f].add(&s.histograms[f])
		}
	}
	return out
}
