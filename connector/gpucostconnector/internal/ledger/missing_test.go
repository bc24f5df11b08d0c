// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// Every row of the table about missing data.
func TestWhileDataIsMissing(t *testing.T) {
	type step struct {
		at     int64
		points []Point
		do     func(l *Ledger)
	}
	a, b := owned("g", "g", "a", share.Whole), owned("g", "g", "b", share.Whole)
	withUID := func(p Point, uid string) Point {
		o := *p.Owner
		o.UID = uid
		p.Owner = &o
		return p
	}
	other := free("g2", "g2", share.Whole)
	for _, tt := range []struct {
		name  string
		steps []step
		want  map[string]int64
		count Counts
		// contested is true where all rows are.
		contested bool
	}{
		{
			name:  "a short gap belongs to the snapshot before it",
			steps: []step{{0, []Point{a}, nil}, {5 * minute, []Point{b}, nil}, {6 * minute, []Point{b}, nil}, {7 * minute, []Point{b}, nil}},
			want:  map[string]int64{"a": 5 * minute, "b": minute},
		}, {
			name:  "a longer one with the same owner is bridged",
			steps: []step{{0, []Point{a}, nil}, {hour, []Point{a}, nil}, {hour + 1, []Point{a}, nil}},
			want:  map[string]int64{"a": hour},
			count: Counts{Bridged: hour},
		}, {
			name:  "with another owner it is unknown",
			steps: []step{{0, []Point{a}, nil}, {hour, []Point{b}, nil}, {hour + 1, []Point{b}, nil}},
			want:  map[string]int64{"(unknown)": hour},
		}, {
			name:  "with another pod of the same name it is unknown",
			steps: []step{{0, []Point{withUID(a, "1")}, nil}, {hour, []Point{withUID(a, "2")}, nil}, {hour + 1, []Point{withUID(a, "2")}, nil}},
			want:  map[string]int64{"(unknown)": hour},
		}, {
			name:  "a uid that becomes known is no other pod",
			steps: []step{{0, []Point{a}, nil}, {hour, []Point{withUID(a, "2")}, nil}, {hour + 1, []Point{withUID(a, "2")}, nil}},
			want:  map[string]int64{"a": hour},
			count: Counts{Bridged: hour},
		}, {
			name:  "longer than the bridge is unknown",
			steps: []step{{0, []Point{a}, nil}, {hour + 1, []Point{a}, nil}, {hour + 2, []Point{a}, nil}},
			want:  map[string]int64{"(unknown)": hour + 1},
		}, {
			name:  "silent for good costs nothing after the last point",
			steps: []step{{0, []Point{a}, nil}, {minute, []Point{a}, nil}, {0, nil, func(l *Ledger) { l.Expire(t0 + 2*minute); l.Expire(t0 + day + 2*minute) }}},
			want:  map[string]int64{"a": minute},
		}, {
			name:  "and when it is back after more than a day it has a new account",
			steps: []step{{0, []Point{a}, nil}, {day + minute, []Point{a}, nil}, {day + 2*minute, []Point{a}, nil}, {day + 3*minute, []Point{a}, nil}},
			want:  map[string]int64{"a": minute},
		}, {
			name:  "a node that reports that it has no devices is closed at once",
			steps: []step{{0, []Point{a}, nil}, {minute, []Point{a}, nil}, {0, nil, func(l *Ledger) { l.Empty("c", "n", t0+2*minute) }}},
			want:  map[string]int64{"a": 2 * minute},
		}, {
			name:  "a late point is dropped",
			steps: []step{{0, []Point{a}, nil}, {minute, []Point{a}, nil}, {2 * minute, []Point{a}, nil}, {30 * second, []Point{b}, nil}, {3 * minute, []Point{a}, nil}},
			want:  map[string]int64{"a": 2 * minute},
			count: Counts{Late: 1},
		}, {
			name:  "the same point twice counts once",
			steps: []step{{0, []Point{a, a}, nil}, {minute, []Point{a, a}, nil}, {2 * minute, []Point{a}, nil}},
			want:  map[string]int64{"a": minute},
		}, {
			name: "what a living node does not list is unavailable",
			steps: []step{
				{0, []Point{a, other}, nil},
				{4 * minute, []Point{other}, nil}, {8 * minute, []Point{other}, nil}, {12 * minute, []Point{other}, nil},
			},
			want: map[string]int64{"(unavailable)": 8 * minute, "(free)": 8 * minute},
		}, {
			name: "until it lists it again",
			steps: []step{
				{0, []Point{a, other}, nil}, {4 * minute, []Point{other}, nil}, {8 * minute, []Point{other}, nil},
				{12 * minute, []Point{a, other}, nil}, {13 * minute, []Point{other}, nil}, {14 * minute, []Point{a, other}, nil}, {15 * minute, []Point{a, other}, nil},
			},
			want: map[string]int64{"(unavailable)": 12 * minute, "a": 2 * minute, "(free)": 14 * minute},
		}, {
			name: "a node that was silent as a whole did not stop to list its boards",
			steps: []step{
				{0, []Point{a, other}, nil}, {10 * minute, []Point{other}, nil}, {11 * minute, []Point{other}, nil}, {12 * minute, []Point{other}, nil},
			},
			want:  map[string]int64{"(unknown)": 10 * minute, "(unavailable)": minute, "(free)": 11 * minute},
			count: Counts{Bridged: 10 * minute},
		}, {
			name: "nothing can have what a cordoned node has free",
			steps: []step{
				{0, []Point{a, other}, nil}, {minute, []Point{a, other}, func(l *Ledger) { l.Node("c", "n", t0+minute, true) }},
				{2 * minute, []Point{a, other}, func(l *Ledger) { l.Node("c", "n", t0+2*minute, false) }}, {3 * minute, []Point{a, other}, nil}, {4 * minute, []Point{a, other}, nil},
			},
			want: map[string]int64{"a": 3 * minute, "(free)": 2 * minute, "(unavailable)": minute},
		}, {
			name:  "two owners of one board have a half each",
			steps: []step{{0, []Point{a, b}, nil}, {minute, []Point{a, b}, nil}, {2 * minute, []Point{a}, nil}},
			want:  map[string]int64{"a": 30 * second, "b": 30 * second}, contested: true,
		}, {
			name: "shares above the board are scaled",
			steps: []step{
				{0, []Point{owned("g", "1", "a", share.Fraction{P: 3, Q: 4}), owned("g", "2", "b", share.Fraction{P: 3, Q: 4})}, nil},
				{minute, []Point{a}, nil}, {2 * minute, []Point{a}, nil},
			},
			want:  map[string]int64{"a": 30 * second, "b": 30 * second},
			count: Counts{Oversubscribed: 1},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := New(config(), t0)
			for _, s := range tt.steps {
				if s.do != nil {
					s.do(l)
				}
				add(l, t0+s.at, s.points...)
			}
			for _, total := range l.Totals() {
				assert.Equal(t, tt.contested, total.Flags&Contested != 0)
			}
			got := map[string]int64{}
			for name, sums := range rows(l) {
				got[name] = sums.Time
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.count, l.Counts())
		})
	}
}

