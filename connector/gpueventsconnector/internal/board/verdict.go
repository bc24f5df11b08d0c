// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
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
	// Waits is whether a reason is there that is not active yet.
	Waits bool

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
