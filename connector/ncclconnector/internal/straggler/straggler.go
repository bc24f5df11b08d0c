// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package straggler finds the rank, or the host, for which a communicator waits.
//
// In a synchronising collective the kernels of all ranks end at nearly the same moment, and a kernel
// that came early spins until the last one comes. So the late rank has the shortest time, and what
// the others have more is waiting. No clocks are compared.
//
// It has no clock, no goroutine and no I/O: samples and the time are passed in.
package straggler

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/inspector"
)

// Config of State.
type Config struct {
	// Window is over which time ranks are judged, if there are Least collectives in it.
	Window time.Duration
	Least  int
	// Share is of how many collectives a straggler comes last, as a fraction, and Cost what its
	// lateness is of the time in collectives.
	Share, Cost float64
	Windows     int // in a row for which both hold
	// TTL is since the last sample of a communicator until it is forgotten.
	TTL              time.Duration
	MaxCommunicators int
	MaxRanks         int // of a communicator
	MaxWaiting       int // bytes of samples of collectives that are not complete
}

// Communicator is one in a cluster.
type Communicator struct {
	Cluster string
	inspector.Key
}

// Samples are durations of one operation on one rank.
type Samples struct {
	Rank      int
	Host      string
	Operation string
	Sequences []uint64
	Durations []time.Duration
}

// Suspect is a rank, or a host: Rank is -1 then.
type Suspect struct {
	Rank int
	Host string
}

// Verdict is a change: a suspect has become a straggler, or is one no more.
type Verdict struct {
	Communicator Communicator
	Suspect      Suspect
	Raised       bool
	// Gone is set where the communicator was forgotten.
	Gone bool
	// Share of the window's collectives to which it came last; Lateness by how much on average;
	// Wait is the time of all ranks that was waiting, as a fraction.
	Share, Wait float64
	Lateness    time.Duration
	Evaluated   int
}

// Counts are since the State was made.
type Counts struct {
	Evaluated  int // collectives
	Incomplete int // that were dropped because ranks were missing
	Windows    int
	Refused    map[Refusal]int // samples
}

// Refusal is why samples are left out.
type Refusal string

// The refusals.
const (
	LimitCommunicators Refusal = "max_communicators"
	LimitRanks         Refusal = "max_ranks"
	LimitWaiting       Refusal = "max_waiting"
	BadRank            Refusal = "rank"
)

// State is what is known of communicators. It is not safe for concurrent use.
type State struct {
	cfg     Config
	comms   map[Communicator]*comm
	waiting int // bytes
	counts  Counts
}

// New returns a State that knows nothing.
func New(cfg Config) *State {
	return &State{cfg: cfg, comms: map[Communicator]*comm{}, counts: Counts{Refused: map[Refusal]int{}}}
}

// Counts returns what was done so far.
func (s *State) Counts() Counts {
	c := s.counts
	c.Refused = maps.Clone(c.Refused)
	return c
}

// Tracked is how many communicators are known.
func (s *State) Tracked() int { return len(s.comms) }

// comm is a communicator.
type comm struct {
	seen    time.Time
	ranks   []rank
	pending map[call]*collective
	window  tally
	closed  *tally // the newest window that is over
	hot     map[Suspect]*heat
}

// rank is what is known of one.
type rank struct {
	host string
	seen time.Time
}

// call is one collective.
type call struct {
	operation string
	sequence  uint64
}

// collective has the durations of the ranks that have sent theirs; 0: it has not.
type collective struct {
	first time.Time
	times []time.Duration
	count int
}

// Knows reports whether a communicator is known.
func (s *State) Knows(id Communicator) bool { return s.comms[id] != nil }

