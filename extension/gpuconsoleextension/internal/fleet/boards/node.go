// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package boards // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/boards"

import (
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

// Node is the health of a node with these boards.
func (f *Fleet) Node(id inventory.Place, boards []consoleapi.Health) consoleapi.Health {
	log := f.log.Nodes[id.Shown()]
	out := consoleapi.Health{State: f.stateOfNode(id, boards), Reasons: f.active(f.ofNodes[id], "", log)}
	var coverage *consoleapi.HealthCoverage
	for i := range boards {
		b := &boards[i]
		out.Reasons = append(out.Reasons, b.Reasons...)
		out.WatchedSince = latest(out.WatchedSince, b.WatchedSince)
		if b.Score != nil && (out.Score == nil || *b.Score < *out.Score) {
			out.Score = b.Score
		}
		if b.State == out.State {
			out.Since = sinceOf(out.State, out.Since, b.Since)
		}
		coverage = together(coverage, b.Coverage)
	}
	slices.SortStableFunc(out.Reasons, func(a, b consoleapi.HealthReason) int {
		return slices.Index(consoleapi.HealthStates, b.State) - slices.Index(consoleapi.HealthStates, a.State)
	})
	if out.State == consoleapi.HealthUnknown {
		out.Since, out.Score = nil, nil
		return out
	}
	if log != nil && log.State == out.State {
		out.Since = sinceOf(out.State, out.Since, &log.Since)
	}
	out.Action, out.Coverage = heaviest(out.Reasons), coverage
	return out
}

// Unwell reports whether a node is not well, as gpu_events has it.
func (f *Fleet) Unwell(id inventory.Place) bool {
	return f.nodes[id].AtLeast(consoleapi.HealthDegraded)
}

// stateOfNode is what gpu_events reports of a node. Where it reports nothing, as of a host
// without Kubernetes, it is that of the worst board; it is not known to be well while the
// state of one is not known.
func (f *Fleet) stateOfNode(id inventory.Place, boards []consoleapi.Health) consoleapi.HealthState {
	if s := f.nodes[id]; s != "" {
		return s
	}
	worst, known := consoleapi.HealthOK, len(boards) > 0
	for i := range boards {
		s := boards[i].State
		known = known && s != consoleapi.HealthUnknown
		if s.AtLeast(worst) {
			worst = s
		}
	}
	if worst == consoleapi.HealthOK && !known {
		return consoleapi.HealthUnknown
	}
	return worst
}

// sinceOf is since when a node is in a state: since its first board is in one that is not
// well, and since its last one is well.
func sinceOf(s consoleapi.HealthState, a, b *time.Time) *time.Time {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case (s == consoleapi.HealthOK) == b.After(*a):
		return b
	}
	return a
}

func latest(a, b *time.Time) *time.Time { return sinceOf(consoleapi.HealthOK, a, b) }

// together adds up the checks of boards.
func together(sum, b *consoleapi.HealthCoverage) *consoleapi.HealthCoverage {
	if b == nil {
		return sum
	}
	out := consoleapi.HealthCoverage{WithData: b.WithData, Applicable: b.Applicable, Missing: slices.Clone(b.Missing)}
	if sum != nil {
		out.WithData, out.Applicable = out.WithData+sum.WithData, out.Applicable+sum.Applicable
		for _, m := range sum.Missing {
			if !slices.Contains(out.Missing, m) {
				out.Missing = append(out.Missing, m)
			}
		}
	}
	return &out
}
