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

// TestHistories runs random histories of a small fleet, HISTORIES of them from SEED on, and checks
// what must always be true: after each step of the accounts, and with each flush of what
// was stored and emitted until then.
func TestHistories(t *testing.T) {
	number := func(name string, n int) int {
		if text := os.Getenv(name); text != "" {
			var err error
			n, err = strconv.Atoi(text)
			require.NoError(t, err)
		}
		return n
	}
	histories, seed, violations := number("HISTORIES", 100), number("SEED", 1), 0
	for i := range histories {
		h := newHistory(t, uint64(seed+i))
		for range 50 {
			h.step()
		}
		h.flush()
		h.audit()
		if h.violated {
			violations++
		}
	}
	fmt.Printf("histories %d, violations %d\n", histories, violations)
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
	silent [2]int64   // until when a node is silent
	queued [2][]Point // what it sends then

	poll    int64
	refresh int64 // of the exporters
	stored  []byte
	energy  int64            // that was accepted
	saved   int64            // of it, when the state was stored
	began   map[string]int64 // of boards: their first point
	first   map[string]int64 // of their accounts
	until   map[string]int64 // until when they were accounted
	store   map[hourOfKey]HourTotal
	emitted map[foldKey]*fold

	violated bool
	late     []Point
}

// truth is a board as it is.
type truth struct {
	id     string
	ref    Ref // of h.l
	node   int
	kind   int
	parts  []Point
	joules float64
	shown  float64 // of them, since the exporter read the board last
	readAt int64
	hidden int64 // not listed until then
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{
		t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 7)), now: t0 + int64(seed)*7*minute, cfg: config(),
		began: map[string]int64{}, first: map[string]int64{}, until: map[string]int64{},
		store: map[hourOfKey]HourTotal{}, emitted: map[foldKey]*fold{},
	}
	h.poll = []int64{15 * second, minute, 4 * minute}[h.r.IntN(3)]
	h.refresh = []int64{0, 30 * second, minute}[h.r.IntN(3)]
	h.cfg.MaxRows = 10 + h.r.IntN(200)
	h.cfg.PerPod = h.r.IntN(2) == 0
	h.cfg.Budgets = historyBudgets
	h.cfg.Price = func(of *Priced, at int64) Price {
		const every = 7 * minute
		p := Price{Until: at - at%every + every}
		if at/every%5 > 0 {
			p.Rate, p.Kind = prices.Rate{Nano: (of.Boards + at/every%3) * 1_234_567_891, Per: 1 + int64(len(of.Profile))}, prices.KindList
		}
		return p
	}
	if h.r.IntN(2) == 0 {
		h.cfg.IdleWatts = func(*Class) (int64, bool) { return 70_000, true }
	}
	h.cfg.Carbon = func(_ *Class, at int64) (int64, bool) { return 300_000, at/hour%2 == 0 }
	h.l = New(h.cfg, h.now)
	h.stored = h.l.Encode()
	for i := range 2 + h.r.IntN(4) {
		b := &truth{id: fmt.Sprintf("GPU-%d", i), node: i % 2, kind: h.r.IntN(7)}
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
			Cluster: "c", Board: b.id, Ref: &b.ref, Part: id, Class: h100, State: Free, Share: of, Profile: profile, Rest: rest, Replicas: replicas, Device: b.id,
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
	case 3: // an owner of which no board is known
		add(b.id, "", share.Whole, 0, Free)
		b.parts[0].Virtual = true
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
	h.now += h.poll + h.r.Int64N(20) - 10
	for h.r.IntN(30) == 0 { // nothing comes
		h.now += h.r.Int64N([]int64{minute, 10 * minute, hour, 3 * hour, 30 * hour}[h.r.IntN(5)])
		if h.r.IntN(3) == 0 {
			h.flush()
		}
	}
	h.change()
	for node := range h.silent {
		if h.r.IntN(40) == 0 {
			h.silent[node] = h.now + h.r.Int64N([]int64{2 * hour, 12 * hour}[h.r.IntN(2)])
		}
		if h.now >= h.silent[node] {
			for i := range h.queued[node] {
				h.l.Add(&h.queued[node][i])
			}
			h.queued[node] = nil
		}
		if h.r.IntN(40) == 0 {
			h.l.Node("c", fmt.Sprint("n", node), h.now, h.r.IntN(2) == 0)
		}
	}
	h.r.Shuffle(len(h.boards), func(i, j int) { h.boards[i], h.boards[j] = h.boards[j], h.boards[i] })
	for _, b := range h.boards {
		b.joules += h.r.Float64() * 700 * float64(h.poll/second)
		if h.r.IntN(2) == 0 {
			h.burn(b)
		}
		if h.now >= b.hidden {
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
	case 3:
		h.l.Complete("c", fmt.Sprint("n", h.r.IntN(2)), false, h.now)
	case 2: // a board is put into the other node
		b := h.boards[0]
		b.node = 1 - b.node
	}
	h.check()
	switch h.r.IntN(16) {
	case 0, 1, 2:
		h.flush()
	case 3: // killed after the state was stored
		h.l.Hours(h.now)
		h.write()
		h.restart()
	case 4: // or before
		h.l.Hours(h.now)
		h.restart()
	case 5: // or after what it contains was emitted
		hours := h.l.Hours(h.now)
		h.write()
		h.emit(hours)
		h.restart()
	case 6: // it cannot be stored
		h.l.Hours(h.now)
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
	at := h.now
	if h.r.IntN(60) == 0 {
		at -= h.r.Int64N(hour) // its clock is set back
	}
	if h.r.IntN(10) == 0 {
		points = append([]Point{}, points...)
		h.r.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	}
	for _, p := range points {
		p.Node, p.Time = fmt.Sprint("n", b.node), at
		if h.now < h.silent[b.node] {
			if h.r.Uint64()%8 > 0 && h.silent[b.node]%2 == 0 {
				h.queued[b.node] = append(h.queued[b.node], p)
			}
			continue
		}
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
	if began, seen := h.began[b.id]; !seen || at < began {
		h.began[b.id] = at
	}
}

// burn reports the energy of a board. What the ledger must accept is added up.
func (h *history) burn(b *truth) {
	if b.parts[0].Virtual {
		return
	}
	if h.now >= b.readAt+h.refresh || b.joules < b.shown {
		b.readAt, b.shown = h.now, b.joules
	}
	at, value := h.now-h.r.Int64N(20*second), int64(b.shown*1000)
	if a := h.l.boards[b.id]; a != nil && a.until != 0 && at >= a.first && at > a.power.last {
		if e := a.power; e.counted && at-e.changed <= energyFor && value >= e.value && value-e.value <= 2*20_000*(at-e.read) {
			h.energy += value - e.value
		}
	}
	h.l.Energy(b.id, at, float64(value)/1000, 20_000)
}
