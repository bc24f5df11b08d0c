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
	&nvlinkErrors, &nvlinkDown, &fabric, &pcieReplays, &pcieWidth, &throttle, &temperature, &lost, &dcgmWatch, &recurring,
}

// Places in Reasons.
var (
	recoveryPlace    = slices.Index(Reasons, &recoveryAction)
	resetPlace       = slices.Index(Reasons, &xidReset)
	restartPlace     = slices.Index(Reasons, &xidRestart)
	repeatedPlace    = slices.Index(Reasons, &xidRepeated)
	linkErrorsPlace  = slices.Index(Reasons, &nvlinkErrors)
	linkDownPlace    = slices.Index(Reasons, &nvlinkDown)
	temperaturePlace = slices.Index(Reasons, &temperature)
	lostPlace        = slices.Index(Reasons, &lost)
	recurringPlace   = slices.Index(Reasons, &recurring)
)

// Active is a reason that is active.
type Active struct {
	Reason *Reason
	State  health.State
	Action health.Action
	Since  pcommon.Timestamp
	// Last is when its cause was seen last.
	Last             pcommon.Timestamp
	Value, Threshold float64
	Variant          Variant
	// Codes are the XIDs of it: first the one that raised it, then those that happened
	// with it.
	Codes []int
}

// Board is what is known of the health of one board. The zero Board has seen nothing.
type Board struct {
	Since    pcommon.Timestamp // since when it is watched
	Kind     Kind
	fresh    uint32            // a bit for each reason that was read last
	evidence pcommon.Timestamp // when a reset or a boot was seen last; 0: never
	active   []active          // by reason
	counters [counters]float64 // of Counters, as they were read last
	memory   Memory
}

type active struct {
	Active
	reason int
	// held is a reason about which the driver decides on its next page: it is not
	// active yet.
	held bool
}

const counters = 3

// Counters are the inputs that fall when the GPU is reset: the driver counts from zero.
// Each has two readings, of which the second is of deltas.
var Counters = [counters]rule.Input{
	{Metric: &names.HwEnergy, Count: true, Most: rule.MostCount},
	{Metric: &names.HwErrors, Attribute: names.ErrorType, Values: []string{"corrected"}, Count: true, Most: rule.MostCount},
	uncorrectedErrors,
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
	b.setBack(at)
	before := b.failing()
	for i := range b.counters {
		v := values[places.Counters[2*i]]
		if v < b.counters[i] {
			b.see(Reset, at)
		}
		if !math.IsNaN(v) {
			b.counters[i] = v
		}
	}
	fresh := uint32(0)
	for i, r := range Reasons {
		readings := Readings{Values: values, Index: places.Reasons[i]}
		f := Finding{}
		if r.Judge != nil {
			f = r.Judge(readings, &b.memory, at)
		} else {
			f.Known = slices.ContainsFunc(readings.Index, func(place int) bool { return !math.IsNaN(values[place]) })
		}
		if f.Known {
			fresh |= 1 << i
			b.found(i, &f, at)
		}
		if i == recoveryPlace {
			b.decide(&f, at)
		}
		b.quiet(i, at)
	}
	b.fresh = fresh
	if b.memory.seldom != nil {
		b.repeats(at)
	}
	b.settle(before, at)
}

// found takes what a page says about one reason.
func (b *Board) found(reason int, f *Finding, at pcommon.Timestamp) {
	switch {
	case f.Raise:
		if reason == linkErrorsPlace {
			f.Action = b.linkEpisode(at)
		}
		b.raise(reason, at, *f)
	case f.Clear && len(b.active) > 0 && Reasons[reason].ClearedBy&^Person == 0:
		b.clear(reason)
	}
}

// linkEpisode returns the action for NVLink errors: a link that recovers again and again
// is a matter of its mechanics.
func (b *Board) linkEpisode(at pcommon.Timestamp) health.Action {
	s := b.memory.rarely()
	if b.find(linkErrorsPlace) == nil {
		s.links.add(at)
	}
	if s.links.within(at, day) >= manyLinkFails {
		return health.CheckMechanics
	}
	return health.ResetGPU
}

