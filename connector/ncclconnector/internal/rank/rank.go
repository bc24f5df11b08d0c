// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package rank keeps what Inspector's files state of the ranks of a node: metrics of their
// operations, and samples for the place where all ranks of a communicator meet. It has no clock, no
// goroutine and no I/O: lines and the time are passed in.
package rank

import (
	"regexp"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/holders"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/inspector"
)

// Config of State.
type Config struct {
	// Paths find the holder in the path of a file, by their groups namespace, pod and job; the first
	// that matches decides.
	Paths     []*regexp.Regexp
	RankLabel bool // a series for each rank
	Samples   int  // of an operation of a rank that are sent in an interval
	// TTL is since the last record of a rank, or of a file, until it is forgotten.
	TTL              time.Duration
	MaxCommunicators int
	MaxSeries        int
	MaxFiles         int
}

// Kubernetes and Slurm are how the folder of a holder is called in what we ship:
// <namespace>_<pod> and <job id>.
var (
	Kubernetes = regexp.MustCompile(`/(?P<namespace>[a-z0-9-]{1,63})_(?P<pod>[a-z0-9.-]{1,253})/[^/]+$`)
	Slurm      = regexp.MustCompile(`/(?P<job>[0-9]{1,10})/[^/]+$`)
)

// Cause is why a line is refused: one of inspector's, or one of these.
type Cause = inspector.Cause

// Causes beside those of inspector.
const (
	// Future is a record from ahead of the node's clock.
	Future Cause = "future"
	// TwoFiles is a rank of which two processes write at the same time.
	TwoFiles Cause = "two_files"
	// Ranks is a communicator whose number of ranks changes within a file.
	Ranks Cause = "ranks_changed"
	// Contradiction is a record whose bandwidth is not that of its size and time. It is used.
	Contradiction Cause = "contradiction"
	// LimitCommunicators, LimitSeries and LimitFiles are limits that were reached.
	LimitCommunicators Cause = "max_communicators"
	LimitSeries        Cause = "max_series"
	LimitFiles         Cause = "max_files"
)

// ahead is by how much a record may be ahead of the node's clock.
const ahead = time.Minute

// State is what is known of the ranks of a node. It is not safe for concurrent use.
type State struct {
	cfg    Config
	files  map[string]*file
	ranks  map[rankKey]*rank
	comms  map[inspector.Key]int // how many ranks of it are here
	groups map[groupKey]*group
	series int
	// identities are those under which the series were written last.
	identities map[holders.Holder]*identity
}

// New returns a State that knows nothing.
func New(cfg Config) *State {
	return &State{
		cfg: cfg, files: map[string]*file{}, ranks: map[rankKey]*rank{},
		comms: map[inspector.Key]int{}, groups: map[groupKey]*group{}, identities: map[holders.Holder]*identity{},
	}
}

// Tracked is how many communicators have ranks here, and how many series there are.
func (s *State) Tracked() (communicators, series int) { return len(s.comms), s.series }

// file is one of Inspector.
type file struct {
	parser inspector.Parser
	holder holders.Holder
	ranks  map[string]int // of a communicator, by its id and name
	seen   time.Time
}

type rankKey struct {
	holder holders.Holder
	comm   inspector.Key
	rank   int
}

// rank is a rank of one communicator.
type rank struct {
	path    string
	before  string // the file of an earlier process
	host    string
	newest  time.Time // by the node's clock
	drops   [3]uint64
	samples map[string][]sample // by operation
	heard   bool                // since the last batch
	group   *group
}

type sample struct {
	sequence uint64
	took     time.Duration
}

