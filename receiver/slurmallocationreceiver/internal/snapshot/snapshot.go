// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package snapshot decides which job of Slurm has which device of a node, from its job map and its
// boards, and writes it as gpu.allocation.
package snapshot

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/miglayout"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/jobmap"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/node"
)

// allocation is one point: a device that a job has, or that is free.
type allocation struct {
	owner                owner.Owner
	hwID                 string
	share                float64 // of the device, 0..1; 0 is free
	sharing              string  // gpu.sharing
	resolved             bool
	mig, parent, profile string // each may be ""
}

// Snapshot is what one reading of the folder gives. It is immutable.
type Snapshot struct {
	At          time.Time
	allocations []allocation // sorted: the free ones, then by owner
	infos       []info       // sorted
	States      States
}

// States counts devices and jobs by state.
type States struct {
	Held, Free, Unresolved int
	Live, Stale            int
}

// View is what is known at the time of a reading.
type View struct {
	Boards node.Boards
	MIG    *miglayout.Layout // nil: not known to this process
	Groups *node.Groups      // nil: nothing is verified
}

// Tally is what a reading had that cannot be used.
type Tally struct {
	BeyondBoards, DeviceTwice, NoCluster []string // jobs
	Stale                                []string // jobs that are over, and were not before
	Disagree                             []string // jobs of which this was not known before
	// Ambiguous: an index is not resolved, since index_order is not set; Parts: since a board has
	// parts, of which each has an index.
	Ambiguous, Parts bool
}

// Builder makes snapshots. It is not safe for concurrent use.
type Builder struct {
	Node       string // part of the hw.id of devices that are not resolved
	Cluster    string // where the files have none
	IndexOrder string // pci, minor or ""
	AllDevices bool
	StaleAfter time.Duration
	Identity   Identity

	jobs map[string]*memory // by id
}

// memory is what is kept of a job for as long as it has a file.
type memory struct {
	start    time.Time // another one: the job runs again
	decided  bool
	service  string
	missing  time.Time // since when it has no control group; zero: it has one
	stale    bool
	disagree bool
	seen     bool // in this reading
}

// Build returns the snapshot of a reading.
func (b *Builder) Build(r *jobmap.Reading, v *View, now time.Time) (*Snapshot, Tally) {
	if b.jobs == nil {
		b.jobs = map[string]*memory{}
	}
	var tl Tally
	s := &Snapshot{At: now}
	unknown := r.Incomplete // a device may have a job that is not in the snapshot
	for i := range r.Jobs {
		j := &r.Jobs[i]
		m := b.memoryOf(j)
		if b.over(j, m, v.Groups, now, &tl) {
			s.States.Stale++
			continue
		}
		s.States.Live++
		if j.Cluster = cmp.Or(j.Cluster, b.Cluster); j.Cluster == "" {
			tl.NoCluster = append(tl.NoCluster, j.ID)
			unknown = true
			continue
		}
		o := owner.OfJob(b.Identity.job(j, m, now))
		s.infos = append(s.infos, infoOf(o, j))
		beyond := len(tl.BeyondBoards)
		s.allocations = append(s.allocations, b.devices(j, o, m, v, &tl)...)
		// A board is missing, and with it the indices behind it are those of other boards.
		unknown = unknown || len(tl.BeyondBoards) > beyond
	}
	for id, m := range b.jobs {
		if !m.seen {
			delete(b.jobs, id)
		}
		m.seen = false
	}
	s.share()
	s.count()
	if b.AllDevices && !unknown && s.States.Unresolved == 0 {
		s.addFree(&v.Boards)
	}
	slices.SortFunc(s.allocations, func(x, y allocation) int {
		return cmp.Or(x.owner.Compare(y.owner), cmp.Compare(x.hwID, y.hwID))
	})
	slices.SortFunc(s.infos, info.compare)
	return s, tl
}

func (b *Builder) memoryOf(j *jobmap.Job) *memory {
	m := b.jobs[j.ID]
	if m == nil || !m.start.Equal(j.Start) {
		m = &memory{start: j.Start}
		b.jobs[j.ID] = m
	}
	m.seen = true
	return m
}

// over reports whether a job is over, although its file is there: its control group is not, for
// StaleAfter.
func (b *Builder) over(j *jobmap.Job, m *memory, g *node.Groups, now time.Time, tl *Tally) bool {
	if g == nil || !g.Judges(j.SLUID) {
		m.missing = time.Time{}
		return m.stale && g != nil
	}
	if g.Has(j.ID, j.SLUID) {
		m.missing, m.stale = time.Time{}, false
		return false
	}
	if m.missing.IsZero() || now.Before(m.missing) {
		m.missing = now
	}
	if !m.stale && now.Sub(m.missing) >= b.StaleAfter {
		m.stale = true
		tl.Stale = append(tl.Stale, j.ID)
	}
	return m.stale
}

// devices are the allocations of one job.
func (b *Builder) devices(j *jobmap.Job, o owner.Owner, m *memory, v *View, tl *Tally) []allocation {
	var all []allocation
	for _, d := range j.Devices {
		a, ok := b.locate(d, v, tl)
		if !ok {
			tl.BeyondBoards = append(tl.BeyondBoards, j.ID)
			continue
		}
		if slices.ContainsFunc(all, func(x allocation) bool { return x.hwID == a.hwID }) {
			if a.mig == "" { // compute instances of one GPU instance share an hw.id
				tl.DeviceTwice = append(tl.DeviceTwice, j.ID)
			}
			continue
		}
		a.owner = o
		all = append(all, a)
	}
	if v.Groups != nil {
		if allowed, known := v.Groups.Allowed(j.ID, j.SLUID); known {
			all = b.verify(all, &allowed, j, m, v, tl)
		}
	}
	return all
}

