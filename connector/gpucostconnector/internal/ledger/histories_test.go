// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// TestHistories runs random histories of a small fleet, HISTORIES of them, and checks
// after each step what must always be true.
func TestHistories(t *testing.T) {
	histories := 300
	if text := os.Getenv("HISTORIES"); text != "" {
		var err error
		histories, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	for seed := range histories {
		h := newHistory(t, uint64(seed))
		for range 120 {
			h.step()
		}
	}
	fmt.Printf("histories %d, violations 0\n", histories)
}

// history is a fleet, its ledger, and what was stored and emitted of it.
type history struct {
	t    *testing.T
	seed uint64
	r    *rand.Rand
	cfg  Config
	l    *Ledger

	now    int64
	boards []*truth
	silent [2]int64 // until when a node is silent

	stored  []byte
	energy  int64 // that was accepted
	saved   int64 // of it, when the state was stored
	emitted map[Key]Amounts
	began   map[string]int64 // of boards: their first point
	first   map[string]int64 // of their accounts
	until   map[string]int64 // until when they were accounted
	late    []Point
}

// truth is a board as it is.
type truth struct {
	id     string
	node   int
	kind   int
	parts  []Point
	joules float64
	hidden int64 // not listed until then
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{
		t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 7)), now: t0 + int64(seed)*7, cfg: config(),
		emitted: map[Key]Amounts{}, began: map[string]int64{}, first: map[string]int64{}, until: map[string]int64{},
	}
	h.cfg.MaxRows = 10 + h.r.IntN(200)
	h.cfg.PerPod = h.r.IntN(2) == 0
	h.cfg.Price = func(of *Priced, at int64) Price {
		const every = 7 * minute
		return Price{prices.Rate{Nano: of.Boards + at/every%3, Per: 1 + int64(len(of.Profile))}, prices.KindList, at - at%every + every}
	}
	h.cfg.Carbon = func(_ *Class, at int64) (int64, bool) { return 300_000, at/hour%2 == 0 }
	h.l = New(h.cfg, h.now)
	h.stored = h.l.Encode()
	for i := range 2 + h.r.IntN(4) {
		b := &truth{id: fmt.Sprintf("GPU-%d", i), node: i % 2, kind: h.r.IntN(5)}
		h.boards = append(h.boards, b)
		h.make(b)
	}
	return h
}

// make gives a board a new layout, all of it free.
func (h *history) make(b *truth) {
	b.parts = nil
	add := func(id, profile string, of share.Fraction, replicas int, rest State) {
		b.parts = append(b.parts, Point{
			Cluster: "c", Board: b.id, Part: id, Class: h100, State: Free, Share: of, Profile: profile, Rest: rest, Replicas: replicas, Device: b.id,
		})
	}
	switch b.kind {
	case 0:
		add(b.id, "", share.Whole, 0, Free)
	case 1:
		for n := range 2 + h.r.IntN(9) {
			add(fmt.Sprintf("%s::%d", b.id, n), "", share.Whole, 1+h.r.IntN(3), Free)
		}
	case 2:
		for i, left := 0, int64(7); left > 0; i++ {
			n := 1 + h.r.Int64N(left)
			left -= n
			if h.r.IntN(4) > 0 {
				add(fmt.Sprintf("%s/%d", b.id, i), fmt.Sprintf("%dg", n), share.Fraction{P: n, Q: 7}, 0, Stranded)
			}
		}
	default: // partitions by memory, sometimes more than there is
		for i := range 1 + h.r.IntN(4) {
			of, _ := share.Of(1+h.r.Int64N(30_000), 81_559)
			add(fmt.Sprintf("%s#%d", b.id, i), "", of, 0, Free)
		}
	}
	if len(b.parts) == 0 {
		add(b.id, "", share.Whole, 0, Free)
	}
}

