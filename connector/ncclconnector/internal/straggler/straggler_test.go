// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/inspector"
)

var begin = time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)

func config() Config {
	return Config{
		Window: time.Minute, Least: 20, Share: 0.5, Cost: 0.05, Windows: 3, TTL: 15 * time.Minute,
		MaxCommunicators: 20_000, MaxRanks: 4096, MaxWaiting: 64 << 20,
	}
}

// group is a communicator whose ranks are spread evenly over hosts. Every second ten of its
// collectives are sampled: kernels end together, and start when their rank comes.
type group struct {
	Communicator
	hosts int
	rng   *rand.Rand
	took  time.Duration                    // without waiting
	late  func(rank int, n uint64) float64 // by how much of took, beside a jitter of a tenth
	sends func(rank int, n uint64) bool
	next  uint64
}

func newGroup(ranks, hosts int) *group {
	return &group{
		Communicator: Communicator{"c", inspector.Key{ID: "0x7f", Ranks: ranks, Nodes: hosts}}, hosts: hosts, took: 4 * time.Millisecond,
		rng:  rand.New(rand.NewPCG(uint64(ranks), uint64(hosts))),
		late: func(int, uint64) float64 { return 0 }, sends: func(int, uint64) bool { return true },
	}
}

func (g *group) host(rank int) string { return fmt.Sprint("node-", rank*g.hosts/g.Ranks) }

// run lets the group work, and returns the verdicts as text.
func (g *group) run(s *State, from, to time.Duration) (all []string) {
	for at := from; at < to; at += time.Second {
		now := begin.Add(at)
		for range 10 {
			took := float64(g.took) * (0.9 + 0.2*g.rng.Float64())
			arrivals := make([]float64, g.Ranks)
			latest := 0.0
			for r := range arrivals {
				arrivals[r] = float64(g.took) * (0.1*g.rng.Float64() + g.late(r, g.next))
				latest = max(latest, arrivals[r])
			}
			for r := range arrivals {
				if g.sends(r, g.next) {
					s.Observe(g.Communicator, Samples{r, g.host(r), inspector.AllReduce, []uint64{g.next}, []time.Duration{time.Duration(took + latest - arrivals[r])}}, now)
				}
			}
			g.next++
		}
		for _, v := range s.Tick(now) {
			text := fmt.Sprintf("%s cleared", v.Suspect.name())
			if v.Raised {
				text = fmt.Sprintf("%s raised", v.Suspect.name())
			}
			if v.Gone {
				text += ", gone"
			}
			all = append(all, text)
		}
	}
	return all
}

func (s Suspect) name() string {
	if s.Rank < 0 {
		return s.Host
	}
	return fmt.Sprint("rank ", s.Rank, " on ", s.Host)
}

// Who is named within five minutes, and no one else.
func TestWhoIsLate(t *testing.T) {
	only := func(who int, by float64) func(int, uint64) float64 {
		return func(rank int, _ uint64) float64 {
			if rank == who {
				return by
			}
			return 0
		}
	}
	for name, c := range map[string]struct {
		ranks, hosts int
		late         func(int, uint64) float64
		want         []string
	}{
		"nobody":                     {16, 2, only(-1, 0), nil},
		"one by a fifth":             {16, 2, only(11, 0.2), []string{"rank 11 on node-1 raised"}},
		"one of two":                 {2, 1, only(1, 0.3), []string{"rank 1 on node-0 raised"}},
		"one of two on two hosts":    {2, 2, only(1, 0.3), []string{"rank 1 on node-1 raised"}},
		"one of a thousand":          {1024, 128, only(700, 0.5), []string{"rank 700 on node-87 raised"}},
		"one that costs too little":  {16, 2, only(3, 0.04), nil},
		"one a third of the time":    {16, 2, func(r int, n uint64) float64 { return only(3, 0.5)(r, 0) * float64(1-min(1, n%3)) }, nil},
		"all of a host":              {32, 4, func(r int, _ uint64) float64 { return only(2, 0.5)(r/8, 0) }, []string{"node-2 raised"}},
		"those of a host in turn":    {32, 4, func(r int, n uint64) float64 { return only(16+int(n%8), 0.5)(r, 0) }, []string{"node-2 raised"}},
		"each in turn":               {32, 4, func(r int, n uint64) float64 { return only(int(n%32), 0.5)(r, 0) }, nil},
		"one outlier, however long":  {16, 2, func(r int, n uint64) float64 { return only(5, 1000)(r, 0) * float64(1-min(1, n%400)) }, nil},
		"two that are equally late ": {16, 2, func(r int, _ uint64) float64 { return only(3, 0.5)(r%8, 0) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(c.ranks, c.hosts)
			g.late = c.late
			assert.Equal(t, c.want, g.run(New(config()), 0, 5*time.Minute))
		})
	}
}

