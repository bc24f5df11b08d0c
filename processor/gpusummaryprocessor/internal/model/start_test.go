// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// A start knows nothing: what may be missing or idle since before it is absent, until
// it is known.

// back is when all senders have come back after the start.
func (m *model) back(staleness at) at { return max(m.cfg.ReconnectGrace, staleness) }

// unknown: a pod that warms up and first showed before all senders were back may have
// been there, and silent, before the start.
func (m *model) unknown(p *pod, t, staleness at) bool {
	if m.cfg.Expected == summary.Kubernetes && m.fact(p) != nil {
		return false
	}
	since, enough := m.youngSince(p, max(m.cfg.Warmup, staleness))
	return t-max(since, 0) < enough && since <= m.back(staleness)
}

// all: of a service with a pod that Kubernetes reports, the pods are known; else once all
// senders are back, with Seen not before what was silent at the start is forgotten.
func (m *model) all(views []view, t, staleness at) (back, all bool) {
	back = t >= m.back(staleness)
	for _, v := range views {
		back = back || m.cfg.Expected == summary.Kubernetes && m.fact(v.pod) != nil
	}
	return back, back && (m.cfg.Expected != summary.Seen || t >= m.cfg.ServiceTTL)
}

// idle: "held by a settled pod, utilization below idle_threshold (0.05) for idle_for
// (15m)"; "after a start idle_for starts again", and until then is unknown of a device
// that did nothing since.
func (m *model) idle(p *pod, device string, t, staleness at) (is, unknown bool) {
	points := m.pointsOf(p, device, utilization)
	since, first, busy := at(0), at(math.MaxInt64), false
	if u, ok := p.unfresh[device]; ok {
		since = max(since, u)
	}
	for _, x := range points {
		if x.end {
			continue
		}
		first = min(first, x.stamp)
		if x.value >= m.cfg.IdleThreshold {
			since, busy = max(since, x.stamp), true
		}
	}
	if fresh, still := m.current(p, device, utilization, t, staleness); !fresh || still {
		return false, false
	}
	now, _ := newest(points)
	quiet := now.value < m.cfg.IdleThreshold
	is = quiet && t-max(since, first) >= m.cfg.IdleFor
	return is, quiet && !is && !busy && max(since, first) <= m.back(staleness)
}

// reportPartial: "partial = 1 when settled > 0 and missing / settled > partial_threshold";
// "Only warming or not running pods: partial 0". What is missing is a fact, and that
// nothing is only of all pods, or where the service was partial since the start.
func (m *model) reportPartial(put func(string, float64), k serviceKey, pods map[string]int, all bool) {
	settled := pods[reporting] + pods[degraded] + pods[missing]
	partial, ratio := 0., 0.
	if settled > 0 {
		ratio = float64(pods[missing]) / float64(settled)
	}
	if ratio > m.cfg.PartialThreshold {
		partial, m.partial[k] = 1, true
	}
	if !all && !m.partial[k] {
		return
	}
	if settled > 0 {
		put("missing_ratio", ratio)
	}
	put("partial", partial)
}