// Observe takes in samples of a rank; without sequences they only show that it lives. It reports
// whether it did.
func (s *State) Observe(id Communicator, in Samples, now time.Time) bool {
	c := s.comms[id]
	switch {
	case in.Rank < 0 || in.Rank >= id.Ranks:
		s.counts.Refused[BadRank]++
		return false
	case id.Ranks > s.cfg.MaxRanks:
		s.counts.Refused[LimitRanks]++
		return false
	case c == nil && len(s.comms) >= s.cfg.MaxCommunicators:
		s.counts.Refused[LimitCommunicators]++
		return false
	case c == nil:
		c = &comm{ranks: make([]rank, id.Ranks), pending: map[call]*collective{}, hot: map[Suspect]*heat{}, window: newTally(now)}
		s.comms[id] = c
	}
	c.seen = now
	c.ranks[in.Rank] = rank{in.Host, now}
	if !inspector.Synchronises(in.Operation) || id.Ranks < 2 {
		return true
	}
	for i := range min(len(in.Sequences), len(in.Durations)) {
		if in.Durations[i] > 0 {
			s.add(c, call{in.Operation, in.Sequences[i]}, in.Rank, in.Durations[i], now)
		}
	}
	return true
}

func (s *State) add(c *comm, of call, rank int, d time.Duration, now time.Time) {
	k := c.pending[of]
	if k == nil {
		if s.waiting+size(c) > s.cfg.MaxWaiting {
			s.counts.Refused[LimitWaiting]++
			return
		}
		k = &collective{first: now, times: make([]time.Duration, len(c.ranks))}
		c.pending[of] = k
		s.waiting += size(c)
	}
	if k.times[rank] != 0 {
		return // sent again
	}
	k.times[rank] = d
	if k.count++; k.count == len(k.times) {
		s.finish(c, of, k)
	}
}

// size is about what a collective takes that waits, in bytes.
func size(c *comm) int { return 128 + 8*len(c.ranks) }

func (s *State) finish(c *comm, of call, k *collective) {
	delete(c.pending, of)
	s.waiting -= size(c)
	s.counts.Evaluated++
	c.window.add(c.ranks, k.times)
}

// complete reports whether a collective has the times of as many ranks as are needed to know which
// was last: nearly all, and all of few.
func (k *collective) complete() bool {
	n := len(k.times)
	return k.count == n || n >= 10 && 10*k.count >= 9*n
}

// Tick ends what is due, and returns what has changed by that.
func (s *State) Tick(now time.Time) (all []Verdict) {
	for id, c := range s.comms {
		for of, k := range c.pending {
			if now.Sub(k.first) < s.cfg.Window {
				continue
			}
			if k.complete() {
				s.finish(c, of, k)
				continue
			}
			delete(c.pending, of)
			s.waiting -= size(c)
			s.counts.Incomplete++
		}
		open := now.Sub(c.window.since)
		switch {
		case open >= s.cfg.Window && c.window.evaluated >= s.cfg.Least:
			all = append(all, s.judge(id, c)...)
			s.counts.Windows++
			closed := c.window
			closed.until = now
			c.closed, c.window = &closed, newTally(now)
		case open >= maxWindows*s.cfg.Window:
			c.window = newTally(now)
		}
		if now.Sub(c.seen) > s.cfg.TTL {
			all = append(all, s.forget(id, c)...)
		}
	}
	return sorted(all)
}

// maxWindows is for how many windows one stays open that has too few collectives.
const maxWindows = 30

// Forget forgets the communicators that are over, and returns the stragglers that end with them.
func (s *State) Forget(over func(Communicator) bool) (all []Verdict) {
	for id, c := range s.comms {
		if over(id) {
			all = append(all, s.forget(id, c)...)
		}
	}
	return sorted(all)
}

func sorted(all []Verdict) []Verdict {
	slices.SortFunc(all, func(a, b Verdict) int {
		return cmp.Or(compare(a.Communicator, b.Communicator), cmp.Compare(a.Suspect.Rank, b.Suspect.Rank), cmp.Compare(a.Suspect.Host, b.Suspect.Host))
	})
	return all
}

func (s *State) forget(id Communicator, c *comm) (all []Verdict) {
	for suspect, h := range c.hot {
		if h.raised {
			all = append(all, Verdict{Communicator: id, Suspect: suspect, Gone: true})
		}
	}
	s.waiting -= len(c.pending) * size(c)
	delete(s.comms, id)
	return all
}
