// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/collectors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/chaos/pace"
)

// opening are the first rounds of every run: what matters most, so that the
// bounded run has it.
var opening = [][]string{
	{"exporter_down", "kubelet_hang", "pod_replaced", "otlp_garbage"},
	{"gateway_kill", "exporter_garbage", "link_refuse", "agent_term"},
	{"agent_kill", "exporter_duplicates", "mig_reconfigure", "otlp_hostile"},
	{"gateway_refused", "link_cut", "kubelet_no_pods", "agent_term_frozen"},
}

// Script makes rounds of faults: the opening, every kind once, and then what
// the weights report.
type Script struct {
	rand  *rand.Rand
	nodes []*collectors.Member
	kinds []*Kind
	deck  []*Kind // kinds that have not been yet
	round int
	some  bool // kinds are not all there are: no opening
	// Calm: no collector is started again any more, so that what it takes
	// can be compared over a long life.
	Calm bool
}

// NewScript draws from these kinds.
func NewScript(seed uint64, nodes []*collectors.Member, from []*Kind) *Script {
	s := &Script{rand: rand.New(rand.NewPCG(seed, 2)), nodes: nodes, kinds: from, some: len(from) < len(kinds())}
	s.deck = append(s.deck, from...)
	s.rand.Shuffle(len(s.deck), func(i, j int) { s.deck[i], s.deck[j] = s.deck[j], s.deck[i] })
	return s
}

// Next draws the next round.
func (s *Script) Next() []*Fault {
	s.round++
	var out []*Fault
	if !s.some && s.round <= len(opening) {
		for _, bound := range []bool{true, false} { // to a node: those choose first
			for _, k := range s.kinds {
				if slices.Contains(opening[s.round-1], k.name) && (k.node != "") == bound {
					out = s.add(out, k)
				}
			}
		}
		return out
	}
	// Three in eight rounds have one fault alone, for its own recovery.
	for wanted := max(1, s.rand.IntN(4)+s.rand.IntN(2)); len(out) < wanted; {
		before := len(out)
		for tries := 0; len(out) == before && tries < 20; tries++ {
			out = s.add(out, s.draw())
		}
		if len(out) == before {
			break
		}
	}
	return out
}

// Drawn reports whether every kind was.
func (s *Script) Drawn() bool { return len(s.deck) == 0 && (s.some || s.round >= len(opening)) }

// draw takes a kind that has not been yet, or any.
func (s *Script) draw() *Kind {
	if len(s.deck) > 0 {
		return s.deck[s.rand.IntN(len(s.deck))]
	}
	from := s.kinds
	if calm := slices.DeleteFunc(slices.Clone(from), func(k *Kind) bool { return k.restarts }); s.Calm && len(calm) > 0 {
		from = calm
	}
	sum := 0
	for _, k := range from {
		sum += k.weight
	}
	n := s.rand.IntN(sum)
	for _, k := range from {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	return from[0]
}

// add adds a fault of a kind to a round, where it goes together with the others:
// one at a time for each place, and no change of pods nor start of a collector
// while the API server is away.
func (s *Script) add(round []*Fault, k *Kind) []*Fault {
	f := &Fault{Kind: k, rand: rand.New(rand.NewPCG(s.rand.Uint64(), s.rand.Uint64()))}
	taken := map[string]bool{}
	for _, other := range round {
		taken[other.where()] = true
		if k.place == onAPI && (other.changes || other.restarts) || other.place == onAPI && (k.changes || k.restarts) {
			return round
		}
		if k == other.Kind && k.place != onNode {
			return round
		}
	}
	if k.place == onNode {
		var free []*collectors.Member
		for _, n := range s.nodes {
			if !taken[n.Name] && (k.node == "" || k.node == n.Name) {
				free = append(free, n)
			}
		}
		if len(free) == 0 {
			return round
		}
		f.node = free[s.rand.IntN(len(free))]
	} else if taken[f.where()] && f.where() != "" {
		return round
	}
	f.At = time.Duration(s.rand.Int64N(int64(2 * pace.Interval)))
	f.Last = 4*pace.Interval + time.Duration(s.rand.Int64N(int64(5*pace.Interval)))
	if k.silent || k.deaf {
		// Long enough to be noticed for sure, and for a while longer.
		f.Last = pace.Staleness + pace.Late + 4*pace.Interval + time.Duration(s.rand.Int64N(int64(4*pace.Interval)))
	}
	for i, d := range s.deck {
		if d == k {
			s.deck = append(s.deck[:i], s.deck[i+1:]...)
			break
		}
	}
	return append(round, f)
}
