// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package board

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
)

// Saved is what is stored of a Board over restarts. Windows of minutes are not: they
// begin again.
type Saved struct {
	Since    uint64        `json:"since,omitempty"` // nanoseconds since 1970, as all times here
	Reasons  []SavedReason `json:"reasons,omitempty"`
	Counts   []SavedCount  `json:"counts,omitempty"`
	Counters []float64     `json:"counters,omitempty"`
	XIDs     []int         `json:"xids,omitempty"` // of the incident
	XIDAt    uint64        `json:"xid_at,omitempty"`
	Episodes []uint64      `json:"episodes,omitempty"`
}

// SavedReason is an active reason.
type SavedReason struct {
	Name      string  `json:"name"`
	State     string  `json:"state"`
	Action    string  `json:"action"`
	Since     uint64  `json:"since"`
	Last      uint64  `json:"last"`
	Value     float64 `json:"value,omitempty"`
	Threshold float64 `json:"threshold,omitempty"`
	XIDs      []int   `json:"xids,omitempty"`
}

// SavedCount is what a reason has read last of its counts.
type SavedCount struct {
	Name  string   `json:"name"`
	Count float64  `json:"count"`
	Other float64  `json:"other,omitempty"`
	Times []uint64 `json:"times,omitempty"`
}

// Save returns what is to be stored; nil where nothing was seen.
func (b *Board) Save() *Saved {
	if b.Since == 0 {
		return nil
	}
	s := &Saved{Since: uint64(b.Since), XIDs: slices.Clone(b.incident.codes), XIDAt: uint64(b.incident.last)}
	for i := range b.active {
		a := &b.active[i]
		s.Reasons = append(s.Reasons, SavedReason{
			Name: a.Reason.Name, State: a.State.String(), Action: a.Action.String(), Since: uint64(a.Since), Last: uint64(a.Last),
			Value: finite(a.Value), Threshold: finite(a.Threshold), XIDs: slices.Clone(a.Codes),
		})
	}
	for i, r := range Reasons {
		if m := b.memory[i]; m != nil && r != &pcieWidth && m.known {
			s.Counts = append(s.Counts, SavedCount{Name: r.Name, Count: m.count, Other: m.other, Times: times(m.times[:])})
		}
	}
	s.Counters = slices.Clone(b.counters[:])
	s.Episodes = times(b.episodes[:])
	return s
}

// Restore sets what was stored. What cannot be is left out.
func (b *Board) Restore(s *Saved) {
	*b = Board{Since: pcommon.Timestamp(s.Since)}
	for _, r := range s.Reasons {
		i := slices.IndexFunc(Reasons, func(of *Reason) bool { return of.Name == r.Name })
		state, known := health.ParseState(r.State)
		action, named := health.ParseAction(r.Action)
		if i < 0 || !known || !named || state == health.OK || b.find(i) != nil {
			continue
		}
		at, _ := slices.BinarySearchFunc(b.active, i, func(a active, reason int) int { return a.reason - reason })
		b.active = slices.Insert(b.active, at, active{i, Active{
			Reason: Reasons[i], State: state, Action: action, Since: pcommon.Timestamp(r.Since), Last: pcommon.Timestamp(r.Last),
			Value: r.Value, Threshold: r.Threshold, Codes: slices.Clone(r.XIDs[:min(len(r.XIDs), maxCodes)]),
		}})
	}
	for _, c := range s.Counts {
		i := slices.IndexFunc(Reasons, func(of *Reason) bool { return of.Name == c.Name })
		if i < 0 || Reasons[i].Judge == nil || Reasons[i] == &pcieWidth {
			continue
		}
		m := b.memoryOf(i)
		m.count, m.other, m.known = c.Count, c.Other, true
		timestamps(m.times[:], c.Times)
	}
	copy(b.counters[:], s.Counters)
	b.incident = incident{last: pcommon.Timestamp(s.XIDAt), codes: slices.Clone(s.XIDs[:min(len(s.XIDs), maxCodes)])}
	timestamps(b.episodes[:], s.Episodes)
}

// finite returns a value that JSON has; what it has not is 0.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

func times(of []pcommon.Timestamp) (all []uint64) {
	for _, t := range of {
		if t == 0 {
			break
		}
		all = append(all, uint64(t))
	}
	return all
}

func timestamps(to []pcommon.Timestamp, from []uint64) {
	for i := range min(len(to), len(from)) {
		to[i] = pcommon.Timestamp(from[i])
	}
}