// Line takes in a line of a file; cause is why it is refused, or what is odd about it.
func (s *State) Line(path, text string, now time.Time) (cause Cause) {
	f := s.files[path]
	if f == nil {
		if len(s.files) >= s.cfg.MaxFiles {
			return LimitFiles
		}
		f = &file{holder: s.holder(path), ranks: map[string]int{}}
		s.files[path] = f
	}
	f.seen = now
	record, drops, cause := f.parser.Line(text)
	switch {
	case record != nil:
		r, why := s.rank(f, path, &record.Source, now)
		if why != inspector.Fine {
			return why
		}
		return s.record(r, record, now)
	case drops != nil:
		r, why := s.rank(f, path, &drops.Source, now)
		if why != inspector.Fine {
			return why
		}
		r.dropped([3]uint64{drops.Collective, drops.PointToPoint, drops.Proxy})
	}
	return cause
}

// holder is who writes a file. The kubelet or Prolog makes its folder: lines could state anything.
func (s *State) holder(path string) (h holders.Holder) {
	for _, pattern := range s.cfg.Paths {
		found := pattern.FindStringSubmatch(path)
		if found == nil {
			continue
		}
		for i, group := range pattern.SubexpNames() {
			switch group {
			case "namespace":
				h.Namespace = found[i]
			case "pod":
				h.Pod = found[i]
			case "job":
				h.Job = found[i]
			}
		}
		return h
	}
	return h
}

// rank finds or makes the rank that a record is of.
func (s *State) rank(f *file, path string, of *inspector.Source, now time.Time) (*rank, Cause) {
	if of.Dumped.Sub(now) > ahead {
		return nil, Future
	}
	name := of.Key.ID + "/" + of.Key.Name
	if n, known := f.ranks[name]; known && n != of.Key.Ranks {
		return nil, Ranks
	}
	key := rankKey{f.holder, of.Key, of.Rank}
	r := s.ranks[key]
	if r == nil {
		if s.comms[of.Key] == 0 && len(s.comms) >= s.cfg.MaxCommunicators {
			return nil, LimitCommunicators
		}
		if len(s.ranks) >= s.cfg.MaxSeries {
			return nil, LimitSeries // also those without series of their own
		}
		g, ok := s.group(s.groupOf(key), now)
		if !ok {
			return nil, LimitSeries
		}
		r = &rank{path: path, samples: map[string][]sample{}, group: g}
		g.ranks++
		s.ranks[key] = r
		s.comms[of.Key]++
	}
	if len(f.ranks) >= s.cfg.MaxCommunicators {
		clear(f.ranks) // of communicators that are over
	}
	f.ranks[name] = of.Key.Ranks
	if r.path != path {
		if r.before == path { // of the earlier process, which writes again
			return nil, TwoFiles
		}
		r.path, r.before, r.drops = path, r.path, [3]uint64{}
	}
	r.host = of.Host
	if of.Dumped.After(r.newest) {
		r.newest = of.Dumped
	}
	r.heard = true
	return r, inspector.Fine
}

func (s *State) record(r *rank, of *inspector.Record, now time.Time) Cause {
	o, ok := s.operation(r.group, of.Operation, now)
	if !ok {
		return LimitSeries
	}
	o.add(of)
	if of.Timing == inspector.TimedKernel && !of.Graph && inspector.Synchronises(of.Operation) {
		r.keep(of.Operation, sample{of.Sequence, of.Duration}, s.cfg.Samples)
	}
	if of.Contradicts {
		return Contradiction
	}
	return inspector.Fine
}

// prune forgets files and ranks of which nothing arrives any more, and calls gone with the series
// that end with them.
func (s *State) prune(now time.Time, gone func(groupKey, *group)) {
	for path, f := range s.files {
		if now.Sub(f.seen) > s.cfg.TTL {
			delete(s.files, path)
		}
	}
	for key, r := range s.ranks {
		if now.Sub(r.newest) <= s.cfg.TTL {
			continue
		}
		delete(s.ranks, key)
		if s.comms[key.comm]--; s.comms[key.comm] == 0 {
			delete(s.comms, key.comm)
		}
		if r.group.ranks--; r.group.ranks == 0 {
			s.series -= r.group.size()
			at := s.groupOf(key)
			delete(s.groups, at)
			gone(at, r.group)
		}
	}
}