func (h *history) step() {
	h.now += 15*second + h.r.Int64N(20) - 10
	for h.r.IntN(30) == 0 { // nothing comes
		h.now += h.r.Int64N([]int64{minute, 10 * minute, hour, 3 * hour, 30 * hour}[h.r.IntN(5)])
	}
	h.change()
	for node := range h.silent {
		if h.r.IntN(40) == 0 {
			h.silent[node] = h.now + h.r.Int64N(2*hour)
		}
		if h.r.IntN(40) == 0 {
			h.l.Node("c", fmt.Sprint("n", node), h.now, h.r.IntN(2) == 0)
		}
	}
	h.r.Shuffle(len(h.boards), func(i, j int) { h.boards[i], h.boards[j] = h.boards[j], h.boards[i] })
	for _, b := range h.boards {
		b.joules += h.r.Float64() * 700 * 15
		if h.r.IntN(2) == 0 {
			h.burn(b)
		}
		if h.now >= h.silent[b.node] && h.now >= b.hidden {
			h.snapshot(b)
		}
		if h.r.IntN(10) > 0 {
			h.l.Utilization(b.id, b.parts[h.r.IntN(len(b.parts))].Part, h.now-h.r.Int64N(10*second), h.r.Float64()*h.r.Float64())
			h.burn(b)
		}
	}
	for i := range h.late {
		if h.r.IntN(20) == 0 {
			h.l.Add(&h.late[i])
		}
	}
	switch h.r.IntN(60) {
	case 0:
		h.l.Empty("c", "n0", h.now)
	case 1:
		h.l.Expire(h.now)
	}
	h.check()
	switch h.r.IntN(12) {
	case 0, 1: // what is emitted was stored before
		h.stored, h.saved = h.l.Encode(), h.energy-h.l.Counts().EnergyLost
		h.emit()
	case 2: // killed between the two
		h.stored, h.saved = h.l.Encode(), h.energy-h.l.Counts().EnergyLost
		h.restart()
	case 3: // or before
		if h.r.IntN(3) == 0 {
			h.restart()
		}
	}
}

// change lets pods come and go, and layouts change.
func (h *history) change() {
	for _, b := range h.boards {
		switch h.r.IntN(40) {
		case 0:
			h.make(b)
		case 1:
			b.hidden = h.now + h.r.Int64N(2*hour)
		case 2:
			if h.r.IntN(20) == 0 {
				b.hidden = h.now + 8*day
			}
		case 3:
			b.joules = 0
		}
		for i := range b.parts {
			p := &b.parts[i]
			switch h.r.IntN(20) {
			case 0:
				p.State = Held
				p.Owner = &Owner{
					Namespace: fmt.Sprint("ns", h.r.IntN(2)), Pod: fmt.Sprint("pod", h.r.IntN(9)), UID: []string{"", "1", "2"}[h.r.IntN(3)],
					Service: fmt.Sprint("s", h.r.IntN(5)), Tenant: fmt.Sprint("t", h.r.IntN(2)),
				}
			case 1:
				p.State, p.Owner = Free, nil
			case 2:
				if p.State == Free && h.r.IntN(4) == 0 {
					p.State = Unknown
				}
			}
		}
	}
}

// snapshot adds the points of a board: mostly in order, sometimes twice, contested, or
// again later.
func (h *history) snapshot(b *truth) {
	points := b.parts
	if h.r.IntN(10) == 0 {
		points = append([]Point{}, points...)
		h.r.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	}
	for _, p := range points {
		p.Node, p.Time = fmt.Sprint("n", b.node), h.now
		h.l.Add(&p)
		switch h.r.IntN(50) {
		case 0:
			h.l.Add(&p)
		case 1:
			h.late = append(h.late[max(0, len(h.late)-5):], p)
		case 2:
			p.State, p.Owner = Held, &Owner{Namespace: "ns0", Pod: "contender", Service: "contender"}
			h.l.Add(&p)
		}
	}
	if _, seen := h.began[b.id]; !seen {
		h.began[b.id] = h.now
	}
}

