// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

const (
	reporting  = "reporting"
	degraded   = "degraded"
	missing    = "missing"
	warming    = "warming"
	notRunning = "not_running"
	settled    = "settled" // one of the first three
)

var states = []string{reporting, degraded, missing, warming, notRunning}

// expected: "the union of both sources: pods that ask for an accelerator, from an
// informer […], and what gpu.allocation announced within allocation_ttl"; "the second
// alone"; or "pods seen within service_ttl".
func (m *model) expected(p *pod, t at) bool {
	switch m.cfg.Expected {
	case summary.Kubernetes:
		return m.fact(p.key) != nil || len(m.announced(p, t)) > 0
	case summary.Allocation:
		return len(m.announced(p, t)) > 0
	default:
		_, last := m.sightings(p)
		return last != never && t-last <= m.cfg.ServiceTTL && len(m.devicesSeen(p, t)) > 0
	}
}

// fact is what the newest snapshot says of the pod.
func (m *model) fact(k podKey) *podFact {
	if len(m.snapshots) == 0 {
		return nil
	}
	return m.snapshots[len(m.snapshots)-1].fact(k)
}

func (s *snapshot) fact(k podKey) *podFact {
	for i := range s.pods {
		if s.pods[i].pod == k {
			return &s.pods[i]
		}
	}
	return nil
}

// age is the pod's state as far as its age and Kubernetes tell.
func (m *model) age(p *pod, t, staleness at) string {
	enough := max(m.cfg.Warmup, staleness)
	if m.cfg.Expected == summary.Kubernetes {
		if f := m.fact(p.key); f != nil {
			return m.kubernetesAge(f, t, enough)
		}
	}
	var since at
	if m.cfg.Expected == summary.Seen {
		// "settled means first seen at least max(warmup, staleness) ago"
		since, _ = m.sightings(p)
	} else {
		// "From allocation alone, settled means announced for at least warmup."
		since, enough = m.announcedSince(p, t), m.cfg.Warmup
	}
	if t-max(since, 0) >= enough {
		return settled
	}
	return warming
}

// kubernetesAge: "settled: Running, not being deleted, and its accelerator containers
// started at least max(warmup (90s), staleness) ago. warming: younger. not_running:
// pending, image pull, crash loop (last start younger than warmup, again and again),
// completed."
func (m *model) kubernetesAge(f *podFact, t, enough at) string {
	// Reading: what the cluster says keeps the cluster's time when this clock is set.
	t += m.offset
	crashLoop := t-f.started < m.cfg.Warmup && f.lastRun >= 0 && f.lastRun < m.cfg.Warmup
	switch {
	case !f.running, f.deleted, !f.up, crashLoop:
		return notRunning
	case t-f.started >= enough:
		return settled
	default:
		return warming
	}
}

// announced are the pod's announcements that stand: of each container and hw.id the
// newest, if "announced within allocation_ttl", not ended, and not taken back by
// Kubernetes.
func (m *model) announced(p *pod, t at) []announcement {
	var standing []announcement
	for _, a := range m.newestAnnouncements(p, t) {
		if !a.end && t-a.stamp <= m.cfg.AllocationTTL {
			standing = append(standing, a)
		}
	}
	return standing
}

// newestAnnouncements: one for each container and hw.id. Reading: of two at one time
// the one that is not an end, and the resolved one.
func (m *model) newestAnnouncements(p *pod, t at) []announcement {
	var out []announcement
	void := m.takenBack(p.key)
	for _, a := range p.announcements {
		if a.stamp <= void || !m.belongs(p, a.uid) {
			continue
		}
		i := slices.IndexFunc(out, func(o announcement) bool { return o.container == a.container && o.device == a.device })
		switch {
		case i < 0:
			out = append(out, a)
		case a.stamp > out[i].stamp,
			a.stamp == out[i].stamp && !a.end && (out[i].end || a.resolved && !out[i].resolved):
			out[i] = a
		}
	}
	return out
}