func TestRestart(t *testing.T) {
	a, b := owned("g", "g", "a", share.Whole), owned("g", "g", "b", share.Whole)
	restart := func(l *Ledger) *Ledger {
		again, err := Restore(config(), l.Encode())
		require.NoError(t, err)
		return again
	}
	l := New(config(), t0)
	add(l, t0, a)
	add(l, t0+minute, a)
	l = restart(l) // the snapshot at t0+minute is not settled
	add(l, t0+2*minute, a)
	add(l, t0+3*minute, b)
	assert.Equal(t, 2*minute, rows(l)["a"].Time)
	assert.Equal(t, Counts{Bridged: 2 * minute}, l.Counts())
	l = restart(l)
	add(l, t0+4*minute, b)
	add(l, t0+5*minute, b)
	assert.Equal(t, 2*minute, rows(l)["(unknown)"].Time, "over a restart no gap is taken for granted")
	assert.Equal(t, t0, l.Start())
}

// A board that was put into another node has no time twice, also where its account was closed
// and the clock of the other node is behind.
func TestBoardInAnotherNode(t *testing.T) {
	l := New(config(), t0)
	in := func(node string, at int64) {
		p := owned("g", "g", "a", share.Whole)
		p.Node = node
		add(l, at, p)
	}
	in("n", t0)
	in("n", t0+3*minute)
	l.Empty("c", "n", t0+4*minute)
	in("other", t0+2*minute)
	assert.Equal(t, Counts{Late: 1}, l.Counts())
	l, err := Restore(config(), l.Encode())
	require.NoError(t, err)
	in("other", t0+3*minute)
	assert.Equal(t, Counts{Late: 1}, l.Counts())
	in("other", t0+4*minute)
	in("other", t0+5*minute)
	in("n", t0+6*minute)
	in("n", t0+7*minute)
	assert.Equal(t, 6*minute, rows(l)["a"].Time)
}

