// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"slices"
	"time"
)

// Late is how late a rank was in a window.
type Late struct {
	Suspect
	Share    float64       // of the collectives
	Lateness time.Duration // on average, of those to which it came last
}

// Report is what is known of a communicator.
type Report struct {
	Communicator Communicator
	Reporting    int // ranks of which something arrived within a window
	// Judged is set where a window was closed of late: what follows is of that.
	Judged bool
	// Wait is the time of all ranks that was waiting, Total all of it, in seconds.
	Wait, Total float64
	Latest      []Late // at most three ranks, the latest first
}

// Reports are those of all communicators, in a fixed order.
func (s *State) Reports(now time.Time) []Report {
	all := make([]Report, 0, len(s.comms))
	for id, c := range s.comms {
		r := Report{Communicator: id}
		for i := range c.ranks {
			if !c.ranks[i].seen.IsZero() && now.Sub(c.ranks[i].seen) <= s.cfg.Window {
				r.Reporting++
			}
		}
		if t := c.closed; t != nil && t.total > 0 && now.Sub(t.until) <= max(2*s.cfg.Window, 2*t.until.Sub(t.since)) {
			r.Judged, r.Wait, r.Total, r.Latest = true, t.wait, t.total, t.latest()
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Report) int {
		return compare(a.Communicator, b.Communicator)
	})
	return all
}

func compare(x, y Communicator) int {
	return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.ID, y.ID), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Ranks, y.Ranks), cmp.Compare(x.Nodes, y.Nodes))
}

func (t *tally) latest() (all []Late) {
	for who, l := range t.late {
		if who.Rank < 0 {
			continue
		}
		share, _ := t.share(who)
		all = append(all, Late{who, share, time.Duration(l.by / float64(l.times) * float64(time.Second))})
	}
	slices.SortFunc(all, func(a, b Late) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(b.Lateness, a.Lateness), cmp.Compare(a.Rank, b.Rank))
	})
	return all[:min(3, len(all))]
}
