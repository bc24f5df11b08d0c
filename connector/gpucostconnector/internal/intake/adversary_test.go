// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// adversary is a fleet of which everything arrives that can: twice, in pieces, in disorder,
// late, under another node's name, with clocks that jump, and with the gateway killed
// meanwhile. Only the node "steady" keeps to its time; what has its boards is known exactly.
type adversary struct {
	*story
	r     *rand.Rand
	now   int64
	nodes []*hostile
	again []pmetric.Metrics // arrives once more
	seen  map[string]int64  // board: its first point
	// Of the steady node: time of its pods in s, without that since the listing before the
	// last one, which is not credited yet; and what its boards had in the last two.
	truth map[string]float64
	had   [2]map[string]string
}

// hostile is a node.
type hostile struct {
	name   string
	boards []string
	layout map[string][]string // ids of a board's parts
	pods   map[string]string   // by part
	offset int64               // of its clock
	silent int64               // until when

	refresh int64 // of its exporter
}

func (a *adversary) divide(n *hostile, board string) {
	n.layout[board] = nil
	switch kind := a.r.IntN(3); {
	case kind == 0 || n.name == "steady":
		n.layout[board] = []string{board}
	case kind == 1:
		for i := range 1 + a.r.IntN(7) {
			n.layout[board] = append(n.layout[board], fmt.Sprint(board, "/", i))
		}
	default:
		for i := range 2 + a.r.IntN(4) {
			n.layout[board] = append(n.layout[board], fmt.Sprint(board, "::", i))
		}
	}
}

