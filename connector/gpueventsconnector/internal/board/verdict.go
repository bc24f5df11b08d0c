// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
)

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
	// many fit the board. Reasons without inputs of their own do not count: other rules
	// and what happens decide them. See Missing.
	WithData, Applicable int
	Score                float64

	missing uint32
}

// Missing returns the names of the reasons that fit the board, and of which no input was
// read.
func (v *Verdict) Missing() (all []string) {
	for i, r := range Reasons {
		if v.missing>>i&1 == 1 {
			all = append(all, r.Name)
		}
	}
	return all
}

// Sentence describes the reason in a sentence without a full stop, with value and limit
// where it has them.
func (a *Active) Sentence() string { return a.Reason.Sentence(a) }

// Verdict returns the health of the board by what is active.
//
// A reason fits a board of which the model can have its inputs, by KindOf: of the
// reasons about memory those of its generation, and reasons about NVLink, a fabric or the
// NVIDIA driver where it has them. One of which an input was read fits too. A reason that
// fits counts whether or not the exporter prints its inputs.
func (b *Board) Verdict() Verdict {
	v := Verdict{State: b.state(), Score: 1}
	for i, r := range Reasons {
		read := b.fresh>>i&1 == 1
		if len(r.Reads) == 0 || !read && b.Kind&r.Needs != r.Needs {
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

// state is the worst one.
func (b *Board) state() (worst health.State) {
	for i := range b.active {
		if !b.active[i].held {
			worst = max(worst, b.active[i].State)
		}
	}
	return worst
}

// The scores of a board with one reason, by its state. A degraded board has the weight
// of the reason.
const (
	scoreFailed    = 0
	scorePredicted = 0.25
	leastWeight    = 0.5
	mostWeight     = 0.9
)

// score is that of a board with this reason alone: in the range of its state, so that
// state and score order boards alike.
func (a *Active) score() float64 {
	switch a.State {
	case health.Failed:
		return scoreFailed
	case health.PredictedFailure:
		return scorePredicted
	case health.Degraded:
		return max(leastWeight, min(mostWeight, a.Reason.Weight))
	}
	return 1
}
