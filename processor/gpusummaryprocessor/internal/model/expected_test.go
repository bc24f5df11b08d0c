// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"slices"

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
		return m.fact(p) != nil || len(m.announced(p, t)) > 0
	case summary.Allocation:
		return len(m.announced(p, t)) > 0
	default:
		_, last := m.sightings(p)
		return last != never && len(m.devicesSeen(p, t)) > 0 && (t-last <= m.cfg.ServiceTTL || m.allocated(p, t))
	}
}

// listed is the newest snapshot's fact about the name.
func (m *model) listed(k podKey) *podFact {
	if len(m.snapshots) == 0 {
		return nil
	}
	return m.snapshots[len(m.snapshots)-1].fact(k)
}

// fact is what Kubernetes reports of the pod that bears the name now: the agents may know
// the next one already.
func (m *model) fact(p *pod) *podFact {
	if f := m.listed(p.key); f != nil && m.belongs(p, f.uid) {
		return f
	}
	return nil
}

func (s *snapshot) fact(k podKey) *podFact {
	for i := range s.pods {
		if s.pods[i].pod == k {
			return &s.pods[i]
		}
	}
	return nil
}

// age is the pod's state as far as its age and Kubernetes report.
func (m *model) age(p *pod, t, staleness at) string {
	enough := max(m.cfg.Warmup, staleness)
	if m.cfg.Expected == summary.Kubernetes {
		if f := m.fact(p); f != nil {
			return m.kubernetesAge(f, t, enough)
		}
	}
	since, enough := m.youngSince(p, enough)
	if t-max(since, 0) >= enough {
		return settled
	}
	return warming
}

// youngSince is since when a pod of which Kubernetes does not report is known, and how
// long it has to be.
func (m *model) youngSince(p *pod, enough at) (since, needs at) {
	if m.cfg.Expected == summary.Seen {
		// "settled means first seen at least max(warmup, staleness) ago"
		since, _ = m.sightings(p)
		return since, enough
	}
	// "From allocation alone, settled means announced for at least warmup."
	return m.announcedSince(p), m.cfg.Warmup
}

// kubernetesAge: "settled: Running, not being deleted, and its accelerator containers
// started at least max(warmup (90s), staleness) ago. warming: younger. not_running:
// pending, image pull, crash loop (last start younger than warmup, again and again),
// completed."
func (m *model) kubernetesAge(f *podFact, t, enough at) string {
	// Reading: what the cluster reports keeps the cluster's time when this clock is set.
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
	if m.listed(k) != nil {
		return never
	}
	for i := len(m.snapshots) - 1; i > 0; i-- {
		if m.snapshots[i].fact(k) == nil && m.snapshots[i-1].fact(k) != nil {
			return m.snapshots[i].arrived
		}
	}
	return never
}

// announcedSince is since when the pod is announced: the oldest announcement since the
// last evaluation at which none stood, and since Kubernetes took the pod back.
func (m *model) announcedSince(p *pod) at {
	since, void := at(math.MaxInt64), m.takenBack(p.key)
	for _, a := range p.announcements[p.unannounced:] {
		if !a.end && a.stamp > void && m.belongs(p, a.uid) {
			since = min(since, a.stamp)
		}
	}
	return since
}

// sightings are when the pod was first and last seen: the timestamps of its values.
// Reading: an end shows nothing alive.
func (m *model) sightings(p *pod) (first, last at) {
	first, last = never, never
	for _, n := range p.named {
		if !m.belongs(p, n.uid) {
			continue
		}
		if first == never || n.stamp < first {
			first = n.stamp
		}
		last = max(last, n.stamp)
	}
	return first, last
}

// belongs: "Joined by pod (cluster, namespace, name; uid when both sides have one)".
func (m *model) belongs(p *pod, uid string) bool {
	own := m.uid(p)
	return uid == "" || own == "" || uid == own
}

// uid is the uid of the pod that bears the name now: the newest that telemetry,
// allocation, or Kubernetes when it was new there, has reported.
func (m *model) uid(p *pod) string {
	uid, ok := m.uids[p] // this function is asked for every point
	if !ok {
		uid = m.newestUID(p)
		m.uids[p] = uid
	}
	return uid
}

func (m *model) newestUID(p *pod) string {
	uid, stamp := "", never
	for _, n := range p.named {
		if n.uid != "" && n.stamp > stamp {
			uid, stamp = n.uid, n.stamp
		}
	}
	before := ""
	for i := range m.snapshots {
		now := ""
		if f := m.snapshots[i].fact(p.key); f != nil {
			now = f.uid
		}
		if now != "" && now != before && m.snapshots[i].arrived >= stamp {
			uid, stamp = now, m.snapshots[i].arrived
		}
		before = now
	}
	return uid
}

// service: "the service is what the pod's newest telemetry or allocation says"; only
// a pod that was never seen has the one that is computed from the pod itself.
func (m *model) service(p *pod) serviceKey {
	name, stamp := "", never
	for _, n := range p.named {
		if m.belongs(p, n.uid) && (n.stamp > stamp || n.stamp == stamp && n.service > name) {
			name, stamp = n.service, n.stamp
		}
	}
	if f := m.fact(p); name == "" && f != nil {
		name = f.service
	}
	return serviceKey{p.key.cluster, p.key.namespace, name}
}
