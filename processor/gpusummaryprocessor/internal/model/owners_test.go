// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

type deviceKey struct{ cluster, id string }

// seenKey is telemetry of a device, with a pod or without.
type seenKey struct {
	deviceKey
	owned bool
}

// word is a point of gpu.allocation as it reports who holds a device, with Seen. The pod has
// no name where no pod does.
type word struct {
	pod            podKey
	uid, container string
	stamp          at
	end            bool // it takes back what it reported
}

// newestWords are what gpu.allocation reports of the device: of each pod and container the
// newest within allocation_ttl; of two at one time the one that is not an end.
func (m *model) newestWords(k deviceKey, t at) []word {
	var out []word
	for _, w := range m.words[k] {
		if w.pod.name == "" || t-w.stamp > m.cfg.AllocationTTL {
			continue
		}
		i := slices.IndexFunc(out, func(o word) bool { return o.pod == w.pod && o.container == w.container && o.uid == w.uid })
		switch {
		case i < 0:
			out = append(out, w)
		case w.stamp > out[i].stamp, w.stamp == out[i].stamp && !w.end:
			out[i] = w
		}
	}
	return out
}

// allocatedTo is when gpu.allocation last reported that the pod holds the device, and when
// it took that back; never where it did not.
func (m *model) allocatedTo(p *pod, device string, t at) (holds, takenBack at) {
	holds, takenBack = never, never
	for _, w := range m.newestWords(deviceKey{p.key.cluster, device}, t) {
		switch {
		case w.pod != p.key || !m.belongs(p, w.uid):
		case w.end:
			takenBack = max(takenBack, w.stamp)
		default:
			holds = max(holds, w.stamp)
		}
	}
	return holds, takenBack
}

// otherwise is the newest time at which something reported who holds the device, the pod
// itself included. "telemetry of the device goes on without a pod" counts where
// gpu.allocation has not spoken of the device for allocation_ttl.
func (m *model) otherwise(k deviceKey, t at) at {
	seen := func(owned bool) at {
		if stamp, ok := m.seen[seenKey{k, owned}]; ok {
			return stamp
		}
		return never
	}
	free, allocated := never, never
	for _, w := range m.words[k] {
		if w.pod.name == "" {
			free = max(free, w.stamp)
		}
	}
	for _, w := range m.newestWords(k, t) {
		if !w.end {
			allocated = max(allocated, w.stamp)
		}
	}
	last := max(seen(true), free, allocated)
	if spoke := max(free, allocated); spoke == never || t-spoke > m.cfg.AllocationTTL {
		last = max(last, seen(false))
	}
	return last
}

// devicesSeen: "a pod holds the devices it was seen with", and those that gpu.allocation
// reports it has, until something reports otherwise. Reading: one of which the newest point is
// an end, and that stayed silent for service_ttl, was given back.
func (m *model) devicesSeen(p *pod, t at) []string {
	devices := m.devicesSeenOf(p)
	if first, _ := m.sightings(p); first != never {
		for k := range m.words {
			holds, _ := m.allocatedTo(p, k.id, t)
			if k.cluster == p.key.cluster && holds != never && !slices.Contains(devices, k.id) {
				devices = append(devices, k.id)
			}
		}
	}
	slices.Sort(devices)
	return slices.DeleteFunc(devices, func(device string) bool {
		last, ended := m.seenWith(p, device)
		holds, takenBack := m.allocatedTo(p, device, t)
		switch {
		case max(last, holds) == never, max(last, holds) < m.otherwise(deviceKey{p.key.cluster, device}, t):
			return true
		case holds == never:
			return takenBack > last || ended && t-last > m.cfg.ServiceTTL
		}
		return false
	})
}

// allocated reports whether gpu.allocation reports that the pod holds one of its devices.
func (m *model) allocated(p *pod, t at) bool {
	return slices.ContainsFunc(m.devicesSeen(p, t), func(device string) bool {
		holds, _ := m.allocatedTo(p, device, t)
		return holds != never
	})
}

// isStill: the point is of a frozen exporter: gpu.exporter.frozen of
// the same time and node is 1.
func (m *model) isStill(p *pod, x point) bool {
	if !slices.ContainsFunc(m.still, func(s point) bool { return s.stamp == x.stamp }) {
		return false // nearly always
	}
	node := m.nodeOf(p, x.device)
	return slices.ContainsFunc(m.still, func(s point) bool {
		return s.value > 0 && s.pod.cluster == x.pod.cluster && s.stamp == x.stamp &&
			(s.node == node || s.node == "" || node == "")
	})
}