// list is what the agent of a node sends, each resource by itself.
func (a *adversary) list(n *hostile) (all []pmetric.Metrics) {
	at := a.now + n.offset
	add := func(b batch) { all = append(all, b.md) }
	for _, board := range n.boards {
		a.seen[board] = min(at, cmp.Or(a.seen[board], at))
		parts := n.layout[board]
		for _, id := range parts {
			of, more := 1., []attrs(nil)
			if len(parts) > 1 && parts[0] == board+"::0" {
				of = 1 / float64(len(parts))
			} else if id != board {
				more = []attrs{{"gpu.mig.profile": "1g.10gb"}}
			}
			if name := n.pods[id]; name != "" {
				add(newBatch().holds(n.name, at, pod(name), id, of, more...))
			} else {
				add(newBatch().free(n.name, at, id, more...))
			}
		}
		add(newBatch().busy(device(n.name, board, h100), at-a.r.Int64N(5*second), a.r.Float64()))
		add(newBatch().burnt(device(n.name, board, h100), at, float64(at/n.refresh*n.refresh-t0)*.3))
	}
	a.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (a *adversary) step() {
	a.now += 15 * second
	for len(a.again) > 0 && a.r.IntN(4) == 0 {
		a.Read(a.again[0], time.UnixMilli(a.now))
		a.again = a.again[1:]
	}
	for _, n := range a.nodes {
		a.disturb(n)
		for id := range n.pods {
			if a.r.IntN(20) == 0 {
				delete(n.pods, id)
			}
		}
		for _, board := range n.boards {
			for _, id := range n.layout[board] {
				if a.r.IntN(10) == 0 {
					n.pods[id] = fmt.Sprint(n.layout[n.boards[0]][0], "-", a.r.IntN(5))
				}
			}
		}
		if a.now < n.silent {
			continue
		}
		if n.name == "steady" {
			a.account(n)
		}
		for _, md := range a.list(n) {
			if a.r.IntN(30) == 0 {
				kept := pmetric.NewMetrics()
				md.CopyTo(kept)
				a.again = append(a.again, kept)
			}
			if a.Read(md, time.UnixMilli(a.now)); a.r.IntN(30) == 0 {
				a.Read(md, time.UnixMilli(a.now))
			}
		}
	}
	if a.r.IntN(20) == 0 {
		a.Expire(time.UnixMilli(a.now))
		a.ledger.Expire(a.now)
		a.ledger.Hours(a.now)
		a.ledger.HoursEmitted()
	}
	a.check()
}

// account adds the interval after a listing to those that it names, two listings later.
func (a *adversary) account(n *hostile) {
	for _, owner := range a.had[0] {
		a.truth[cmp.Or(owner, "(free)")] += 15
	}
	a.had[0], a.had[1] = a.had[1], map[string]string{}
	for _, board := range n.boards {
		a.had[1][board] = n.pods[board]
	}
}

func (a *adversary) disturb(n *hostile) {
	if n.name == "steady" {
		return
	}
	switch a.r.IntN(120) {
	case 0:
		n.offset = -a.r.Int64N(hour)
	case 1:
		n.offset = a.r.Int64N(4 * minute)
	case 2:
		n.offset = 0
	case 3:
		n.silent = a.now + a.r.Int64N(20*minute)
	case 4: // its agent is restarted, and lists nothing at first
		a.Read(newBatch().point(on(n.name), names.GPUAllocation, a.now+n.offset, nil, nil).md, time.UnixMilli(a.now))
	case 5:
		n.name = fmt.Sprint("node", a.r.IntN(5))
	case 6, 7: // MIG is made in a gap
		n.silent = a.now + a.r.Int64N(15*minute)
		for _, board := range n.boards {
			a.divide(n, board)
		}
	case 8: // a board is put into another node
		if other := a.nodes[1+a.r.IntN(len(a.nodes)-1)]; other != n && len(n.boards) > 1 {
			board := n.boards[0]
			n.boards = n.boards[1:]
			other.boards = append(other.boards, board)
			other.layout[board] = n.layout[board]
		}
	case 9: // or is in both
		if other := a.nodes[1+a.r.IntN(len(a.nodes)-1)]; other != n {
			other.boards = append(other.boards, n.boards[0])
			other.layout[n.boards[0]] = n.layout[n.boards[0]]
		}
	}
}

func (a *adversary) check() {
	var states, rows [ledger.NumStates]int64
	states = a.ledger.Closed()
	a.ledger.Accounts(func(is ledger.Account) {
		sum := int64(0)
		for s, ms := range is.States {
			require.GreaterOrEqual(a.t, ms, int64(0))
			states[s] += ms
			sum += ms
		}
		require.Equal(a.t, max(is.First, is.Until)-is.First, sum)
		require.LessOrEqual(a.t, is.Until, a.now+maxAhead)
	})
	all := int64(0)
	for _, total := range a.ledger.Totals() {
		rows[total.Key.State] += total.Time
		all += total.Time
		require.LessOrEqual(a.t, total.Used+total.Unmeasured, total.Time)
		require.LessOrEqual(a.t, total.Idle+total.Unmeasured, total.Time)
	}
	require.Equal(a.t, states, rows)
	bound := int64(0)
	for _, first := range a.seen {
		bound += a.now + maxAhead - first
	}
	require.LessOrEqual(a.t, all, bound, "more time than there was")
}

func TestAdversary(t *testing.T) {
	for seed := range uint64(8) {
		a := &adversary{
			r: rand.New(rand.NewPCG(seed, 3)), now: t0, truth: map[string]float64{}, seen: map[string]int64{},
			story: newStory(t, nil),
		}
		for i, name := range []string{"steady", "node1", "node2", "node3"} {
			n := &hostile{name: name, layout: map[string][]string{}, pods: map[string]string{}, refresh: []int64{second, 30 * second, minute}[a.r.IntN(3)]}
			for j := range 2 + a.r.IntN(3) {
				n.boards = append(n.boards, gpu(10*i+j))
				a.divide(n, gpu(10*i+j))
			}
			a.nodes = append(a.nodes, n)
		}
		for range 300 {
			a.step()
		}
		got := map[string]float64{}
		for name, seconds := range a.rows() {
			if _, steady := a.truth[name]; steady && name != "(free)" {
				got[name] = seconds
			}
		}
		free := 0.
		a.ledger.Accounts(func(is ledger.Account) {
			if slices.Contains(a.nodes[0].boards, is.Board) {
				free += float64(is.States[ledger.Free]) / 1000
				require.Zero(t, is.States[ledger.Unknown]+is.States[ledger.Stranded]+is.States[ledger.Unavailable], "seed %d: %+v", seed, is)
			}
		})
		got["(free)"] = free
		require.Equal(t, a.truth, got, "seed %d", seed)
	}
}