// While the exporter is down time is held as always, and unmeasured. What was burnt meanwhile
// is divided afterwards over those who had the board, by their time.
func TestExporterIsDown(t *testing.T) {
	for _, hours := range []int64{4, 23, 25} {
		l := New(config(), t0)
		for at := t0; at <= t0+(hours+2)*hour; at += minute {
			name := "a"
			if at >= t0+2*hour {
				name = "b"
			}
			add(l, at, owned("g", "g", name, share.Whole))
			if at <= t0+hour || at > t0+(hours+1)*hour {
				l.Utilization("g", "g", at, 1)
				l.Energy("g", at, float64(at-t0)*.3, 700)
			}
			if at%(5*minute) == 0 {
				l.Hours(at)
				l.HoursEmitted()
			}
		}
		got := rows(l)
		a := got["a"]
		if hours == 25 {
			a = got[""] // its row is retired
		}
		assert.Equal(t, 2*hour, a.Time)
		assert.InDelta(t, hour, a.Unmeasured, float64(20*minute), "a utilization holds 45 s of each minute")
		if hours < 25 {
			assert.InDelta(t, 300*2*hour, a.Energy[OfBoard], 300*float64(2*minute))
			assert.InDelta(t, 300*hours*hour, got["b"].Energy[OfBoard], 300*float64(2*minute))
			assert.Zero(t, l.Counts().EnergyGap)
			continue
		}
		assert.InDelta(t, 300*hour, a.Energy[OfBoard], 300*float64(2*minute))
		assert.Equal(t, hours*hour+minute, l.Counts().EnergyGap, "longer than a day it cannot be known")
	}
}

// What a living node does not list for a week is gone.
func TestUnavailableForAWeek(t *testing.T) {
	l := New(config(), t0)
	other := free("g2", "g2", share.Whole)
	add(l, t0, owned("g", "g", "a", share.Whole), other)
	for at := t0 + minute; at <= t0+9*day; at += 5 * minute {
		add(l, at, other)
		if at%hour == 0 {
			l.Expire(at)
		}
	}
	assert.InDelta(t, 7*day, rows(l)["(unavailable)"].Time, float64(10*minute))
	assert.Equal(t, 1, l.Boards())
	add(l, t0+9*day+minute, owned("g", "g", "a", share.Whole), other)
	assert.Equal(t, 2, l.Boards(), "it is a new account")
}

// What a board is of decides from the snapshot on in which it is reported, as owners do.
func TestClassThatChanges(t *testing.T) {
	l := New(config(), t0)
	spot := *h100
	spot.Capacity = "spot"
	for i := range int64(5) {
		p := owned("g", "g", "a", share.Whole)
		if i >= 2 {
			p.Class = &spot
		}
		add(l, t0+i*minute, p)
	}
	got := map[string]int64{}
	for _, total := range l.Totals() {
		got[total.Key.Capacity] += total.Time
	}
	assert.Equal(t, map[string]int64{"": 2 * minute, "spot": minute}, got)
}

