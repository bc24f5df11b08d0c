// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// pointsOf are the points of one field of one of the pod's devices.
func (m *model) pointsOf(p *pod, device string, f field) []point {
	var only []point // one series, nearly always
	for _, s := range p.series {
		if s.device != device || s.field != f || !m.belongs(p, s.uid) {
			continue
		}
		if only == nil {
			only = s.points
		} else {
			only = append(slices.Clone(only), s.points...)
		}
	}
	return only
}

// devicesSeenOf are the devices of which the pod has telemetry, by hw.id.
func (m *model) devicesSeenOf(p *pod) []string {
	var out []string
	for _, s := range p.series {
		if m.belongs(p, s.uid) && !slices.Contains(out, s.device) {
			out = append(out, s.device)
		}
	}
	slices.Sort(out)
	return out
}

// stands reports whether an announcement, or the end of one, still counts.
func (m *model) stands(p *pod, a announcement, t at) bool {
	return m.belongs(p, a.uid) && t-a.stamp <= m.cfg.AllocationTTL
}

// announcedOnce reports whether something stands that was reported of the device.
func (m *model) announcedOnce(p *pod, device string, t at) bool {
	return slices.ContainsFunc(p.announcements, func(a announcement) bool { return a.device == device && m.stands(p, a, t) })
}

// forget drops what a pod no longer holds, and pods of which nothing is known any
// more: memory is bounded. Reading: with Seen that is what devicesSeen and expected
// report; else telemetry counts for service_ttl, and announcements for allocation_ttl.
func (m *model) forget(t at) {
	keep := map[*pod][]string{}
	for _, p := range m.pods {
		if m.cfg.Expected == summary.Seen {
			keep[p] = m.devicesSeen(p, t)
			continue
		}
		for _, d := range m.devicesSeenOf(p) {
			last, _ := m.seenWith(p, d)
			if m.announcedOnce(p, d, t) || last != never && t-last <= m.cfg.ServiceTTL {
				keep[p] = append(keep[p], d)
			}
		}
	}
	for _, p := range m.pods {
		maps.DeleteFunc(p.unfresh, func(d string, _ at) bool { return !slices.Contains(keep[p], d) && !m.announcedOnce(p, d, t) })
		p.series = slices.DeleteFunc(p.series, func(s *series) bool {
			return m.belongs(p, s.uid) && !slices.Contains(keep[p], s.device)
		})
		known := len(keep[p]) > 0 || m.listed(p.key) != nil ||
			slices.ContainsFunc(p.announcements, func(a announcement) bool { return m.stands(p, a, t) })
		if m.cfg.Expected == summary.Seen && !m.expected(p, t) || !known {
			delete(m.pods, p.key)
		}
	}
}

// seenWith is when the pod was last seen with the device, and whether the series of
// the device were ended since.
func (m *model) seenWith(p *pod, device string) (last at, ended bool) {
	last = never
	var all []point // the newest of each field
	for f := range numSamples {
		points := m.pointsOf(p, device, f)
		for _, x := range points {
			if !x.end {
				last = max(last, x.stamp)
			}
		}
		if x, ok := newest(points); ok {
			all = append(all, x)
		}
	}
	now, ok := newest(all)
	return last, ok && now.end
}

// held is what a pod holds and what of it reports.
type held struct {
	count     int        // devices
	still     bool       // one that does not report has a frozen exporter
	reporting []reporter // those with a current point
}

// reporter is the telemetry of a device that is held. Of a replica that reports
// through its device only the ratios are known: memory and power are the device's.
type reporter struct {
	device  string
	replica bool
}

// holds: "A pod is reporting when every device it holds has a current point
// (counts are compared where ids cannot be joined; a replica's utilization is its
// device's)".
func (m *model) holds(p *pod, t, staleness at) held {
	var h held
	report := func(device string, replica bool) bool {
		fresh, still := m.reports(p, device, t, staleness)
		if !fresh || still {
			h.still = h.still || still
			return false
		}
		h.reporting = append(h.reporting, reporter{device, replica})
		return true
	}
	if m.cfg.Expected == summary.Seen {
		devices := m.devicesSeen(p, t)
		h.count = len(devices)
		for _, d := range devices {
			report(d, false)
		}
		return h
	}

	resolved, unresolved := m.announcedDevices(p, t)
	h.count = len(resolved) + unresolved
	if f := m.fact(p); f != nil && m.cfg.Expected == summary.Kubernetes {
		// "where the Kubernetes pod asks for more, as many more"
		h.count = max(h.count, f.devices)
	}
	for _, d := range resolved {
		if report(d, false) {
			continue
		}
		if device, _, replica := strings.Cut(d, "::"); replica {
			report(device, true)
		}
	}
	// "of the pod's further devices that are fresh, the newest (then the
	// first by hw.id) report, at most as many as there are"
	known := func(device string) bool {
		return slices.ContainsFunc(resolved, func(id string) bool { return id == device || strings.HasPrefix(id, device+"::") })
	}
	var further []point
	still := false
	for _, d := range m.devicesSeenOf(p) {
		x := m.newestCurrent(p, d, t, staleness)
		switch fresh, isStill := m.reports(p, d, t, staleness); {
		case known(d):
		case isStill:
			still = true
		case fresh:
			further = append(further, x)
		}
	}
	slices.SortStableFunc(further, func(a, b point) int { return int(b.stamp - a.stamp) })
	for _, x := range further[:min(len(further), h.count-len(resolved))] {
		report(x.device, false)
	}
	h.still = h.still || still && len(further) < h.count-len(resolved)
	return h
}

// reports: "A device is fresh while one of its fields has a current point"; and whether all
// that it has stands still.
func (m *model) reports(p *pod, device string, t, staleness at) (isFresh, still bool) {
	for f := range numSamples {
		switch fresh, stands := m.current(p, device, f, t, staleness); {
		case fresh && !stands:
			return true, false
		case fresh:
			isFresh, still = true, true
		}
	}
	return isFresh, still
}

// current: the field has a fresh point, and whether that stands still.
func (m *model) current(p *pod, device string, f field, t, staleness at) (isFresh, still bool) {
	x, ok := newest(m.pointsOf(p, device, f))
	isFresh = ok && fresh(x, t, staleness)
	return isFresh, isFresh && m.isStill(p, x)
}

// newestCurrent is the newest of the current points of the device.
func (m *model) newestCurrent(p *pod, device string, t, staleness at) (best point) {
	best.stamp = never
	for f := range numSamples {
		if fresh, still := m.current(p, device, f, t, staleness); fresh && !still {
			if x, _ := newest(m.pointsOf(p, device, f)); x.stamp > best.stamp {
				best = x
			}
		}
	}
	return best
}

// nodeOf: "the node of a device is that of its newest point".
func (m *model) nodeOf(p *pod, device string) (node string) {
	stamp := never
	for f := range numSamples {
		for _, x := range m.pointsOf(p, device, f) {
			if x.stamp > stamp || x.stamp == stamp && x.node > node {
				node, stamp = x.node, x.stamp
			}
		}
	}
	return node
}

// announcedDevices are the ids that can be joined, and how many others there are.
func (m *model) announcedDevices(p *pod, t at) (resolved []string, unresolved int) {
	var others []string
	for _, a := range m.announced(p, t) {
		if a.resolved && !slices.Contains(resolved, a.device) {
			resolved = append(resolved, a.device)
		}
	}
	for _, a := range m.announced(p, t) {
		if !slices.Contains(resolved, a.device) && !slices.Contains(others, a.device) {
			others = append(others, a.device)
		}
	}
	slices.Sort(resolved)
	return resolved, len(others)
}
