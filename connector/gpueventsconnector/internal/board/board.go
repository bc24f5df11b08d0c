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
	&nvlinkErrors, &nvlinkDown, &fabric, &pcieReplays, &pcieWidth, &throttle, &temperature, &lost, &dcgmWatch,
	&exporterHealth, &rasFatal, &linkDown, &recurring,
}

// Places in Reasons.
var (
	recoveryPlace    = slices.Index(Reasons, &recoveryAction)
	resetPlace       = slices.Index(Reasons, &xidReset)
	restartPlace     = slices.Index(Reasons, &xidRestart)
	linkPlace        = slices.Index(Reasons, &xidLink)
	repeatedPlace    = slices.Index(Reasons, &xidRepeated)
	linkErrorsPlace  = slices.Index(Reasons, &nvlinkErrors)
	linkDownPlace    = slices.Index(Reasons, &nvlinkDown)
	temperaturePlace = slices.Index(Reasons, &temperature)
	lostPlace        = slices.Index(Reasons, &lost)
	recurringPlace   = slices.Index(Reasons, &recurring)
	eccPlace         = slices.Index(Reasons, &eccUncorrected)
	pendingPlace     = slices.Index(Reasons, &remapPending)
	rasPlace         = slices.Index(Reasons, &rasFatal)
	cutPlace         = slices.Index(Reasons, &linkDown)
)

// Board is what is known of the health of one board. The zero Board has seen nothing.
type Board struct {
	Since    pcommon.Timestamp // since when it is watched
	Kind     Kind
	fresh    uint32            // a bit for each reason that was read last
	evidence pcommon.Timestamp // when a reset or a boot was seen last; 0: never
	active   actives
	counters [counters]float64 // of Counters, as they were read last
	memory   Memory
}

const (
	counters      = 3
	energyCounter = 0 // of Counters
)

