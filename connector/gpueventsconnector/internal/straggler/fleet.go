// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
)

// Fleet are the boards of all services. Its methods must not be called at the same time.
type Fleet struct {
	limit   int
	boards  map[subject.DeviceID]*Board
	now     time.Duration
	wall    time.Time
	minute  int // that was compared last
	peers   Peers
	members []*Member // memory of one comparison
	publish bool      // there may be series to write
	refused int64
	apart   time.Duration // between pages of which there are too few; 0: there are enough
}

// NewFleet returns a fleet of at most limit boards.
func NewFleet(limit int) *Fleet { return &Fleet{limit: limit, boards: map[subject.DeviceID]*Board{}} }

// Slow are the boards of which an event is raised, in no order.
func (f *Fleet) Slow() iter.Seq[*Board] {
	return func(yield func(*Board) bool) {
		for _, b := range f.boards {
			if b.Condition.Level > 0 && !yield(b) {
				return
			}
		}
	}
}

// Boards is how many boards are compared.
func (f *Fleet) Boards() int { return len(f.boards) }

// TakeRefused returns how many boards found no room since the last call.
func (f *Fleet) TakeRefused() (n int64) {
	n, f.refused = f.refused, 0
	return n
}

// TakeApart returns how far apart the pages of a board are, where they are too rare for a comparison,
// since the last call; 0: they are not.
func (f *Fleet) TakeApart() (apart time.Duration) {
	apart, f.apart = f.apart, 0
	return apart
}

// get finds or adds a board; nil when there is no room.
func (f *Fleet) get(id subject.DeviceID) *Board {
	b := f.boards[id]
	if b != nil {
		return b
	}
	if len(f.boards) >= f.limit {
		f.refused++
		return nil
	}
	id = subject.DeviceID{Cluster: strings.Clone(id.Cluster), ID: strings.Clone(id.ID)}
	b = &Board{Device: subject.Device{ID: id, Facts: subject.Facts{Index: -1}}, seen: f.now, started: f.now}
	f.boards[id] = b
	return b
}

// Restore returns the board that was reported as slow before a restart; nil when there is
// no room. It is slow until a comparison denies it, or until it was not compared for long.
func (f *Fleet) Restore(d subject.Device, cause Cause) *Board {
	b := f.get(d.ID)
	if b != nil {
		b.Facts, b.Slow, b.Cause, b.restored = d.Facts, true, cause, true
		b.group, _ = b.peers(f.now)
	}
	return b
}

// Reasons returns the reasons against a board that the collector itself has found, by
// their names in gpu.health.reason.
type Reasons func(subject.DeviceID) []string

// Judge compares the boards, once a minute; before the next minute it returns nil. It
// returns the boards about which an event is due. A minute without any telemetry counts
// for nothing.
func (f *Fleet) Judge(now time.Duration, wall time.Time, reasons Reasons) (due []*Board) {
	f.now, f.wall = now, wall
	if at := int(now / time.Minute); at != f.minute {
		f.minute = at
	} else {
		return nil
	}
	newest := time.Duration(0)
	for _, b := range f.boards {
		newest = max(newest, b.seen)
	}
	if now-newest > time.Minute {
		return nil
	}
	groups := map[group][]*Board{}
	for id, b := range f.boards {
		if now-b.seen > goneAfter && b.Condition.Level == 0 && !b.published.live {
			delete(f.boards, id)
		} else if g, compared := b.prepare(now); compared {
			groups[g] = append(groups[g], b)
		} else {
			b.Miss()
		}
	}
	for _, boards := range groups {
		members := f.members[:0]
		for _, b := range boards {
			members = append(members, &b.Member)
		}
		f.peers.Compare(members)
		f.members = members
		explain(boards, now, reasons)
	}
	for _, b := range f.boards {
		f.publish = f.publish || b.Slow || b.published.live
		if b.wants() != (b.Condition.Level > 0) {
			due = append(due, b)
		}
	}
	sortByID(due)
	return due
}

func sortByID(boards []*Board) {
	slices.SortFunc(boards, func(a, b *Board) int {
		return cmp.Or(cmp.Compare(a.ID.Cluster, b.ID.Cluster), cmp.Compare(a.ID.ID, b.ID.ID))
	})
}
