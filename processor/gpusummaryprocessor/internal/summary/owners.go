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

// owners are the devices that are known, whichever pods hold them.
type owners map[deviceKey]*device

// device finds or makes a device.
func (o owners) device(key deviceKey) *device {
	d := o[key]
	if d == nil {
		d = &device{key: key}
		o[key] = d
	}
	return d
}

// prune forgets devices that no pod in memory has, once a point that is older than
// what is known of them would be too old.
func (o owners) prune(now, ttl int64) {
	for key, d := range o {
		if d.owners == 0 && len(d.allocated) == 0 && now-max(d.newest, d.unowned, d.free) > ttl {
			delete(o, key)
		}
	}
}

func (d *device) shift(step int64) {
	move(step, &d.newest, &d.unowned, &d.free)
	for i := range d.allocated {
		move(step, &d.allocated[i].time)
	}
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
		if !ok || id == "" || dp.Timestamp() == 0 || f == share && nested(dp) {
			continue
		}
		t, young := o.timeOf(dp, f)
		if !young {
			continue
		}
		if why := o.reported(src, f, deviceKey{inKubernetes(src.pod.cluster), id}, t, dp); why != accepted {
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
		owned && (src.pod.namespace == "" && !src.isJob || !is.resolved || v < 0 || v > maxRatio):
		return accepted // it reports nothing
	}
	d := o.devices[key]
	if d == nil {
		if len(o.devices) >= o.cfg.MaxPods {
			return LimitPods
		}
		d = o.devices.device(key)
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
