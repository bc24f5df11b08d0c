// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

const (
	// futureSkew is how far another machine's clock may be ahead. A point further
	// ahead counts as arriving now.
	futureSkew = 30 * time.Second

	// maxRatio leaves room for profiling ratios, with two counters that are not read
	// at the same instant. What lies above is no ratio but a percentage.
	maxRatio = 1.01

	// maxAmount is more bytes than a device has (32 TiB) and more watts than it
	// draws; sums over a fleet of such devices still fit into an integer.
	maxAmount = 1 << 45

	// maxContainers bounds the containers of one pod that hold the same device.
	maxContainers = 64
)

// source is the identity that a resource gives to its points.
type source struct {
	pod          podKey
	uid, service string
	device       string
	container    string
	node         string
	isJob        bool // and no pod: see job

	// What the points of this resource led to so far: a pod as a value of time
	// seen left it, and the device of the last point.
	known *pod
	seen  int64
	held  *held
}

// sourceOf reads the identity; false if the resource belongs to no pod and no job.
func sourceOf(attrs pcommon.Map) (src source, owned bool) {
	var j job
	for key, v := range attrs.All() {
		switch key {
		case names.K8sClusterName:
			src.pod.cluster = v.Str()
		case names.K8sNamespaceName:
			src.pod.namespace = v.Str()
		case names.K8sPodName:
			src.pod.name = v.Str()
		case names.K8sPodUID:
			src.uid = v.Str()
		case names.ServiceName:
			src.service = v.Str()
		case names.K8sContainerName:
			src.container = v.Str()
		case names.HwID:
			src.device = v.Str()
		case names.K8sNodeName:
			src.node = v.Str()
		case names.SlurmClusterName:
			j.cluster = v.Str()
		case names.SlurmJobID:
			j.id = v.Str()
		case names.ServiceNamespace:
			j.namespace = v.Str()
		}
	}
	if src.pod.name != "" || j.id == "" {
		return src, src.pod.name != ""
	}
	src.pod, owned = src.unit(j)
	src.isJob = owned
	return src, owned
}

// observer takes one batch in.
type observer struct {
	*Summary
	now   int64
	tally Tally
}

// Observe takes the input points of md in and leaves md as it is. Its cost is
// constant for a point, whatever the size of the state.
func (s *Summary) Observe(md pmetric.Metrics, now time.Time) Tally {
	o := observer{Summary: s, now: now.UnixNano()}
	for _, rm := range md.ResourceMetrics().All() {
		src, owned := sourceOf(rm.Resource().Attributes())
		if src.node != "" && s.cfg.Expected == Kubernetes {
			s.nodes.add(inKubernetes(src.pod.cluster), src.node, s.cfg.MaxPods)
		}
		seen := s.cfg.Expected == Seen
		if !owned && !seen && src.device != "" {
			continue // a device that no pod holds
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch in := inputs.Get(m.Name()); {
				case in == nil:
				case in == &stillness:
					o.exporter(&src, m)
				case seen && (!owned || in == &allocation):
					o.evidence(&src, in, m)
				case owned:
					o.metric(&src, in, m)
				}
			}
		}
	}
	return o.tally
}

func (o *observer) metric(src *source, in *input, m pmetric.Metric) {
	dps, ok := numbers(m)
	if !ok {
		o.tally.refuse(wrongKind, 1, src.pod, m.Name())
		return
	}
	if m.Unit() != in.unit {
		o.tally.refuse(wrongUnit, dps.Len(), src.pod, m.Name())
		return
	}
	for _, dp := range dps.All() {
		f, ok := in.fieldOf(dp.Attributes())
		if !ok {
			continue
		}
		if why := o.point(src, f, dp); why == accepted {
			o.tally.Accepted++
		} else {
			o.tally.refuse(why, 1, src.pod, m.Name())
		}
	}
}

// numbers returns the points of a gauge or a cumulative sum.
func numbers(m pmetric.Metric) (pmetric.NumberDataPointSlice, bool) {
	dps, ok := points.Numbers(m)
	return dps, ok && !points.IsDelta(m)
}

// idOf is the device of a point, "" for none.
func (src *source) idOf(dp pmetric.NumberDataPoint) string {
	if v, ok := dp.Attributes().Get(names.HwID); ok && v.Str() != "" {
		return v.Str()
	}
	return src.device
}

// timeOf is the time of a point, and whether it is young enough to count.
func (o *observer) timeOf(dp pmetric.NumberDataPoint, f field) (t int64, young bool) {
	// Compared unsigned: a time beyond the year 2262 would be negative as int64.
	t = int64(dp.Timestamp())
	if uint64(dp.Timestamp()) > uint64(o.now+int64(futureSkew)) {
		t = o.now
		o.tally.Future++
	}
	ttl := o.cfg.ServiceTTL
	if f == share {
		ttl = o.cfg.AllocationTTL
	}
	return t, o.now-t <= int64(ttl)
}

