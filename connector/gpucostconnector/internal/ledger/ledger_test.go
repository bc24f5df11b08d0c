// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// start of the tests' time, a full hour.
const t0 = 500_000 * hour

func config() Config {
	return Config{
		AllocationTTL: 5 * minute, Bridge: hour, CloseAfter: day, UnavailableFor: 7 * day, Staleness: 45 * second,
		IdleThreshold: 50_000, IdleFor: 15 * minute, MaxRows: 5000, MaxBoards: 20_000,
	}
}

var h100 = &Class{Cluster: "c", Model: "NVIDIA H100 80GB HBM3", HostType: "gpu-h100-sxm_8gpu"}

func owned(board, part, pod string, of share.Fraction) Point {
	return Point{
		Cluster: "c", Node: "n", Board: board, Part: part, Class: h100, State: Held, Share: of, Rest: Free,
		Owner: &Owner{Namespace: "ns", Pod: pod, Container: "main", Service: pod, Tenant: "t"},
	}
}

func free(board, part string, of share.Fraction) Point {
	p := owned(board, part, "", of)
	p.State, p.Owner = Free, nil
	return p
}

func replica(p Point, n int) Point {
	p.Replicas, p.Device = n, p.Board
	return p
}

func instance(p Point, profile string) Point {
	p.Profile, p.Rest = profile, Stranded
	return p
}

// add adds all points of a time.
func add(l *Ledger, at int64, points ...Point) {
	for i := range points {
		points[i].Time = at
		l.Add(&points[i])
	}
}

// rows sums the totals by service, and by state what has no owner.
func rows(l *Ledger) map[string]Amounts {
	sums := map[string]Amounts{}
	for _, t := range l.Totals() {
		name := t.Key.Service
		if t.Key.State != Held {
			name = "(" + t.Key.State.String() + ")"
		}
		s := sums[name]
		s.Time += t.Time
		s.Used += t.Used
		s.Idle += t.Idle
		s.Unmeasured += t.Unmeasured
		s.Unplaced += t.Unplaced
		s.Carbon += t.Carbon
		for i := range s.Energy {
			s.Energy[i] += t.Energy[i]
		}
		sums[name] = s
	}
	return sums
}

// The node of the specification: eight boards at 23.60 an hour for all.
func TestWorkedExample(t *testing.T) {
	for _, every := range []int64{hour, 15 * second} {
		t.Run(fmt.Sprint(every), func(t *testing.T) { workedExample(t, every) })
	}
}

func workedExample(t *testing.T, every int64) {
	cfg := config()
	cfg.AllocationTTL, cfg.Staleness = 2*hour, 2*hour
	cfg.Price = func(*Priced, int64) Price {
		return Price{prices.Rate{Nano: 2_950_000_000, Per: 1}, prices.KindList, t0 + day}
	}
	cfg.Carbon = func(*Class, int64) (int64, bool) { return 456_000, true } // 380 g at PUE 1.2
	l := New(cfg, t0)

	node := []Point{owned("g0", "g0", "a", share.Whole), owned("g1", "g1", "a", share.Whole)}
	for n := range 3 {
		node = append(node, replica(owned("g2", fmt.Sprintf("g2::%d", n), "b", share.Whole), 4))
	}
	node = append(node, replica(free("g2", "g2::3", share.Whole), 1),
		instance(owned("g3", "g3/1", "c", share.Fraction{P: 3, Q: 7}), "3g.40gb"),
		instance(owned("g3", "g3/2", "c", share.Fraction{P: 1, Q: 7}), "1g.10gb"),
		instance(free("g3", "g3/3", share.Fraction{P: 1, Q: 7}), "1g.10gb"),
		owned("g4", "g4", "d", share.Whole),
		free("g5", "g5", share.Whole), free("g6", "g6", share.Whole), free("g7", "g7", share.Whole))
	for at := t0; at <= t0+hour; at += every {
		add(l, at, node...)
		for board, busy := range map[string]float64{"g0": .5, "g1": .5, "g4": .01} {
			l.Utilization(board, board, at, busy)
		}
	}
	add(l, t0+hour+1, node...)

	got := rows(l)
	assert.Equal(t, Amounts{Time: 7_200_000, Used: 3_600_000}, got["a"])
	assert.Equal(t, int64(2_700_000), got["b"].Time)
	assert.Equal(t, int64(2_057_143), got["c"].Time)
	assert.Equal(t, Amounts{Time: 3_600_000, Used: 36_000, Idle: 3_600_000}, got["d"])
	assert.Equal(t, int64(900_000+514_286+10_800_000), got["(free)"].Time)
	assert.Equal(t, int64(1_028_571), got["(stranded)"].Time)

	cost, all := map[string]int64{}, int64(0)
	for _, total := range l.Totals() {
		name := total.Key.Service + total.Key.Profile
		if total.Key.State != Held {
			name = total.Key.State.String() + total.Key.Profile
		}
		cost[name] += total.Key.Rate.Cost(total.Time)
		all += total.Time
	}
	assert.Equal(t, int64(28_800_000), all)
	for name, want := range map[string]float64{
		"a": 5.90, "b": 2.2125, "c3g.40gb": 1.2643, "c1g.10gb": 0.4214, "d": 2.95, "free": 8.85 + .7375, "free1g.10gb": .4214, "stranded": .8429,
	} {
		assert.InDelta(t, want, float64(cost[name])/1e9, 0.00005, name)
	}
	sum := int64(0)
	for _, c := range cost {
		sum += c
	}
	assert.InDelta(t, 23.60, float64(sum)/1e9, 0.0000001)
}

