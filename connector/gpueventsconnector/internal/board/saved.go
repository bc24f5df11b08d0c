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
// begin again. Times are nanoseconds since 1970.
type Saved struct {
	Since    uint64        `json:"since,omitempty"`
	Evidence uint64        `json:"evidence,omitempty"`
	Reasons  []SavedReason `json:"reasons,omitempty"`
	Counts   []SavedCount  `json:"counts,omitempty"`
	Counters []float64     `json:"counters,omitempty"`
	XIDs     []int         `json:"xids,omitempty"` // of the incident
	XIDSince uint64        `json:"xid_since,omitempty"`
	XIDAt    uint64        `json:"xid_at,omitempty"`
	Faults   []SavedFault  `json:"faults,omitempty"`
	Episodes []uint64      `json:"episodes,omitempty"`
	Retired  []uint64      `json:"retired,omitempty"` // when pages were
	Links    []uint64      `json:"links,omitempty"`   // when NVLink errors began
	LostAt   uint64        `json:"lost_at,omitempty"`
	Booted   bool          `json:"booted,omitempty"`
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
	Variant   uint8   `json:"variant,omitempty"`
	XIDs      []int   `json:"xids,omitempty"`
	Held      bool    `json:"held,omitempty"`
}

// SavedCount is what a reason has read last of one of its counts.
type SavedCount struct {
	Name  string  `json:"name"`
	Of    int     `json:"of,omitempty"` // of several counts
	Count float64 `json:"count"`
}

// SavedFault is a code that is normally the fault of the application.
type SavedFault struct {
	Code  uint16 `json:"code"`
	Owner uint64 `json:"owner"`
	Since uint64 `json:"since"`
	Last  uint64 `json:"last"`
	// Common is whether the other boards of the owner had it too.
	Common bool `json:"common,omitempty"`
}

// count is a count that is saved, and which bit has it.
type count struct {
	name  string
	of    int
	value *float64
	known known
}

func (m *Memory) counts() []count {
	all := []count{
		{eccUncorrected.Name, 0, &m.ecc, knownECC},
		{pagesWorn.Name, 0, &m.pages, knownPages},
		{pcieReplays.Name, 0, &m.replays, knownReplays},
	}
	for i := range m.links {
		all = append(all, count{nvlinkErrors.Name, i, &m.links[i], knownLinks << i})
	}
	return all
}

// Save returns what is to be stored; nil where nothing was seen.
func (b *Board) Save() *Saved {
	if b.Since == 0 {
		return nil
	}
	m := &b.memory
	s := &Saved{Since: uint64(b.Since), Evidence: uint64(b.evidence)}
	for i := range b.active {
		a := &b.active[i]
		s.Reasons = append(s.Reasons, SavedReason{
			Name: a.Reason.Name, State: a.State.String(), Action: a.Action.String(), Since: uint64(a.Since), Last: uint64(a.Last),
			Value: finite(a.Value), Threshold: finite(a.Threshold), Variant: uint8(a.Variant), XIDs: slices.Clone(a.Codes), Held: a.held,
		})
	}
	for _, c := range m.counts() {
		if m.known&c.known != 0 {
			s.Counts = append(s.Counts, SavedCount{Name: c.name, Of: c.of, Count: finite(*c.value)})
		}
	}
	if m.peers > 0 {
		s.Counts = append(s.Counts, SavedCount{Name: nvlinkDown.Name, Count: float64(m.peers)})
	}
	for _, v := range b.counters {
		s.Counters = append(s.Counters, finite(v))
	}
	if m.seldom != nil {
		m.seldom.save(s)
	}
	return s
}

func (m *seldom) save(s *Saved) {
	in := &m.incident
	s.XIDs, s.XIDSince, s.XIDAt = slices.Clone(in.codes), uint64(in.since), uint64(in.last)
	for _, f := range m.faults {
		if f.last != 0 {
			s.Faults = append(s.Faults, SavedFault{Code: f.code, Owner: f.owner, Since: uint64(f.since), Last: uint64(f.last), Common: f.common})
		}
	}
	s.Episodes, s.Retired, s.Links = m.episodes.save(), m.retired.save(), m.links.save()
	s.LostAt, s.Booted = uint64(m.lostAt), m.booted
}

// Restore sets what was stored. What cannot be is left out.
func (b *Board) Restore(s *Saved) {
	*b = Board{Since: pcommon.Timestamp(s.Since), Kind: b.Kind, evidence: pcommon.Timestamp(s.Evidence)}
	for _, r := range s.Reasons {
		i := slices.IndexFunc(Reasons, func(of *Reason) bool { return of.Name == r.Name })
		state, known := health.ParseState(r.State)
		action, named := health.ParseAction(r.Action)
		if i < 0 || !known || !named || state == health.OK || b.active.find(i) != nil {
			continue
		}
		at, _ := b.active.search(i)
		b.active = slices.Insert(b.active, at, active{reason: i, held: r.Held && replaced(i), Active: Active{
			Reason: Reasons[i], State: state, Action: action, Since: pcommon.Timestamp(r.Since), Last: pcommon.Timestamp(r.Last),
			Value: r.Value, Threshold: r.Threshold, Variant: Variant(r.Variant), Codes: codes(r.XIDs),
		}})
	}
	m := &b.memory
	for _, stored := range s.Counts {
		for _, c := range m.counts() {
			if c.name == stored.Name && c.of == stored.Of {
				*c.value = stored.Count
				m.known |= c.known
			}
		}
		if stored.Name == nvlinkDown.Name {
			m.peers = uint16(max(0, min(stored.Count, math.MaxUint16)))
		}
	}
	copy(b.counters[:], s.Counters)
	if len(s.XIDs)+len(s.Faults)+len(s.Episodes)+len(s.Retired)+len(s.Links) > 0 || s.LostAt != 0 {
		m.rarely().restore(s)
	}
}

func (m *seldom) restore(s *Saved) {
	in := &m.incident
	in.since, in.last, in.codes = pcommon.Timestamp(s.XIDSince), pcommon.Timestamp(s.XIDAt), codes(s.XIDs)
	in.ecc = slices.Contains(in.codes, xidUncorrectable)
	in.remap = slices.Contains(in.codes, xidRemapped) || slices.Contains(in.codes, xidNotRemapped)
	for i := range min(len(m.faults), len(s.Faults)) {
		f := s.Faults[i]
		m.faults[i] = fault{code: f.Code, owner: f.Owner, since: pcommon.Timestamp(f.Since), last: pcommon.Timestamp(f.Last), common: f.Common}
	}
	m.episodes.restore(s.Episodes)
	m.retired.restore(s.Retired)
	m.links.restore(s.Links)
	m.lostAt, m.booted = pcommon.Timestamp(s.LostAt), s.Booted
}

func codes(stored []int) []int { return slices.Clone(stored[:min(len(stored), maxCodes)]) }

// finite returns a value that JSON has; what it has not is 0.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

func (t *times) save() (all []uint64) {
	for _, at := range t {
		if at != 0 {
			all = append(all, uint64(at))
		}
	}
	return all
}

func (t *times) restore(stored []uint64) {
	for i := range min(len(t), len(stored)) {
		t[i] = pcommon.Timestamp(stored[i])
	}
}
