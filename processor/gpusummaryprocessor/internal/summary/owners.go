// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// With Seen, telemetry reports what a pod holds, and falls silent in two ways: the
// device is silent, or it goes on under another identity. The second is the normal
// end of a pod, and what is here distinguishes the two.

// device is what is known of a device, whichever pod holds it.
type device struct {
	key     deviceKey
	newest  int64 // newest point of any pod
	unowned int64 // newest point without a pod
	free    int64 // newest gpu.allocation that reports that nothing holds it
	// allocated are the newest points of gpu.allocation by pod and container.
	allocated []allocated
	owners    int // pods in memory that have it
}

// allocated is the newest point of a series of gpu.allocation.
type allocated struct {
	pod podKey
	announcement
}

// device finds or makes a device.
func (s *Summary) device(key deviceKey) *device {
	d := s.devices[key]
	if d == nil {
		d = &device{key: key}
		s.devices[key] = d
	}
	return d
}

// spoke is when gpu.allocation last reported who holds the device, or that no one does.
func (d *device) spoke() int64 {
	last := d.free
	for i := range d.allocated {
		if d.allocated[i].held {
			last = max(last, d.allocated[i].time)
		}
	}
	return last
}

// allocatedTo reports until when gpu.allocation reported that p holds the device, 0 where
// it does not any more; and when it reported that p does not.
func (d *device) allocatedTo(p *pod, now int64, ttl time.Duration) (held, left int64) {
	for i := range d.allocated {
		a := &d.allocated[i]
		switch {
		case a.pod != p.key || a.uid != "" && p.uid != "" && a.uid != p.uid:
		case !a.held:
			left = max(left, a.time)
		case now-a.time <= int64(ttl):
			held = max(held, a.time)
		}
	}
	return held, left
}

// holds reports whether p still holds h, with Seen. It does until something reports
// otherwise later than p was seen with it:
//
//   - telemetry of the device, or gpu.allocation, names another pod;
//   - gpu.allocation reports that the device is free, or takes its word about p back;
//   - telemetry of the device goes on without a pod, and gpu.allocation has not
//     spoken of the device for allocation_ttl: where it does, telemetry without a pod
//     may only mean that the owner is unknown.
//
// A device that fell silent is still held, unless its utilization was ended
// service_ttl ago.
func (s *Summary) holds(p *pod, h *held, now int64) bool {
	d := h.device
	held, left := d.allocatedTo(p, now, s.cfg.AllocationTTL)
	if held == 0 && left > h.lastSeen {
		return false
	}
	last := max(h.lastSeen, held)
	spoke := d.spoke()
	other := max(d.newest, spoke)
	if spoke == 0 || now-spoke > int64(s.cfg.AllocationTTL) {
		other = max(other, d.unowned)
	}
	released := held == 0 && math.IsNaN(h.samples[utilization].value) && now-h.lastSeen > int64(s.cfg.ServiceTTL)
	if last == 0 || last < other || released {
		return false
	}
	p.allocated = p.allocated || held > 0
	return true
}

// attach gives pods that were seen the further devices that gpu.allocation reports
// they hold.
func (s *Summary) attach(now int64) {
	for key, d := range s.devices {
		d.forget(now, s.cfg.AllocationTTL)
		for i := range d.allocated {
			a := &d.allocated[i]
			if !a.held {
				continue
			}
			p := s.pods[a.pod]
			if p != nil && p.firstSeen != 0 && (a.uid == "" || p.uid == "" || a.uid == p.uid) {
				s.heldBy(p, key.id)
			}
		}
	}
}

// forget drops what gpu.allocation reported longer than ttl ago.
func (d *device) forget(now int64, ttl time.Duration) {
	kept := d.allocated[:0]
	for _, a := range d.allocated {
		if now-a.time <= int64(ttl) {
			kept = append(kept, a)
		}
	}
	clear(d.allocated[len(kept):])
	d.allocated = kept
}

// pruneOwners forgets devices that no pod in memory has, once a point that is older
// than what is known of them would be too old.
func (s *Summary) pruneOwners(now int64) {
	ttl := int64(max(s.cfg.ServiceTTL, s.cfg.AllocationTTL))
	for key, d := range s.devices {
		if d.owners == 0 && len(d.allocated) == 0 && now-max(d.newest, d.unowned, d.free) > ttl {
			delete(s.devices, key)
		}
	}
}