// The last interval of a node that is gone does not wait for its account to be closed.
func TestLastIntervalOfANode(t *testing.T) {
	l := New(config(), t0)
	a := owned("g", "g", "a", share.Whole)
	add(l, t0, a)
	add(l, t0+minute, a)
	for at := t0 + 2*minute; at <= t0+7*minute; at += minute {
		l.Expire(at)
		assert.Zero(t, rows(l)["a"].Time, "more of the snapshot may come")
	}
	l.Expire(t0 + 8*minute)
	assert.Equal(t, minute, rows(l)["a"].Time)
	add(l, t0+minute, a)
	add(l, t0+9*minute, a)
	add(l, t0+10*minute, a)
	assert.Equal(t, 9*minute, rows(l)["a"].Time)
	assert.Equal(t, Counts{Bridged: 8 * minute}, l.Counts())
}

// What has a model has a price. Telemetry may name the model of a new board later than the
// first snapshots list it: they wait for it, and an owner that changes meanwhile does not.
func TestModelThatIsKnownLater(t *testing.T) {
	nameless := *h100
	nameless.Model = ""
	for _, tt := range []struct {
		name  string
		known int64 // the first snapshot with the model
		other int64 // and with another owner
		want  map[string]int64
	}{
		{"with the second snapshot", 1, 100, map[string]int64{"a " + h100.Model: 9 * 15 * second}},
		{"after some", 6, 100, map[string]int64{"a " + h100.Model: 9 * 15 * second}},
		{"after an owner has changed", 6, 3, map[string]int64{"a ": 3 * 15 * second, "b ": 2 * 15 * second, "b " + h100.Model: 4 * 15 * second}},
		{"never", 100, 100, map[string]int64{"a ": 9 * 15 * second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := config()
			cfg.AllocationTTL = 3 * minute
			l := New(cfg, t0)
			for i := range int64(11) {
				p := owned("g", "g", "a", share.Whole)
				if i >= tt.other {
					p = owned("g", "g", "b", share.Whole)
				}
				if i < tt.known {
					p.Class = &nameless
				}
				add(l, t0+i*15*second, p)
			}
			got := map[string]int64{}
			for _, total := range l.Totals() {
				got[total.Key.Service+" "+total.Key.Model] += total.Time
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

// A board that is replaced is not unavailable beside its successor, and the node has as many
// boards as before at every moment.
func TestReplacedBoard(t *testing.T) {
	for _, gap := range []int64{minute, 3 * minute, 20 * minute} {
		for _, later := range []int64{0, hour} {
			cfg := config()
			counts := map[int64]bool{}
			cfg.Price = func(of *Priced, at int64) Price {
				counts[of.Boards] = true
				return Price{prices.Rate{Nano: of.Boards, Per: 1}, prices.KindList, at + minute}
			}
			l := New(cfg, t0)
			at := t0
			run := func(until int64, ids ...string) {
				for ; at < until; at += minute {
					for _, id := range ids {
						add(l, at, free(id, id, share.Whole))
					}
				}
			}
			run(t0+10*minute, "g0", "g1")
			at += gap - minute
			run(at+later, "g0") // the other one is missing for a while
			run(at+2*hour, "new", "g0")
			assert.Equal(t, map[int64]bool{2: true}, counts, "gap %d, later %d", gap, later)
			assert.Equal(t, 2, l.Boards())
			if later == 0 {
				assert.Zero(t, rows(l)["(unavailable)"].Time)
			} else {
				assert.InDelta(t, later, rows(l)["(unavailable)"].Time+rows(l)["(unknown)"].Time, float64(gap+2*minute))
			}
		}
	}
}