func (b *Board) find(reason int) *active {
	i, found := b.search(reason)
	if !found {
		return nil
	}
	return &b.active[i]
}

func (b *Board) search(reason int) (int, bool) {
	return slices.BinarySearchFunc(b.active, reason, func(a active, reason int) int { return a.reason - reason })
}

// raise makes a reason active, or brings it up to date. The result is valid until
// another reason is raised or cleared.
func (b *Board) raise(reason int, at pcommon.Timestamp, f Finding) *active {
	i, found := b.search(reason)
	if !found {
		b.active = slices.Insert(b.active, i, active{reason: reason, Active: Active{Reason: Reasons[reason], Since: at}})
	}
	a := &b.active[i]
	a.Last, a.Value, a.Threshold, a.Variant = at, f.Value, f.Threshold, f.Variant
	state, action := a.Reason.State, a.Reason.Action
	if f.State != health.OK {
		state = f.State
	}
	if f.Action != health.None {
		action = f.Action
	}
	if found && a.Reason.Judge == nil {
		// Of several events the worst counts.
		state, action = max(a.State, state), max(a.Action, action)
	}
	a.State, a.Action = state, action
	return a
}

func (b *Board) clear(reason int) {
	if i, found := b.search(reason); found {
		b.active = slices.Delete(b.active, i, i+1)
	}
}

// quiet ends a reason whose cause was not seen for as long as it lasts.
func (b *Board) quiet(reason int, at pcommon.Timestamp) {
	if r := Reasons[reason]; r.Quiet > 0 && len(b.active) > 0 {
		if a := b.find(reason); a != nil && later(at, a.Last, r.Quiet) {
			b.clear(reason)
		}
	}
}

// setBack keeps times from being in the future of a clock that was set back: nothing
// would end until then.
func (b *Board) setBack(at pcommon.Timestamp) {
	for i := range b.active {
		a := &b.active[i]
		a.Since, a.Last = min(a.Since, at), min(a.Last, at)
	}
	b.evidence = min(b.evidence, at)
}

// Seen takes evidence: what it ends, of what was raised before that time, is over.
func (b *Board) Seen(e Evidence, at pcommon.Timestamp) {
	before := b.failing()
	b.see(e, at)
	b.settle(before, at)
}

func (b *Board) see(e Evidence, at pcommon.Timestamp) {
	b.active = slices.DeleteFunc(b.active, func(a active) bool { return a.Reason.ClearedBy&e != 0 && a.Last < at })
	if e&(Reset|Boot) != 0 {
		b.evidence = max(b.evidence, at)
	}
	if e&(Reset|Boot|Person) != 0 && b.find(linkDownPlace) == nil {
		b.memory.peers = 0 // which links there are may be another matter now
	}
	s := b.memory.seldom
	if s == nil {
		return
	}
	if e&Boot != 0 {
		s.booted = s.booted || s.lostAt != 0
	}
	if e&Person != 0 {
		for i := range s.faults {
			if s.faults[i].last < at {
				s.faults[i] = fault{}
			}
		}
		for i, of := range s.episodes {
			if of < at {
				clear(s.episodes[i:])
				break
			}
		}
	}
}

// episode is whether a board is failed, and when the cause was seen last.
type episode struct {
	failed bool
	last   pcommon.Timestamp
}

func (b *Board) failing() (e episode) {
	for i := range b.active {
		if a := &b.active[i]; a.State == health.Failed && !a.held {
			e = episode{true, max(e.last, a.Last)}
		}
	}
	return e
}

// manyEpisodes within a week are a reason of their own.
const manyEpisodes = 3

// settle notes the end of a failed episode that a reset or a boot ended: one was seen
// since its cause.
func (b *Board) settle(before episode, at pcommon.Timestamp) {
	if !before.failed || b.evidence <= before.last || b.failing().failed {
		return
	}
	s := b.memory.rarely()
	s.episodes.add(at)
	if n := s.episodes.within(at, week); n >= manyEpisodes {
		b.raise(recurringPlace, at, Finding{Value: float64(n), Threshold: manyEpisodes})
	}
}

// XIDOf returns the Health of a code alone.
func XIDOf(code int) xid.Health {
	e, _ := xid.Lookup(code)
	return e.Health()
}
