// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"cmp"
	"math"
	"slices"
)

// maxDevicesPerPod bounds what one pod can hold. A pod with all instances of 8
// MIG boards holds 56.
const maxDevicesPerPod = 128

type (
	podKey     struct{ cluster, namespace, name string }
	serviceKey struct{ cluster, namespace, name string }
	deviceKey  struct{ cluster, id string }
	nodeKey    struct{ cluster, name string }
)

// memory is the pods, services and devices that are known, each within its limit.
type memory struct {
	cfg      Config
	pods     map[podKey]*pod
	services map[serviceKey]*service
	devices  owners // with Seen alone
	round    uint64 // of setPods

	// order is services sorted by key, nil when it has to be made again. Sums are
	// taken in this order, because floating point addition is not associative.
	order []*service
}

// service is a set of pods and what was last reported about them.
type service struct {
	key        serviceKey
	pods       []*pod // may hold pods that have moved on until prune
	unsorted   bool
	known      bool  // the start gate is open
	wasPartial bool  // reported since the start
	wasIdle    bool  // it has had idle devices since the start
	expected   int   // pods, at the evaluation under way
	emptySince int64 // since when it has no expected pod; 0: it has
	shown      seriesSet
}

// pod is a pod that telemetry, an announcement or the Kubernetes API has named.
type pod struct {
	key       podKey
	uid       string
	uidTime   int64 // newest point that bore uid
	restored  bool  // it is known from before the start, and nothing reported it since
	service   *service
	svcTime   int64 // newest point that named service; 0: none did
	firstSeen int64 // by telemetry; 0: never
	lastSeen  int64
	devices   []*held
	unsorted  bool
	expected  bool // at the evaluation under way
	allocated bool // with Seen, likewise: gpu.allocation reports that it holds a device

	entry   *Pod   // what the Kubernetes API reports of it; nil: nothing
	round   uint64 // of SetPods, in which it reported it last
	removed int64  // when it last ceased to report anything
	// firstAnnounced is the oldest announcement since the last evaluation at which
	// none stood; 0: none since.
	firstAnnounced int64

	// The series of gpu.pod.state that stands at 1: under which service, and in
	// which state. nil: none.
	shownIn *service
	shown   podState
}

// held is a device as one pod was seen with it, or as it was announced for it.
type held struct {
	id       string
	device   *device // with Seen alone
	lastSeen int64   // by telemetry
	samples  [numSamples]sample
	node     string // of the newest point, which has nodeTime
	nodeTime int64
	times    recent // of points of timesOf
	timesOf  field  // the first of the fields that it has
	// firstUsed is the oldest utilization point, lastBusy the newest at or above
	// idle_threshold, stale the newest evaluation at which utilization was not
	// current.
	firstUsed, lastBusy, stale int64

	announced []announcement // one for each container
	named     bool           // scratch of valueOf: it is announced by its id
}

// announcement is the newest point of a series of gpu.allocation.
type announcement struct {
	container, uid string
	time           int64
	held, resolved bool // not held: the series has ended
}

// sample is the newest point of a series; value is NaN once the series has ended.
type sample struct {
	time  int64
	value float64
}

// fresh reports whether the point still counts at now.
func (s sample) fresh(now, staleness int64) bool {
	return s.time != 0 && now-s.time <= staleness && !math.IsNaN(s.value)
}

// ended reports whether the newest point of the device ends its series.
func (h *held) ended() bool {
	var newest sample
	for _, s := range h.samples {
		if s.time > newest.time || s.time == newest.time && math.IsNaN(newest.value) {
			newest = s
		}
	}
	return newest.time != 0 && math.IsNaN(newest.value)
}

// serviceFor returns the service, made if need be; nil when max_services is reached.
func (m *memory) serviceFor(key serviceKey) *service {
	svc := m.services[key]
	if svc == nil && len(m.services) < m.cfg.MaxServices {
		svc = &service{key: key}
		m.services[key] = svc
		m.order = nil
	}
	return svc
}

func (svc *service) add(p *pod) {
	svc.pods = append(svc.pods, p)
	svc.unsorted = true
	p.service = svc
}

// newPod makes a pod of a service.
func (m *memory) newPod(key podKey, service string) (*pod, Reason) {
	if len(m.pods) >= m.cfg.MaxPods {
		return nil, LimitPods
	}
	svc := m.serviceFor(serviceKey{key.cluster, key.namespace, service})
	if svc == nil {
		return nil, limitServices
	}
	// The pods of a service share the memory of what they have in common.
	p := &pod{key: podKey{svc.key.cluster, svc.key.namespace, key.name}}
	svc.add(p)
	m.pods[p.key] = p
	return p, accepted
}

