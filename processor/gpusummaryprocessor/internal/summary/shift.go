// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import "time"

// Shift moves every time in memory by step: the wall clock was set, and what is
// kept has to keep its age. Times of SetPods are the cluster's own and stay.
func (s *Summary) Shift(step time.Duration) {
	move := func(times ...*int64) {
		for _, t := range times {
			if *t != 0 {
				*t += int64(step)
			}
		}
	}
	move(&s.start, &s.synced)
	for _, svc := range s.services {
		move(&svc.emptySince)
	}
	for _, d := range s.devices {
		move(&d.newest, &d.unowned, &d.free)
		for i := range d.allocated {
			move(&d.allocated[i].time)
		}
	}
	frozen := make(map[scrape][]string, len(s.frozen))
	for at, nodes := range s.frozen {
		at.time += int64(step)
		frozen[at] = nodes
	}
	s.frozen = frozen
	for _, p := range s.pods {
		move(&p.uidTime, &p.svcTime, &p.firstSeen, &p.lastSeen, &p.removed, &p.firstAnnounced)
		for _, h := range p.devices {
			move(&h.lastSeen, &h.firstUsed, &h.lastBusy, &h.stale)
			for i := range h.samples {
				move(&h.samples[i].time)
			}
			for i := range h.times {
				move(&h.times[i])
			}
			for i := range h.announced {
				move(&h.announced[i].time)
			}
		}
	}
}