// Others read the longest time, or the one farthest above the median, as the straggler's. It is that
// of who waited longest.
func TestTheLongestTimeIsTheVictims(t *testing.T) {
	s := New(config())
	id := Communicator{"c", inspector.Key{ID: "0x7f", Ranks: 4, Nodes: 1}}
	times := []time.Duration{9 * time.Millisecond, 10 * time.Millisecond, 2 * time.Millisecond, 9 * time.Millisecond}
	var all []Verdict
	for n := range uint64(400) {
		now := begin.Add(time.Duration(n) * time.Second)
		for rank, d := range times {
			s.Observe(id, Samples{rank, "node-0", inspector.ReduceScatter, []uint64{n}, []time.Duration{d}}, now)
		}
		all = append(all, s.Tick(now)...)
	}
	require.Len(t, all, 1)
	assert.Equal(t, Suspect{2, "node-0"}, all[0].Suspect, "not 1, which took longest")
	assert.InEpsilon(t, 1, all[0].Share, 1e-9)
	assert.Equal(t, 7*time.Millisecond, all[0].Lateness)
	assert.InEpsilon(t, 22./30, all[0].Wait, 1e-9)
	r := s.Reports(begin.Add(400 * time.Second))[0]
	assert.Equal(t, []Late{{Suspect{2, "node-0"}, 1, 7 * time.Millisecond}}, r.Latest)
	assert.InEpsilon(t, 22./30, r.Wait/r.Total, 1e-9)
	assert.Equal(t, 4, r.Reporting)
}

// A straggler is raised after three windows, stays while it is above half of the bounds, and ends
// below; or with its communicator.
func TestCourse(t *testing.T) {
	s, g := New(config()), newGroup(8, 1)
	by, every := 0.5, uint64(1)
	g.late = func(rank int, n uint64) float64 {
		if rank == 3 && n%every == 0 {
			return by
		}
		return 0
	}
	assert.Empty(t, g.run(s, 0, 3*time.Minute))
	assert.Equal(t, []string{"rank 3 on node-0 raised"}, g.run(s, 3*time.Minute, 4*time.Minute))
	every = 3
	assert.Empty(t, g.run(s, 4*time.Minute, 8*time.Minute), "last in a third of the collectives")
	every = 10
	assert.Equal(t, []string{"rank 3 on node-0 cleared"}, g.run(s, 8*time.Minute, 11*time.Minute))
	every = 1
	assert.Equal(t, []string{"rank 3 on node-0 raised"}, g.run(s, 11*time.Minute, 15*time.Minute))
	all := s.Tick(begin.Add(31 * time.Minute))
	require.Len(t, all, 1)
	assert.True(t, all[0].Gone)
	assert.False(t, all[0].Raised)
	assert.Zero(t, s.Tracked())
	assert.Zero(t, s.waiting)
}

// Collectives of which ranks are missing: few of many are no harm, others are dropped and counted.
func TestMissingRanks(t *testing.T) {
	for missing, want := range map[int]bool{0: true, 1: true, 2: false} {
		s, g := New(config()), newGroup(16, 2)
		g.late = func(rank int, _ uint64) float64 {
			if rank == 9 {
				return 0.5
			}
			return 0
		}
		g.sends = func(rank int, _ uint64) bool { return rank >= missing }
		verdicts := g.run(s, 0, 6*time.Minute)
		assert.Equal(t, want, len(verdicts) == 1, missing)
		assert.Equal(t, want, s.Counts().Incomplete == 0)
		assert.Equal(t, 16-missing, s.Reports(begin.Add(6 * time.Minute))[0].Reporting)
	}
}

func TestLimits(t *testing.T) {
	cfg := config()
	cfg.MaxCommunicators, cfg.MaxRanks, cfg.MaxWaiting = 1, 8, 3*(128+64)
	s := New(cfg)
	id := Communicator{"c", inspector.Key{ID: "1", Ranks: 8, Nodes: 1}}
	send := func(id Communicator, rank int, n uint64) {
		s.Observe(id, Samples{rank, "node-0", inspector.AllGather, []uint64{n, n}, []time.Duration{1, 1}}, begin)
	}
	for n := range uint64(5) {
		send(id, 0, n)
	}
	send(id, 8, 0)
	send(id, -1, 0)
	large := id
	large.Ranks = 9
	send(large, 0, 0)
	other := id
	other.ID = "2"
	send(other, 0, 0)
	assert.Equal(t, map[Refusal]int{LimitWaiting: 4, BadRank: 2, LimitRanks: 1, LimitCommunicators: 1}, s.Counts().Refused)
	assert.Empty(t, s.Forget(func(Communicator) bool { return true }))
	assert.Zero(t, s.waiting)
}