// Counters are the inputs that fall when the GPU is reset: the driver counts from zero.
var Counters = [counters]rule.Input{
	{Metric: &names.HwEnergy, Cumulative: true, Most: rule.MostCount},
	{Metric: &names.HwErrors, Attribute: names.ErrorType, Values: []string{"corrected"}, Cumulative: true, Most: rule.MostCount},
	uncorrectedErrors, // two readings, of which the second is of deltas
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
	before := b.active.failing()
	// Errors fall too where a person sets them to zero; the energy does not then.
	goesOn := b.counters[energyCounter] > 0 && values[places.Counters[energyCounter]] >= b.counters[energyCounter]
	for i := range b.counters {
		v := values[places.Counters[i]]
		// A reset counts from zero. A little less is an older value, as where a second
		// exporter reads the board less often.
		if v < b.counters[i]/2 && !goesOn {
			b.see(Reset, at)
		}
		if !math.IsNaN(v) {
			b.counters[i] = v
		}
	}
	fresh := uint32(0)
	for i, r := range Reasons {
		if b.Kind&r.Only != r.Only {
			continue
		}
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

// found takes what a page has about one reason.
func (b *Board) found(reason int, f *Finding, at pcommon.Timestamp) {
	switch {
	case f.Raise:
		switch reason {
		case linkErrorsPlace:
			f.Action = b.linkEpisode(at)
		case eccPlace:
			if a := b.active.find(eccPlace); a != nil && slices.Contains(a.Codes, xidUncontained) {
				f.State, f.Variant = health.Failed, 0
			}
		}
		b.active.raise(reason, at, *f)
	case f.Clear && len(b.active) > 0 && Reasons[reason].ClearedBy&^Person == 0:
		b.active.clear(reason)
	}
}

// linkEpisode returns the action for NVLink errors: a link that recovers again and again
// is a matter of its mechanics.
func (b *Board) linkEpisode(at pcommon.Timestamp) health.Action {
	s := b.memory.rarely()
	if b.active.find(linkErrorsPlace) == nil {
		s.links.add(at)
	}
	if s.links.within(at, day) >= manyLinkFails {
		return health.CheckMechanics
	}
	return health.ResetGPU
}

// quiet ends a reason of which the cause was not seen for as long as it lasts.
func (b *Board) quiet(reason int, at pcommon.Timestamp) {
	if r := Reasons[reason]; r.Quiet > 0 && len(b.active) > 0 {
		if a := b.active.find(reason); a != nil && later(at, a.Last, r.Quiet) {
			b.active.clear(reason)
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
	if b.memory.seldom != nil {
		b.memory.seldom.setBack(at)
	}
}

// Verdict returns the health of the board by what is active.
//
// A reason fits a board of which the model can have its inputs, by KindOf: of the
// reasons about memory those of its generation, and reasons about NVLink, a fabric or the
// NVIDIA driver where it has them. One of which an input was read fits too. A reason that
// fits counts whether or not the exporter prints its inputs.
func (b *Board) Verdict() Verdict {
	v := Verdict{State: b.active.state(), Score: 1}
	for i, r := range Reasons {
		read := b.fresh>>i&1 == 1
		if len(r.Reads) == 0 || b.Kind&r.Only != r.Only || !read && b.Kind&r.Needs != r.Needs {
			continue
		}
		v.Applicable++
		if read {
			v.WithData++
			v.Known = v.Known || r.Vital
		} else {
			v.missing |= 1 << i
		}
	}
	for i := range b.active {
		a := &b.active[i]
		if a.held {
			v.Waits = true
			continue
		}
		v.Known = true
		v.Reasons = append(v.Reasons, a.Active)
		v.Action = max(v.Action, a.Action)
		v.Score = min(v.Score, a.score())
	}
	slices.SortStableFunc(v.Reasons, func(x, y Active) int { return int(y.State) - int(x.State) })
	return v
}

// Seen takes evidence: what it ends, of what was raised before that time, is over.
func (b *Board) Seen(e Evidence, at pcommon.Timestamp) {
	before := b.active.failing()
	b.see(e, at)
	b.settle(before, at)
}

// ResetAt is the time of the first page after the newest reset or boot; 0: none was seen.
func (b *Board) ResetAt() pcommon.Timestamp { return b.evidence }

func (b *Board) see(e Evidence, at pcommon.Timestamp) {
	down := b.active.find(linkDownPlace) != nil
	b.active = slices.DeleteFunc(b.active, func(a active) bool {
		by := a.Reason.ClearedBy
		if a.reason == recoveryPlace && b.fresh>>recoveryPlace&1 == 0 {
			by |= Reset | Boot // a line of the kernel log was its only source
		}
		if a.reason == pendingPlace && b.fresh>>pendingPlace&1 == 0 {
			by |= Reset | Boot // an XID was
		}
		if a.reason == rasPlace {
			by = endedBy(a.Action)
		}
		last := a.Last
		if a.reason == linkDownPlace {
			last = a.Since // it lasts: what a person accepts is the lower number
		}
		return by&e != 0 && last < at
	})
	if e&(Reset|Boot) != 0 {
		b.evidence = max(b.evidence, at)
	}
	if (e&(Reset|Boot) != 0 || down) && b.active.find(linkDownPlace) == nil {
		b.memory.peers = 0 // which links there are may be another matter now
	}
	s := b.memory.seldom
	if s == nil {
		return
	}
	if e&Boot != 0 {
		since := s.lostAt
		if a := b.active.find(lostPlace); a != nil {
			since = a.Since
		}
		s.booted = s.booted || since != 0 && since < at
	}
	if e&Person != 0 {
		s.faults.drop(at)
		for i, of := range s.episodes {
			if of < at {
				clear(s.episodes[i:])
				break
			}
		}
	}
}

// manyEpisodes within a week are a reason of their own.
const manyEpisodes = 3

// settle notes the end of a failed episode that a reset or a boot ended: one was seen
// since its cause.
func (b *Board) settle(before episode, at pcommon.Timestamp) {
	if !before.failed || b.evidence <= before.last || b.active.failing().failed {
		return
	}
	s := b.memory.rarely()
	s.episodes.add(at)
	if n := s.episodes.within(at, week); n >= manyEpisodes {
		b.active.raise(recurringPlace, at, Finding{Value: float64(n), Threshold: manyEpisodes})
	}
}

// XIDOf returns the Health of a code alone.
func XIDOf(code int) xid.Health {
	e, _ := xid.Lookup(code)
	return e.Health()
}
