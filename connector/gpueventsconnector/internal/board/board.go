// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

// Reasons are all reasons against a board.
var Reasons = []*Reason{
	&recoveryAction, &xidReset, &xidRestart, &xidLink, &xidMechanics, &xidSoftware, &xidSupport, &xidRepeated,
	&eccUncorrected, &remapPending, &remapFailed, &remapWorn, &sramWorn, &pagesWorn,
	&nvlinkErrors, &fabric, &pcieReplays, &pcieWidth, &throttle, &temperature, &lost, &recurring,
}

// Active is a reason that is active.
type Active struct {
	Reason *Reason
	State  health.State
	Action health.Action
	Since  pcommon.Timestamp
	// Last is when its cause was seen last.
	Last             pcommon.Timestamp
	Value, Threshold float64
	// Codes are the XIDs of it, the first one first.
	Codes []int
}

// Board is what is known of the health of one board. The zero Board has seen nothing.
type Board struct {
	Since    pcommon.Timestamp // since when it is watched
	active   []active          // by reason
	memory   map[int]*Memory   // of the reasons with a Judge that has one
	fresh    uint64            // a bit for each reason that was read last
	incident incident
	counters [3]float64           // of Counters, as they were read last
	episodes [3]pcommon.Timestamp // ends of failed episodes by a reset or a boot, the newest first
}

type active struct {
	reason int
	Active
}

// Counters are the inputs that fall when the GPU is reset: the driver counts from zero.
var Counters = []rule.Input{
	{Metric: &names.HwEnergy, Count: true, Most: rule.MostCount},
	{Metric: &names.HwErrors, Attribute: names.ErrorType, Values: []string{"corrected", names.ErrorTypeUncorrected}, Count: true, Most: rule.MostCount},
}

// Places are where the readings are in the values of a page.
type Places struct {
	Reasons  [][]int // of the inputs of each reason
	Counters []int
}

// Take judges a page.
func (b *Board) Take(values []float64, places *Places, at pcommon.Timestamp) {
	if b.Since == 0 {
		b.Since = at
	}
	for i := 0; i < len(places.Counters); i += 2 { // the second of two is of deltas
		v := values[places.Counters[i]]
		if v < b.counters[i/2] {
			b.Seen(Reset, at)
		}
		if !math.IsNaN(v) {
			b.counters[i/2] = v
		}
	}
	b.fresh = 0
	for i, r := range Reasons {
		readings := Readings{Values: values, Index: places.Reasons[i]}
		if r.Judge == nil {
			if slices.ContainsFunc(places.Reasons[i], func(place int) bool { return !math.IsNaN(values[place]) }) {
				b.fresh |= 1 << i
			}
			b.quiet(i, at)
			continue
		}
		m := b.memoryOf(i)
		f := r.Judge(readings, m, at)
		if !f.Known {
			continue
		}
		m.at = at
		b.fresh |= 1 << i
		switch {
		case f.Raise:
			b.raise(i, at, f, 0)
		case f.Clear && r.ClearedBy == 0:
			b.clear(i, at)
		}
		b.quiet(i, at)
		if r == &recoveryAction && f.Clear {
			// The driver asks for nothing: what a code before this page asked for is done.
			for _, of := range []*Reason{&xidReset, &xidRestart} {
				if a := b.find(slices.Index(Reasons, of)); a != nil && a.Last < at {
					b.clear(a.reason, at)
				}
			}
		}
	}
}

func (b *Board) memoryOf(i int) *Memory {
	if b.memory == nil {
		b.memory = map[int]*Memory{}
	}
	m := b.memory[i]
	if m == nil {
		m = &Memory{}
		b.memory[i] = m
	}
	return m
}

func (b *Board) find(reason int) *active {
	i, found := slices.BinarySearchFunc(b.active, reason, func(a active, reason int) int { return a.reason - reason })
	if !found {
		return nil
	}
	return &b.active[i]
}

