// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// place is what a kind of fault befalls.
type place int

const (
	onNode    place = iota // one node, its exporter, kubelet, agent or link
	onGateway              // the gateway
	onAPI                  // the API server
	onNothing              // it must disturb nothing
)

// counter is a metric of a collector about itself that must have grown.
type counter struct {
	name   string
	labels []string // name, value, …
}

// kind is a kind of fault.
type kind struct {
	name  string
	place place
	// silent: nothing can be known of the node while it lasts.
	silent bool
	// deaf: the kubelet reports nothing while it lasts.
	deaf bool
	// changes: pods come, go or change owners.
	changes bool
	// harmless: the affected component does all that it should while it lasts: it
	// goes together with no other fault of that place, and is judged as ever.
	harmless bool
	// restarts: a collector starts again.
	restarts bool
	node     string // on which alone it makes sense; empty: any
	weight   int    // how often it is drawn, beside others; 0 counts as 4
	// recovery is how long the fleet may take to be whole again, on a machine
	// that is not slow.
	recovery time.Duration
	// counts must grow meanwhile: the agent's, or of faults of no node the
	// gateway's.
	counts counter
	begin  func(w *world, f *fault) (end func() error, err error)
}

// fault is one that is on.
type fault struct {
	*kind
	node *member // of faults of a node
	rand *rand.Rand
	at   time.Duration // from the start of its round
	last time.Duration
	on   bool
	end  func() error

	counted     float64 // what counts reported before
	countedLife time.Time
}

func (f *fault) String() string {
	if f.node == nil {
		return f.name
	}
	return f.name + " of " + f.node.name
}

// where is the place that it disturbs, "" for none.
func (f *fault) where() string {
	switch f.place {
	case onNode:
		return f.node.name
	case onGateway:
		return gatewayPlace
	case onAPI:
		return apiPlace
	}
	return ""
}

// How long the fleet may take to be whole again: what it takes for a fresh point
// to come through, a collector to start, gRPC to try again.
const (
	soon      = 12 * time.Second
	restart   = 25 * time.Second
	reconnect = 30 * time.Second
	// What no interval shrinks: client-go lists again after a pause that grows to
	// 30 s with each failure of the last two minutes, and up to twice that by chance.
	relist = 75 * time.Second
)

// kinds are all of them.
func kinds() []*kind {
	var all []*kind
	all = append(all, exporterKinds()...)
	all = append(all, kubeletKinds()...)
	all = append(all, podKinds()...)
	all = append(all, apiKinds()...)
	all = append(all, processKinds()...)
	all = append(all, linkKinds()...)
	all = append(all, diskKinds()...)
	all = append(all, auditKinds()...)
	all = append(all, hostileKinds()...)
	for _, k := range all {
		if k.weight == 0 {
			k.weight = 4
		}
	}
	return all
}

// opening are the first rounds of every run: what matters most, so that the
// bounded run has it.
var opening = [][]string{
	{"exporter_down", "kubelet_hang", "pod_replaced", "otlp_garbage"},
	{"gateway_kill", "exporter_garbage", "link_refuse", "agent_term"},
	{"agent_kill", "exporter_duplicates", "mig_reconfigure", "otlp_hostile"},
	{"gateway_refused", "link_cut", "kubelet_no_pods", "agent_term_frozen"},
}

// script makes rounds of faults: the opening, every kind once, and then what
// the weights report.
type script struct {
	rand  *rand.Rand
	nodes []*member
	kinds []*kind
	deck  []*kind // kinds that have not been yet
	round int
	some  bool // kinds are not all there are: no opening
	// calm: no collector is started again any more, so that what it takes
	// can be compared over a long life.
	calm bool
}

func newScript(seed uint64, nodes []*member, from []*kind) *script {
	s := &script{rand: rand.New(rand.NewPCG(seed, 2)), nodes: nodes, kinds: from, some: len(from) < len(kinds())}
	s.deck = append(s.deck, from...)
	s.rand.Shuffle(len(s.deck), func(i, j int) { s.deck[i], s.deck[j] = s.deck[j], s.deck[i] })
	return s
}

// next draws the next round.
func (s *script) next() []*fault {
	s.round++
	var out []*fault
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

// all: every kind was drawn.
func (s *script) all() bool { return len(s.deck) == 0 && (s.some || s.round >= len(opening)) }

// draw takes a kind that has not been yet, or any.
func (s *script) draw() *kind {
	if len(s.deck) > 0 {
		return s.deck[s.rand.IntN(len(s.deck))]
	}
	from := s.kinds
	if calm := slices.DeleteFunc(slices.Clone(from), func(k *kind) bool { return k.restarts }); s.calm && len(calm) > 0 {
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
func (s *script) add(round []*fault, k *kind) []*fault {
	f := &fault{kind: k, rand: rand.New(rand.NewPCG(s.rand.Uint64(), s.rand.Uint64()))}
	taken := map[string]bool{}
	for _, other := range round {
		taken[other.where()] = true
		if k.place == onAPI && (other.changes || other.restarts) || other.place == onAPI && (k.changes || k.restarts) {
			return round
		}
		if k == other.kind && k.place != onNode {
			return round
		}
	}
	if k.place == onNode {
		var free []*member
		for _, n := range s.nodes {
			if !taken[n.name] && (k.node == "" || k.node == n.name) {
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
	f.at = time.Duration(s.rand.Int64N(int64(2 * interval)))
	f.last = 4*interval + time.Duration(s.rand.Int64N(int64(5*interval)))
	if k.silent || k.deaf {
		// Long enough to be noticed for sure, and for a while longer.
		f.last = staleness + late + 4*interval + time.Duration(s.rand.Int64N(int64(4*interval)))
	}
	for i, d := range s.deck {
		if d == k {
			s.deck = append(s.deck[:i], s.deck[i+1:]...)
			break
		}
	}
	return append(round, f)
}

// pick finds the kinds that are named; none named: all.
func pick(names []string) ([]*kind, error) {
	all := kinds()
	if len(names) == 0 {
		return all, nil
	}
	var out []*kind
	for _, name := range names {
		before := len(out)
		for _, k := range all {
			if k.name == name {
				out = append(out, k)
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("there is no kind of fault %q", name)
		}
	}
	return out, nil
}