// burn reports the energy of a board. What the ledger must accept is added up.
func (h *history) burn(b *truth) {
	at, value := h.now-h.r.Int64N(20*second), int64(b.joules*1000)
	if a := h.l.boards[b.id]; a != nil && a.until != 0 && at >= a.first && at > a.power.last {
		if e := a.power; e.counted && at-e.last <= energyFor && value >= e.value && value-e.value <= 2*20_000*(at-e.last) {
			h.energy += value - e.value
		}
	}
	h.l.Energy(b.id, at, float64(value)/1000, 20_000)
}

// restart is a new process with what was stored.
func (h *history) restart() {
	l, err := Restore(h.cfg, h.stored)
	require.NoError(h.t, err, "seed %d", h.seed)
	h.l, h.energy = l, h.saved
	h.first, h.until = map[string]int64{}, map[string]int64{}
	h.check()
	h.emit()
}

func (h *history) emit() {
	for _, total := range h.l.Totals() {
		before := h.emitted[total.Key]
		h.emitted[total.Key] = total.Amounts
		a := total.Amounts
		require.True(h.t, a.Time >= before.Time && a.Used >= before.Used && a.Idle >= before.Idle && a.Unmeasured >= before.Unmeasured &&
			a.Unplaced >= before.Unplaced && a.Carbon >= before.Carbon, "a counter fell: seed %d, %+v", h.seed, total.Key)
		for i, e := range a.Energy {
			require.GreaterOrEqual(h.t, e, before.Energy[i], "seed %d", h.seed)
		}
	}
	known := map[Key]bool{}
	for _, total := range h.l.Totals() {
		known[total.Key] = true
	}
	for k := range h.emitted {
		require.True(h.t, known[k], "a row is gone: seed %d, %+v", h.seed, k)
	}
}

// check is what holds after every step.
func (h *history) check() {
	h.t.Helper()
	states := h.l.Closed()
	bound := int64(0)
	for _, began := range h.began {
		bound += h.now - began
	}
	h.l.Accounts(func(a Account) {
		sum := int64(0)
		for s, ms := range a.States {
			require.GreaterOrEqual(h.t, ms, int64(0), "seed %d", h.seed)
			sum += ms
			states[s] += ms
		}
		require.Equal(h.t, max(a.Until, a.First)-a.First, sum, "seed %d: states of %s are not its time", h.seed, a.Board)
		require.LessOrEqual(h.t, a.Until, h.now, "seed %d: credited ahead", h.seed)
		if a.Until != 0 {
			require.GreaterOrEqual(h.t, a.Until, h.until[a.Board], "seed %d: accounted backwards", h.seed)
			if a.First != h.first[a.Board] {
				require.GreaterOrEqual(h.t, a.First, h.until[a.Board], "seed %d: a time in two accounts", h.seed)
			}
			h.first[a.Board], h.until[a.Board] = a.First, a.Until
		}
	})
	var rows, hours [NumStates]int64
	energy := int64(0)
	for _, r := range h.l.rows {
		a := r.total
		rows[r.key.State] += a.Time
		require.True(h.t, a.Used+a.Unmeasured <= a.Time && a.Idle+a.Unmeasured <= a.Time && a.Used >= 0 && a.Idle >= 0 && a.Unmeasured >= 0,
			"seed %d: %+v has %+v", h.seed, r.key, a)
		for i := range r.hours {
			hours[r.key.State] += r.hours[i].Time
			require.LessOrEqual(h.t, r.hours[i].Idle+r.hours[i].Unmeasured, r.hours[i].Time, "seed %d", h.seed)
		}
		for _, mj := range a.Energy {
			energy += mj
		}
	}
	require.Equal(h.t, states, rows, "seed %d: rows are not the states of the boards", h.seed)
	require.Equal(h.t, states, hours, "seed %d: hours are not the rows", h.seed)
	total := int64(0)
	for _, ms := range states {
		total += ms
	}
	require.LessOrEqual(h.t, total, bound, "seed %d: more time than there was", h.seed)
	for _, b := range h.l.boards {
		energy += b.power.pending + b.power.later
	}
	require.Equal(h.t, h.energy, energy+h.l.counts.EnergyLost, "seed %d: energy", h.seed)
}