func (o *observer) point(src *source, f field, dp pmetric.NumberDataPoint) Reason {
	id := src.idOf(dp)
	switch {
	case f == share && nested(dp):
		return accepted
	case src.pod.namespace == "" && !src.isJob:
		return noNamespace
	case src.service == "":
		return noService
	case id == "":
		return noDevice
	case dp.Timestamp() == 0:
		return noTimestamp
	}

	t, young := o.timeOf(dp, f)
	if !young {
		return tooOld
	}
	v := points.Value(dp)
	if f == share && v == 0 {
		v = math.NaN() // held no more
	}
	if v < 0 || v > maxAmount || (f.isRatio() || f == share) && v > maxRatio {
		return outOfRange
	}

	p, why := o.podFor(src, t, math.IsNaN(v))
	if why != accepted {
		if d := o.devices[deviceKey{inKubernetes(src.pod.cluster), id}]; why == late && d != nil && !math.IsNaN(v) {
			d.newest = max(d.newest, t) // it was that pod's all the same
		}
		return why
	}
	if src.held == nil || src.held.id != id {
		if src.held = o.heldBy(p, id); src.held == nil {
			return limitDevices
		}
	}
	if f == share {
		return o.announce(src, announcementOf(src, t, dp))
	}
	if f == suspended && v > 0 {
		o.sample(src, utilization, t, 0) // it does nothing
	}
	return o.sample(src, f, t, v)
}

// podFor returns the pod of src as a point of time t leaves it. A point that ends
// a series is no sighting: it reports what was, under an identity that may be gone.
func (o *observer) podFor(src *source, t int64, ends bool) (*pod, Reason) {
	p := src.known
	if p != nil && t == src.seen {
		return p, accepted // as the point before, which was a value
	}
	if p == nil {
		p = o.pods[src.pod]
	}
	if p == nil {
		var why Reason
		if p, why = o.newPod(src.pod, src.service); why != accepted {
			return nil, why
		}
	}
	src.known = p

	renewed := src.uid != "" && p.uid != "" && src.uid != p.uid
	if renewed && (ends || !newer(t, src.uid, p.uidTime, p.uid)) {
		return nil, late // of the pod that had this name before
	}
	if ends {
		return p, accepted
	}
	if renewed {
		o.renew(p, src.uid)
		src.held = nil
	}
	if src.service != p.service.key.name && newer(t, src.service, p.svcTime, p.service.key.name) {
		svc := o.serviceFor(serviceKey{src.pod.cluster, src.pod.namespace, src.service})
		if svc == nil {
			return nil, limitServices
		}
		svc.add(p)
		p.svcTime = t
	} else if src.service == p.service.key.name {
		p.svcTime = max(p.svcTime, t)
	}
	if src.uid != "" {
		p.uid, p.uidTime = src.uid, max(p.uidTime, t)
	}
	src.seen = t
	return p, accepted
}

// newer reports whether a name given at time t replaces the one given at time was;
// of two given at the same time, the greater stays, whichever came first.
func newer(t int64, name string, was int64, old string) bool {
	return t > was || t == was && name > old
}

// sample makes a point part of its series.
func (o *observer) sample(src *source, f field, t int64, v float64) Reason {
	p, h := src.known, src.held
	if !math.IsNaN(v) {
		p.firstSeen = oldest(p.firstSeen, t)
		p.lastSeen, p.restored = max(p.lastSeen, t), false
		h.lastSeen = max(h.lastSeen, t)
		if h.device != nil {
			h.device.newest = max(h.device.newest, t)
		}
		if h.times == (recent{}) || f < h.timesOf {
			h.times, h.timesOf = recent{}, f // other fields may be another exporter's
		}
		if f == h.timesOf {
			h.times.add(t)
		}
		if f == utilization {
			h.firstUsed = oldest(h.firstUsed, t)
			if v >= o.cfg.IdleThreshold {
				h.lastBusy = max(h.lastBusy, t)
			}
		}
	}
	s := &h.samples[f]
	if t > h.nodeTime || t == h.nodeTime && src.node > h.node {
		h.node, h.nodeTime = src.node, t
	}
	switch {
	case t > s.time:
		*s = sample{t, v}
		return accepted
	case t < s.time:
		return late
	default:
		// A value beats an end: when the owner changes within a pod (another
		// container) the old series ends at the very time of the new one's point.
		if math.IsNaN(s.value) || v > s.value {
			s.value = v
		}
		return duplicate
	}
}

// announcementOf reads a point of gpu.allocation.
func announcementOf(src *source, t int64, dp pmetric.NumberDataPoint) announcement {
	resolved := false
	if v, ok := dp.Attributes().Get(names.GPUAllocationResolved); ok {
		resolved = v.Bool()
	}
	v := points.Value(dp)
	return announcement{src.container, src.uid, t, v != 0 && !math.IsNaN(v), resolved}
}

// announce makes a point of gpu.allocation part of its series.
func (o *observer) announce(src *source, is announcement) Reason {
	t, held, resolved := is.time, is.held, is.resolved
	if p := src.known; held && (p.entry != nil || t > p.removed) {
		p.firstAnnounced, p.restored = oldest(p.firstAnnounced, t), false
	}
	for i := range src.held.announced {
		a := &src.held.announced[i]
		switch {
		case a.container != src.container:
			continue
		case t < a.time:
			return late
		case t > a.time || held && !a.held:
			*a = is
			return accepted
		default:
			a.resolved = a.resolved || held == a.held && resolved
			return duplicate
		}
	}
	if len(src.held.announced) == maxContainers {
		return limitDevices
	}
	src.held.announced = append(src.held.announced, is)
	return accepted
}

// oldest of two times, of which was is 0 where there is none.
func oldest(was, t int64) int64 {
	if was == 0 || t < was {
		return t
	}
	return was
}
