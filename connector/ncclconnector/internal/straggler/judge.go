// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"maps"
	"slices"
	"time"
)

// tally is what the collectives of a window add up to. Times are in seconds.
type tally struct {
	since, until time.Time
	evaluated    int
	total, wait  float64 // of all ranks
	typical      float64 // of the median ranks
	late         map[Suspect]*late
	hosts        int // most in one collective
}

// late is how often one came last, and by how much in all.
type late struct {
	times int
	by    float64
}

func newTally(now time.Time) tally { return tally{since: now, late: map[Suspect]*late{}} }

// least is by how much the last one is later than the one before it, at least: below that
// nobody was. The rest is noise of kernels' clocks and launches.
const least = 50 * time.Microsecond

// add takes in the durations of one collective by rank; 0 is not known.
func (t *tally) add(ranks []rank, times []time.Duration) {
	t.evaluated++
	all := make([]time.Duration, 0, len(times))
	hosts := map[string]time.Duration{}
	last := -1
	for i, d := range times {
		if d == 0 {
			continue
		}
		all = append(all, d)
		if last < 0 || d < times[last] {
			last = i
		}
		if shortest, has := hosts[ranks[i].host]; !has || d < shortest {
			hosts[ranks[i].host] = d
		}
	}
	shortest := times[last]
	for _, d := range all {
		t.total += d.Seconds()
		t.wait += (d - shortest).Seconds()
	}
	middle := t.last(Suspect{last, ranks[last].host}, all)
	t.typical += middle.Seconds()
	// A host whose ranks are all late, or take turns.
	t.hosts = max(t.hosts, len(hosts))
	if len(hosts) > 1 {
		t.last(Suspect{-1, ranks[last].host}, slices.Collect(maps.Values(hosts)))
	}
}

// last counts that who came last, if it did clearly, and returns the median.
func (t *tally) last(who Suspect, all []time.Duration) (median time.Duration) {
	slices.Sort(all)
	n := len(all)
	median = (all[(n-1)/2] + all[n/2]) / 2
	if all[1]-all[0] <= max(least, all[0]/10) {
		return median
	}
	l := t.late[who]
	if l == nil {
		l = &late{}
		t.late[who] = l
	}
	l.times++
	l.by += (median - all[0]).Seconds()
	return median
}

// share is of how many collectives who came last, and cost what that was of the time in them.
func (t *tally) share(who Suspect) (share, cost float64) {
	l := t.late[who]
	if l == nil || t.evaluated == 0 {
		return 0, 0
	}
	return float64(l.times) / float64(t.evaluated), l.by / t.typical
}

// heat is for how many windows in a row one was late.
type heat struct {
	windows int
	raised  bool
}

// judge judges the window of a communicator.
func (s *State) judge(id Communicator, c *comm) (all []Verdict) {
	t := &c.window
	for who := range t.late {
		if c.hot[who] == nil {
			c.hot[who] = &heat{}
		}
	}
	for who, h := range c.hot {
		of := id.Ranks
		if who.Rank < 0 {
			of = t.hosts
		}
		share, cost := t.share(who)
		bound := max(s.cfg.Share, 1/float64(max(of, 1))+0.3)
		switch {
		case share > bound && cost > s.cfg.Cost:
			h.windows++
		case h.raised && share >= bound/2 && cost >= s.cfg.Cost/2:
			// Between the two bounds nothing changes.
		default:
			h.windows = 0
			if h.raised {
				all = append(all, t.verdict(id, who, false))
			}
			delete(c.hot, who)
		}
	}
	for who, h := range c.hot {
		// A host is one for which its ranks together are late: not where it is for one of them.
		if h.windows >= s.cfg.Windows && !h.raised && (who.Rank >= 0 || !c.hotRank(who.Host)) {
			h.raised = true
			all = append(all, t.verdict(id, who, true))
		}
	}
	return all
}

// hotRank reports whether a rank of a host is late by itself.
func (c *comm) hotRank(host string) bool {
	for who, h := range c.hot {
		if who.Rank >= 0 && who.Host == host && h.windows > 0 {
			return true
		}
	}
	return false
}

func (t *tally) verdict(id Communicator, who Suspect, raised bool) Verdict {
	share, _ := t.share(who)
	v := Verdict{Communicator: id, Suspect: who, Raised: raised, Share: share, Evaluated: t.evaluated}
	if t.total > 0 {
		v.Wait = t.wait / t.total
	}
	if l := t.late[who]; l != nil {
		v.Lateness = time.Duration(l.by / float64(l.times) * float64(time.Second))
	}
	return v
}