// The board of C drew 1.8 MJ: its owner has its share, and what nothing covers has its own.
func TestEnergyIsSplitByShare(t *testing.T) {
	cfg := config()
	cfg.Carbon = func(*Class, int64) (int64, bool) { return 456_000, true }
	l := New(cfg, t0)
	board := []Point{
		instance(owned("g3", "g3/1", "c", share.Fraction{P: 3, Q: 7}), "3g.40gb"),
		instance(owned("g3", "g3/2", "c", share.Fraction{P: 1, Q: 7}), "1g.10gb"),
		instance(free("g3", "g3/3", share.Fraction{P: 1, Q: 7}), "1g.10gb"),
	}
	add(l, t0-1, board...)
	add(l, t0, board...)
	add(l, t0+1, board...)
	l.Energy("g3", t0, 0, 700)
	for at := t0 + 15*second; at <= t0+hour+15*second; at += 15 * second {
		add(l, at, board...)
	}
	l.Energy("g3", t0+hour, 1_800_000, 700)
	got := rows(l)
	assert.InDelta(t, 1_028_600_000, got["c"].Energy[OfShare], 50_000)
	assert.Equal(t, int64(1_800_000_000), got["c"].Energy[OfShare]+got["(free)"].Energy[OfShare]+got["(stranded)"].Energy[OfShare])
	assert.InDelta(t, 228_000_000, got["c"].Carbon+got["(free)"].Carbon+got["(stranded)"].Carbon, 5)
}

func TestIdle(t *testing.T) {
	l := New(config(), t0)
	a := owned("g", "g", "a", share.Whole)
	at := t0
	run := func(minutes int64, busy float64) {
		for until := at + minutes*minute; at < until; at += 15 * second {
			add(l, at, a)
			if busy >= 0 {
				l.Utilization("g", "g", at, busy)
			}
		}
	}
	run(14, 0)
	assert.Zero(t, rows(l)["a"].Idle, "not long enough")
	run(1, 0.9)
	run(16, 0.01)
	assert.InDelta(t, 16*minute, rows(l)["a"].Idle, float64(30*second), "from its start")
	idle := rows(l)["a"].Idle
	run(10, -1)
	got := rows(l)["a"]
	assert.InDelta(t, idle+minute, got.Idle, float64(30*second), "what is not measured is not idle")
	assert.InDelta(t, 9*minute, got.Unmeasured, float64(45*second))
	run(14, 0)
	assert.InDelta(t, idle+minute, rows(l)["a"].Idle, float64(30*second), "the stretch begins again")
}

// Utilization and energy may come more often than owners, and before them.
func TestTelemetryThatIsAhead(t *testing.T) {
	l := New(config(), t0)
	a := owned("g", "g", "a", share.Whole)
	for at := t0; at <= t0+hour; at += 5 * second {
		l.Utilization("g", "g", at, 0.5)
		l.Energy("g", at, float64(at-t0)*.3, 700)
		if (at-t0)%minute == 0 {
			add(l, at, a)
			l.Utilization("g", "g", at, 0.5)
		}
	}
	got := rows(l)["a"]
	assert.Equal(t, 59*minute, got.Time)
	assert.InDelta(t, got.Time/2, got.Used, float64(minute))
	assert.LessOrEqual(t, got.Unmeasured, minute)
	assert.InDelta(t, 300*got.Time, got.Energy[OfBoard], float64(300*2*minute))
}

// A reset, and more than the board can burn, is credited to nothing.
func TestEnergyResets(t *testing.T) {
	l := New(config(), t0)
	a := owned("g", "g", "a", share.Whole)
	for i, joules := range []float64{0, 1000, 5000, 9000, 100, 4100, 1e9, 1e9 + 1000, 1e9 + 2000} {
		at := t0 + int64(i)*15*second
		add(l, at, a)
		l.Energy("g", at, joules, 700)
	}
	add(l, t0+3*minute, a)
	add(l, t0+4*minute, a)
	assert.Equal(t, [3]int64{OfBoard: 15_000_000}, rows(l)["a"].Energy)
	assert.Equal(t, 30*second, l.Counts().EnergyGap)
}