// device returns what p has of this id; nil if nothing.
func (p *pod) device(id string) *held {
	for _, h := range p.devices {
		if h.id == id {
			return h
		}
	}
	return nil
}

// heldBy returns the device as p holds it, made if need be; nil when
// maxDevicesPerPod is reached.
func (m *memory) heldBy(p *pod, id string) *held {
	if h := p.device(id); h != nil {
		return h
	}
	if len(p.devices) >= maxDevicesPerPod {
		return nil
	}
	h := &held{id: id}
	if m.cfg.Expected == Seen {
		h.device = m.devices.device(deviceKey{inKubernetes(p.key.cluster), id})
		h.device.owners++
	}
	p.devices = append(p.devices, h)
	p.unsorted = true
	return h
}

// forget drops what the state keeps of h; the caller takes it out of its pod.
func (h *held) forget() {
	if h.device != nil {
		h.device.owners--
	}
}

// attach gives pods that were seen the further devices that gpu.allocation reports
// they hold.
func (m *memory) attach(now int64) {
	for key, d := range m.devices {
		d.forget(now, m.cfg.AllocationTTL)
		for i := range d.allocated {
			a := &d.allocated[i]
			if !a.held {
				continue
			}
			p := m.pods[a.pod]
			if p != nil && p.firstSeen != 0 && (a.uid == "" || p.uid == "" || a.uid == p.uid) {
				m.heldBy(p, key.id)
			}
		}
	}
}

// renew makes p the pod with this uid, which was never seen: a new pod of the same
// name, such as a StatefulSet makes, holds nothing of what its predecessor held. An
// announcement without uid may be of either, and stays.
func (m *memory) renew(p *pod, uid string) {
	announced := false
	kept := p.devices[:0]
	for _, h := range p.devices {
		h.announced = slices.DeleteFunc(h.announced, func(a announcement) bool { return a.uid != "" && a.uid != uid })
		if len(h.announced) == 0 {
			h.forget()
			continue
		}
		announced = true
		kept = append(kept, &held{id: h.id, announced: h.announced})
	}
	clear(p.devices[len(kept):])
	p.devices = kept
	p.firstSeen, p.lastSeen, p.restored = 0, 0, false
	if !announced {
		p.firstAnnounced = 0
	}
	p.svcTime = 0 // the service of this one is not known yet
}

// inOrder returns the services sorted by key.
func (m *memory) inOrder() []*service {
	if m.order == nil {
		m.order = make([]*service, 0, len(m.services))
		for _, svc := range m.services {
			m.order = append(m.order, svc)
		}
		slices.SortFunc(m.order, func(a, b *service) int {
			return cmp.Or(
				cmp.Compare(a.key.cluster, b.key.cluster),
				cmp.Compare(a.key.namespace, b.key.namespace),
				cmp.Compare(a.key.name, b.key.name),
			)
		})
	}
	return m.order
}

// sort puts the pods of svc into order, each once: a pod that left for another
// service and came back before prune is in it twice.
func (svc *service) sort() {
	if !svc.unsorted {
		return
	}
	slices.SortFunc(svc.pods, func(a, b *pod) int { return cmp.Compare(a.key.name, b.key.name) })
	svc.pods = slices.Compact(svc.pods)
	svc.unsorted = false
}

func (p *pod) sort() {
	if !p.unsorted {
		return
	}
	slices.SortFunc(p.devices, func(a, b *held) int { return cmp.Compare(a.id, b.id) })
	p.unsorted = false
}

// forgetPod drops p and what it holds; the caller takes it out of its service.
func (m *memory) forgetPod(p *pod) {
	for _, h := range p.devices {
		h.forget()
	}
	p.devices = nil
	delete(m.pods, p.key)
}

// move adds step to the times that are set.
func move(step int64, times ...*int64) {
	for _, t := range times {
		if *t != 0 {
			*t += step
		}
	}
}

func (p *pod) shift(step int64) {
	move(step, &p.uidTime, &p.svcTime, &p.firstSeen, &p.lastSeen, &p.removed, &p.firstAnnounced)
	for _, h := range p.devices {
		move(step, &h.lastSeen, &h.nodeTime, &h.firstUsed, &h.lastBusy, &h.stale)
		for i := range h.samples {
			move(step, &h.samples[i].time)
		}
		for i := range h.times {
			move(step, &h.times[i])
		}
		for i := range h.announced {
			move(step, &h.announced[i].time)
		}
	}
}
