// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
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

type active struct {
	Active
	reason int
	// held is a reason about which the driver decides on its next page: it is not
	// active yet.
	held bool
}

// actives are the active reasons against a board, by their places in Reasons.
type actives []active

func (l actives) search(reason int) (int, bool) {
	return slices.BinarySearchFunc(l, reason, func(a active, reason int) int { return a.reason - reason })
}

// find returns an active reason, or nil. It is valid until one is raised or cleared.
func (l actives) find(reason int) *active {
	i, found := l.search(reason)
	if !found {
		return nil
	}
	return &l[i]
}

// raise makes a reason active, or brings it up to date. The result is that of find.
func (l *actives) raise(reason int, at pcommon.Timestamp, f Finding) *active {
	i, found := l.search(reason)
	if !found {
		*l = slices.Insert(*l, i, active{reason: reason, Active: Active{Reason: Reasons[reason], Since: at}})
	}
	a := &(*l)[i]
	a.Since, a.Last = min(a.Since, at), at // the clock may be set back
	a.Value, a.Threshold, a.Variant = f.Value, f.Threshold, f.Variant
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

func (l *actives) clear(reason int) {
	if i, found := l.search(reason); found {
		*l = slices.Delete(*l, i, i+1)
	}
}

// state is the worst one.
func (l actives) state() (worst health.State) {
	for i := range l {
		if !l[i].held {
			worst = max(worst, l[i].State)
		}
	}
	return worst
}

// episode is whether a board is failed, and when the cause was seen last.
type episode struct {
	failed bool
	last   pcommon.Timestamp
}

func (l actives) failing() (e episode) {
	for i := range l {
		if a := &l[i]; a.State == health.Failed && !a.held {
			e = episode{true, max(e.last, a.Last)}
		}
	}
	return e
}