func TestPowerIsIntegrated(t *testing.T) {
	l := New(config(), t0)
	a := owned("g", "g", "a", share.Whole)
	for i := range int64(10) {
		add(l, t0+i*15*second, a)
		l.Power("g", t0+i*15*second, 300)
	}
	add(l, t0+3*minute, a)
	assert.Equal(t, [3]int64{Integrated: 300 * 1000 * 135}, rows(l)["a"].Energy)
}

func TestRowsAreLimited(t *testing.T) {
	cfg := config()
	cfg.MaxRows = 3
	l := New(cfg, t0)
	for i := range int64(20) {
		add(l, t0+i*minute, owned("g", "g", fmt.Sprint("pod", i), share.Whole))
	}
	sum := int64(0)
	for _, r := range l.Totals() {
		sum += r.Time
	}
	assert.Equal(t, 18*minute, sum)
	assert.LessOrEqual(t, len(l.Totals()), 4)
	assert.Positive(t, rows(l)[Other].Time)
	assert.Positive(t, l.Counts().Overflowed)
}

func TestHours(t *testing.T) {
	l := New(config(), t0)
	a := owned("g", "g", "a", share.Whole)
	for at := t0; at < t0+3*hour; at += minute {
		add(l, at, a)
	}
	for _, h := range l.Hours(t0 + hour) {
		assert.Zero(t, h.Revision, "they are running")
	}
	l.HoursEmitted()
	assert.Empty(t, l.Hours(t0+hour), "nothing has changed")

	// closed are those that have ended, running the others.
	closed := func(l *Ledger, now int64) (all []HourTotal, running int) {
		for _, h := range l.Hours(now) {
			if h.Revision > 0 {
				all = append(all, h)
			} else {
				running++
			}
		}
		return all, running
	}
	now := t0 + hour + 20*minute
	hours, running := closed(l, now)
	require.Len(t, hours, 1)
	assert.Equal(t, Amounts{Time: hour, Unmeasured: hour}, hours[0].Amounts)
	assert.Equal(t, uint32(1), hours[0].Revision)
	assert.Zero(t, running)
	killed := l.Encode()
	again, _ := closed(l, now)
	assert.Equal(t, hours, again, "it was not acknowledged")
	l.HoursEmitted()
	again, _ = closed(l, now)
	assert.Empty(t, again)

	// A process that was killed before it could emit: once more, as a later revision, which
	// replaces the one that may have been emitted.
	restored, err := Restore(config(), killed)
	require.NoError(t, err)
	again, running = closed(restored, now)
	require.Len(t, again, 1)
	assert.Equal(t, uint32(2), again[0].Revision)
	assert.Equal(t, 2, running, "of those that run nothing is known any more where they went")

	restored, err = Restore(config(), l.Encode())
	require.NoError(t, err)
	again, _ = closed(restored, now)
	assert.Empty(t, again, "it was acknowledged")
	again, _ = closed(restored, t0+2*hour+20*minute)
	require.Len(t, again, 1, "the next one")
	assert.Equal(t, t0+hour, again[0].Start)
}

func TestBehind(t *testing.T) {
	l := New(config(), t0)
	a, b := owned("g", "g", "a", share.Whole), owned("g2", "g2", "b", share.Whole)
	assert.Zero(t, l.Behind(), "without boards")
	for at := t0; at <= t0+3*minute; at += minute {
		add(l, at, a)
		if at <= t0+minute {
			add(l, at, b)
		}
	}
	assert.Equal(t, t0, l.Behind())
	assert.Zero(t, l.Behind(), "nothing has come since")
	add(l, t0+4*minute, a)
	assert.Equal(t, t0+3*minute, l.Behind(), "a board that is silent is not behind")
	add(l, t0-hour, b)
	assert.Equal(t, t0, l.Behind(), "one of which all points are late is")
}

func TestClasses(t *testing.T) {
	l := New(config(), t0)
	other := *h100
	other.Region = "r"
	for at := t0; at <= t0+minute; at += minute {
		for i, id := range []string{"g", "g2", "g3", "g4"} {
			p := free(id, id, share.Whole)
			if i == 3 {
				p.Class, p.Node = &other, "n4"
			}
			add(l, at, p)
		}
	}
	boards := map[string][2]int64{}
	l.Classes(func(of *Priced, n int64) {
		assert.Equal(t, share.Whole, of.Share)
		boards[of.Class.Region] = [2]int64{of.Boards, n}
	})
	assert.Equal(t, map[string][2]int64{"": {3, 3}, "r": {1, 1}}, boards)
}