// evidence takes the points of a metric that report who holds a device, with Seen: those
// of devices without a pod, and gpu.allocation.
func (o *observer) evidence(src *source, in *input, m pmetric.Metric) {
	dps, ok := numbers(m)
	if !ok || m.Unit() != in.unit {
		return
	}
	for _, dp := range dps.All() {
		f, ok := in.fieldOf(dp.Attributes())
		id := src.idOf(dp)
		if !ok || id == "" || dp.Timestamp() == 0 {
			continue
		}
		t, young := o.timeOf(dp, f)
		if !young {
			continue
		}
		if why := o.reported(src, f, deviceKey{src.pod.cluster, id}, t, dp); why != accepted {
			o.tally.refuse(why, 1, src.pod, m.Name())
		}
	}
}

// reported takes one such point. Whether a pod is known does not matter yet: its telemetry
// may come after.
func (o *observer) reported(src *source, f field, key deviceKey, t int64, dp pmetric.NumberDataPoint) Reason {
	v := points.Value(dp)
	is := announcementOf(src, t, dp)
	owned := src.pod.name != ""
	switch {
	case !owned && (math.IsNaN(v) || f == share && v != 0),
		owned && (src.pod.namespace == "" || !is.resolved || v < 0 || v > maxRatio):
		return accepted // it reports nothing
	}
	d := o.devices[key]
	if d == nil {
		if len(o.devices) >= o.cfg.MaxPods {
			return LimitPods
		}
		d = o.device(key)
	}
	switch {
	case owned:
		return d.allocate(allocated{src.pod, is})
	case f == share:
		d.free = max(d.free, t)
	default:
		d.unowned = max(d.unowned, t)
	}
	return accepted
}

// allocate makes a point of gpu.allocation part of its series.
func (d *device) allocate(is allocated) Reason {
	for i := range d.allocated {
		a := &d.allocated[i]
		if a.pod != is.pod || a.container != is.container || a.uid != is.uid {
			continue
		}
		if is.time > a.time || is.time == a.time && is.held {
			*a = is
		}
		return accepted
	}
	if len(d.allocated) == maxContainers {
		return limitDevices
	}
	d.allocated = append(d.allocated, is)
	return accepted
}

// SeenPod is a pod as telemetry showed it, for the next start to know. Times are
// nanoseconds since the Unix epoch.
type SeenPod struct {
	Cluster   string       `json:"cluster,omitempty"`
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	UID       string       `json:"uid,omitempty"`
	Service   string       `json:"service"`
	First     int64        `json:"first"`
	Last      int64        `json:"last"`
	Devices   []SeenDevice `json:"devices"`
}

// SeenDevice is a device that a pod was seen with last at a time.
type SeenDevice struct {
	ID   string `json:"id"`
	Last int64  `json:"last"`
}

// Seen returns the pods that were seen, for Restore.
func (s *Summary) Seen() []SeenPod {
	out := make([]SeenPod, 0, len(s.pods))
	for _, p := range s.pods {
		if p.firstSeen == 0 {
			continue
		}
		seen := SeenPod{p.key.cluster, p.key.namespace, p.key.name, p.uid, p.service.key.name, p.firstSeen, p.lastSeen, nil}
		for _, h := range p.devices {
			if h.lastSeen != 0 {
				seen.Devices = append(seen.Devices, SeenDevice{h.id, h.lastSeen})
			}
		}
		out = append(out, seen)
	}
	return out
}

// Restore takes over what Seen returned before the start, before any other call.
// So the pods that fell silent before are known, and which pods are young. Time before
// the start does not count as silence: nothing could be seen.
func (s *Summary) Restore(pods []SeenPod) (refused int) {
	s.restored = true
	for i := range pods {
		is := &pods[i]
		if is.Namespace == "" || is.Name == "" || is.Service == "" || is.First <= 0 || is.First > s.start {
			continue
		}
		key := podKey{is.Cluster, is.Namespace, is.Name}
		if s.pods[key] != nil {
			continue
		}
		p, why := s.newPod(key, is.Service)
		if why != accepted {
			refused++
			continue
		}
		p.uid, p.uidTime, p.svcTime = is.UID, min(is.Last, s.start), min(is.Last, s.start)
		p.firstSeen, p.lastSeen, p.restored = is.First, s.start, true
		for _, d := range is.Devices {
			if d.ID == "" || d.Last <= 0 {
				continue
			}
			if h := s.heldBy(p, d.ID); h != nil {
				h.lastSeen = min(d.Last, s.start)
				h.device.newest = max(h.device.newest, h.lastSeen)
			}
		}
	}
	return refused
}