// takenBack: a pod that was in a snapshot and is no longer is not expected by
// announcements up to then.
func (m *model) takenBack(k podKey) at {
	for i := len(m.snapshots) - 1; i > 0; i-- {
		if m.snapshots[i].fact(k) == nil && m.snapshots[i-1].fact(k) != nil {
			return m.snapshots[i].arrived
		}
	}
	return never
}

// announcedSince is since when the pod was announced without interruption: an
// announcement stands until it is ended or allocation_ttl has passed.
func (m *model) announcedSince(p *pod, t at) at {
	type span struct{ from, to at }
	var spans []span
	void := m.takenBack(p.key)
	for _, a := range p.announcements {
		if a.end || a.stamp <= void || !m.belongs(p, a.uid) {
			continue
		}
		s := span{a.stamp, a.stamp + m.cfg.AllocationTTL}
		for _, e := range p.announcements {
			if e.end && e.container == a.container && e.device == a.device && e.stamp > a.stamp && m.belongs(p, e.uid) {
				s.to = min(s.to, e.stamp)
			}
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return int((a.from - b.from) / time.Nanosecond) })
	since, until := never, never
	for _, s := range spans {
		if since == never || s.from > until {
			since, until = s.from, s.to
		}
		until = max(until, s.to)
	}
	return since
}

// sightings are when the pod was first and last seen: the timestamps of its values.
// Reading: an end shows nothing alive.
func (m *model) sightings(p *pod) (first, last at) {
	first, last = never, never
	for _, s := range p.series {
		if !m.belongs(p, s.uid) {
			continue
		}
		for _, x := range s.points {
			if x.end || x.stamp <= p.void {
				continue
			}
			if first == never || x.stamp < first {
				first = x.stamp
			}
			last = max(last, x.stamp)
		}
	}
	return first, last
}

// belongs: "Joined by pod (cluster, namespace, name; uid when both sides have one)".
func (m *model) belongs(p *pod, uid string) bool {
	own := m.uid(p)
	return uid == "" || own == "" || uid == own
}

// uid is the uid of the pod that bears the name now: what Kubernetes says, or else
// the newest telemetry or allocation that has one.
func (m *model) uid(p *pod) string {
	uid, ok := m.uids[p] // this function is asked for every point
	if !ok {
		uid = m.newestUID(p)
		m.uids[p] = uid
	}
	return uid
}

func (m *model) newestUID(p *pod) string {
	if f := m.fact(p.key); f != nil && m.cfg.Expected == summary.Kubernetes {
		return f.uid
	}
	uid, stamp := "", never
	for _, s := range p.series {
		for _, x := range s.points {
			if !x.end && x.uid != "" && x.stamp > stamp {
				uid, stamp = x.uid, x.stamp
			}
		}
	}
	if m.cfg.Expected == summary.Seen {
		return uid
	}
	for _, a := range p.announcements {
		if !a.end && a.uid != "" && a.stamp > stamp {
			uid, stamp = a.uid, a.stamp
		}
	}
	return uid
}

// service: "the service is what the pod's newest telemetry or allocation says"; only
// a pod that was never heard has the one that is computed from the pod itself.
func (m *model) service(p *pod) serviceKey {
	name, stamp := "", never
	say := func(service string, at at) {
		if service != "" && (at > stamp || at == stamp && service > name) {
			name, stamp = service, at
		}
	}
	for _, s := range p.series {
		if !m.belongs(p, s.uid) {
			continue
		}
		for _, x := range s.points {
			if !x.end && x.stamp > p.void {
				say(x.service, x.stamp)
			}
		}
	}
	if m.cfg.Expected != summary.Seen {
		void := m.takenBack(p.key)
		for _, a := range p.announcements {
			if !a.end && a.stamp > void && m.belongs(p, a.uid) {
				say(a.service, a.stamp)
			}
		}
	}
	if f := m.fact(p.key); name == "" && f != nil {
		name = f.service
	}
	return serviceKey{p.key.cluster, p.key.namespace, name}
}