// locate is the device of a job; false where the node has none with that index.
func (b *Builder) locate(d jobmap.Device, v *View, tl *Tally) (allocation, bool) {
	if d.UUID != "" {
		return b.ofUUID(d, v), true
	}
	unresolved := allocation{hwID: deviceid.SlurmIndex(b.Node, d.Index)}
	boards := &v.Boards
	if !boards.Known() {
		return unresolved, true
	}
	byPCI, byMinor := boards.OfPCI(d.Index), boards.OfMinor(d.Index)
	if d.ByPCI {
		switch {
		case byPCI == nil:
			return unresolved, false
		case byPCI.ID == "":
			return unresolved, true
		case d.Instance != "":
			return allocation{hwID: deviceid.MIG(byPCI.ID, d.Instance), parent: byPCI.ID, resolved: true}, true
		}
		return allocation{hwID: byPCI.ID, resolved: true}, true
	}
	if boards.Parts {
		tl.Parts = true
		return unresolved, true
	}
	board := byPCI
	switch {
	case boards.Agree:
	case b.IndexOrder == "minor":
		board = byMinor
	case b.IndexOrder == "":
		if byPCI == nil && byMinor == nil {
			return unresolved, false
		}
		tl.Ambiguous = true
		return unresolved, true
	}
	if board == nil {
		return unresolved, false
	}
	if board.ID == "" {
		return unresolved, true
	}
	return allocation{hwID: board.ID, resolved: true}, true
}

func (b *Builder) ofUUID(d jobmap.Device, v *View) allocation {
	if i, ok := v.MIG.Resolve(d.UUID); ok {
		return allocation{hwID: i.HwID(), mig: d.UUID, parent: i.GPU, profile: i.Profile, resolved: true}
	}
	k, _ := deviceid.ParseVisible(d.UUID)
	if !k.Resolved {
		return allocation{hwID: deviceid.Unresolved(b.Node, d.UUID), mig: k.MIG}
	}
	return allocation{hwID: k.ID, parent: deviceid.Parent(k.ID), resolved: true}
}

// verify compares the devices of a job with those that its control group may open. MIG instances
// that are not resolved are those of the group, where it has as many.
func (b *Builder) verify(all []allocation, g *node.Allowed, j *jobmap.Job, m *memory, v *View, tl *Tally) []allocation {
	var want, have []string
	open := 0
	for _, a := range all {
		if !a.resolved {
			open++
		}
		want = append(want, cmp.Or(a.parent, a.hwID))
	}
	for _, minor := range g.Minors {
		if board := v.Boards.OfMinor(minor); board != nil && board.ID != "" {
			have = append(have, board.ID)
		}
	}
	if open > 0 {
		if open == len(all) && len(g.Instances) == open {
			return b.ofInstances(all, g, v)
		}
		return all
	}
	if slices.Equal(distinct(want), distinct(have)) || len(have) == 0 {
		m.disagree = false
		return all
	}
	if !m.disagree {
		m.disagree = true
		tl.Disagree = append(tl.Disagree, j.ID)
	}
	for i, d := range all {
		// The index that the map has; of what has none, its own id.
		id := deviceid.Unresolved(b.Node, d.hwID)
		if i < len(j.Devices) && j.Devices[i].Index >= 0 && len(all) == len(j.Devices) {
			id = deviceid.SlurmIndex(b.Node, j.Devices[i].Index)
		}
		all[i] = allocation{owner: d.owner, hwID: id}
	}
	return all
}

func (b *Builder) ofInstances(all []allocation, g *node.Allowed, v *View) []allocation {
	var out []allocation
	for i, of := range g.Instances {
		board := v.Boards.OfMinor(of.Minor)
		if board == nil || board.ID == "" {
			return all
		}
		out = append(out, allocation{
			owner: all[i].owner, hwID: deviceid.MIG(board.ID, strconv.Itoa(of.GI)), parent: board.ID, resolved: true,
		})
	}
	return out
}

func distinct(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// share divides each device among the jobs that have it: how much of it each has is not known.
func (s *Snapshot) share() {
	jobs := map[string]int{}
	for _, a := range s.allocations {
		jobs[a.hwID]++
	}
	for i := range s.allocations {
		a := &s.allocations[i]
		a.share, a.sharing = 1/float64(jobs[a.hwID]), names.SharingNone
		if jobs[a.hwID] > 1 {
			a.sharing = names.SharingSlurmShared
		}
	}
}

func (s *Snapshot) count() {
	seen := map[string]bool{}
	for _, a := range s.allocations {
		switch {
		case seen[a.hwID]:
		case a.resolved:
			s.States.Held++
		default:
			s.States.Unresolved++
		}
		seen[a.hwID] = true
	}
}

// addFree adds the boards that no job has any part of. Of boards with parts nothing is added: which
// parts there are is not known.
func (s *Snapshot) addFree(boards *node.Boards) {
	held := map[string]bool{}
	for _, a := range s.allocations {
		held[a.hwID], held[a.parent] = true, true
	}
	for _, board := range boards.ByPCI {
		if board.ID == "" || board.Parts || held[board.ID] {
			continue
		}
		s.States.Free++
		s.allocations = append(s.allocations, allocation{hwID: board.ID, sharing: names.SharingNone, resolved: true})
	}
}

// SameAs reports whether both have the same allocations and jobs.
func (s *Snapshot) SameAs(o *Snapshot) bool {
	return slices.Equal(s.allocations, o.allocations) && slices.Equal(s.infos, o.infos)
}