// raise makes a reason active, or brings it up to date.
func (b *Board) raise(reason int, at pcommon.Timestamp, f Finding, code int) {
	i, found := slices.BinarySearchFunc(b.active, reason, func(a active, reason int) int { return a.reason - reason })
	if !found {
		b.active = slices.Insert(b.active, i, active{reason, Active{Reason: Reasons[reason], Since: at}})
	}
	a := &b.active[i]
	a.Last, a.Value, a.Threshold = at, f.Value, f.Threshold
	state, action := a.Reason.State, a.Reason.Action
	if f.State != health.OK {
		state = f.State
	}
	if f.Action != health.None {
		action = f.Action
	}
	if code == 0 {
		a.State, a.Action = state, action
		return
	}
	// Of several XIDs the worst counts.
	a.State, a.Action = max(a.State, state), max(a.Action, action)
	if len(a.Codes) < maxCodes && !slices.Contains(a.Codes, code) {
		a.Codes = append(a.Codes, code)
	}
}

func (b *Board) clear(reason int, _ pcommon.Timestamp) {
	b.active = slices.DeleteFunc(b.active, func(a active) bool { return a.reason == reason })
}

// quiet ends a reason whose cause was not seen for as long as it lasts.
func (b *Board) quiet(reason int, at pcommon.Timestamp) {
	if r := Reasons[reason]; r.Quiet > 0 {
		if a := b.find(reason); a != nil && later(at, a.Last, r.Quiet) {
			b.clear(reason, at)
		}
	}
}

// Seen takes evidence: what it ends, of what was raised before that time, is over. The
// third failed episode within a week that a reset or a boot ended is a reason of its
// own.
func (b *Board) Seen(e Evidence, at pcommon.Timestamp) {
	failed := b.state() == health.Failed
	b.active = slices.DeleteFunc(b.active, func(a active) bool { return a.Reason.ClearedBy&e != 0 && a.Last < at })
	if e&(Reset|Boot) == 0 || !failed || b.state() == health.Failed {
		return
	}
	b.episodes = [3]pcommon.Timestamp{at, b.episodes[0], b.episodes[1]}
	if third := b.episodes[2]; third != 0 && !later(at, third, week) {
		b.raise(slices.Index(Reasons, &recurring), at, Finding{}, 0)
	}
}

// Verdict is the health of a board.
type Verdict struct {
	// Known is false where nothing that makes a board well or unwell was read.
	Known  bool
	State  health.State
	Action health.Action // the heaviest
	// Reasons are the active ones, the worst first. They are there without Known too:
	// the last ones that were known.
	Reasons []Active
	// WithData and Applicable are of how many reasons the inputs were read, and how
	// many fit the board.
	WithData, Applicable int
	Score                float64
}

func (b *Board) state() (worst health.State) {
	for i := range b.active {
		worst = max(worst, b.active[i].State)
	}
	return worst
}

// Verdict returns the health of the board by what is active.
func (b *Board) Verdict() Verdict {
	v := Verdict{State: b.state(), Score: 1}
	for i, r := range Reasons {
		if len(r.Reads) == 0 {
			continue
		}
		v.Applicable++
		if b.fresh>>i&1 == 1 {
			v.WithData++
			v.Known = v.Known || r.Vital
		}
	}
	v.Known = v.Known || len(b.active) > 0
	for i := range b.active {
		a := &b.active[i]
		v.Reasons = append(v.Reasons, a.Active)
		v.Action = max(v.Action, a.Action)
		v.Score = min(v.Score, a.score())
	}
	slices.SortStableFunc(v.Reasons, func(x, y Active) int { return int(y.State) - int(x.State) })
	return v
}

// score is that of a board with this reason alone: in the range of its state, so that
// state and score order boards alike.
func (a *Active) score() float64 {
	switch a.State {
	case health.Failed:
		return 0
	case health.PredictedFailure:
		return 0.25
	case health.Degraded:
		return max(0.5, min(0.9, a.Reason.Weight))
	}
	return 1
}

// XIDOf returns the Health of a code alone.
func XIDOf(code int) xid.Health {
	e, _ := xid.Lookup(code)
	return e.Health()
}
