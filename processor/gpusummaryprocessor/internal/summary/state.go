// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// maxDevicesPerPod bounds what one pod can hold. A pod with all instances of 8
// MIG boards holds 56.
const maxDevicesPerPod = 128

type (
	podKey     struct{ cluster, namespace, name string }
	serviceKey struct{ cluster, namespace, name string }
	deviceKey  struct{ cluster, id string }
	heldKey    struct {
		pod *pod
		id  string
	}
)

// state is all that is known between two evaluations. Times are nanoseconds since
// the Unix epoch. It is not safe for concurrent use.
//
// What observe does to it is commutative: newest times are maxima, oldest times
// are minima, and where two points of a series bear the same time the greater
// value stays, and any value before an end. So the order in which batches arrive, and how points are grouped
// into them, changes no evaluation. The one exception: the end of a series that
// overtakes the first value of a pod with the name of an earlier one is dropped,
// because it cannot be told from an end of that earlier pod.
type Summary struct {
	cfg   Config
	start int64

	pods     map[podKey]*pod
	services map[serviceKey]*service
	devices  map[deviceKey]*device
	held     map[heldKey]*held

	// order is services sorted by key, nil when it has to be made anew. Sums are
	// taken in this order, because floating point addition is not associative.
	order []*service
	gaps  []int64 // scratch space of interval
}

// service is a set of pods and what was last said about them.
type service struct {
	key        serviceKey
	pods       []*pod // may hold pods that have moved on until prune
	unsorted   bool
	known      bool  // the start gate is open
	emptySince int64 // 0: not empty
	shown      seriesSet
}

// pod is a pod that telemetry has named.
type pod struct {
	key       podKey
	uid       string
	uidTime   int64 // newest point that bore uid
	service   *service
	svcTime   int64 // newest point that named service
	firstSeen int64
	lastSeen  int64
	devices   []*held
	unsorted  bool

	// The series of gpu.pod.state that stands at 1: under which service, and in
	// which state. nil: none.
	shownIn *service
	shown   podState
}

// device is what all pods that were seen with a device share.
type device struct {
	key     deviceKey
	newest  int64 // newest point of any pod
	holders int
}

// held is a device as one pod was seen with it.
type held struct {
	pod      *pod
	device   *device
	lastSeen int64
	samples  [numFields]sample
	times    recent // of utilization points
	// runStart is the oldest utilization point since the device was last without
	// a fresh one; lastBusy is the newest at or above idle_threshold.
	runStart, lastBusy int64
}

// sample is the newest point of a series; value is NaN once the series has ended.
type sample struct {
	time  int64
	value float64
}

// fresh tells whether the point still counts at now.
func (s sample) fresh(now, staleness int64) bool {
	return s.time != 0 && now-s.time <= staleness && !math.IsNaN(s.value)
}

func New(cfg Config, start time.Time) *Summary {
	return &Summary{
		cfg:      cfg,
		start:    start.UnixNano(),
		pods:     map[podKey]*pod{},
		services: map[serviceKey]*service{},
		devices:  map[deviceKey]*device{},
		held:     map[heldKey]*held{},
	}
}

// Tracked returns how many pods and services are in memory.
func (s *Summary) Tracked() (pods, services int) { return len(s.pods), len(s.services) }

// serviceFor returns the service, made if need be; nil when max_services is reached.
func (s *Summary) serviceFor(key serviceKey) *service {
	svc := s.services[key]
	if svc == nil && len(s.services) < s.cfg.MaxServices {
		svc = &service{key: key}
		s.services[key] = svc
		s.order = nil
	}
	return svc
}

func (svc *service) add(p *pod) {
	svc.pods = append(svc.pods, p)
	svc.unsorted = true
	svc.emptySince = 0
	p.service = svc
}

// heldBy returns the device as p holds it, made if need be; nil when
// maxDevicesPerPod is reached.
func (s *Summary) heldBy(p *pod, id string) *held {
	key := heldKey{p, id}
	if h := s.held[key]; h != nil {
		return h
	}
	if len(p.devices) >= maxDevicesPerPod {
		return nil
	}
	dk := deviceKey{p.key.cluster, id}
	d := s.devices[dk]
	if d == nil {
		d = &device{key: dk}
		s.devices[dk] = d
	}
	d.holders++
	h := &held{pod: p, device: d}
	s.held[key] = h
	p.devices = append(p.devices, h)
	p.unsorted = true
	return h
}

// forgetHeld drops what the state keeps of h; the caller takes it out of its pod.
func (s *Summary) forgetHeld(h *held) {
	delete(s.held, heldKey{h.pod, h.device.key.id})
	if h.device.holders--; h.device.holders == 0 {
		delete(s.devices, h.device.key)
	}
}

// renew makes p a pod that was never seen: a new pod of the same name, such as a
// StatefulSet makes, holds nothing of what its predecessor held.
func (s *Summary) renew(p *pod) {
	for _, h := range p.devices {
		s.forgetHeld(h)
	}
	p.devices = nil
	p.firstSeen, p.lastSeen = 0, 0
}

// inOrder returns the services sorted by key.
func (s *Summary) inOrder() []*service {
	if s.order == nil {
		s.order = make([]*service, 0, len(s.services))
		for _, svc := range s.services {
			s.order = append(s.order, svc)
		}
		slices.SortFunc(s.order, func(a, b *service) int {
			return cmp.Or(
				cmp.Compare(a.key.cluster, b.key.cluster),
				cmp.Compare(a.key.namespace, b.key.namespace),
				cmp.Compare(a.key.name, b.key.name),
			)
		})
	}
	return s.order
}

// sort puts the pods of svc into order, each once: a pod that left for another
// service and came back before prune stands there twice.
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
	slices.SortFunc(p.devices, func(a, b *held) int { return cmp.Compare(a.device.key.id, b.device.key.id) })
	p.unsorted = false
}

// shift moves every time in memory by step: the wall clock was set, and what is
// kept has to keep its age.
func (s *Summary) Shift(step time.Duration) {
	move := func(times ...*int64) {
		for _, t := range times {
			if *t != 0 {
				*t += int64(step)
			}
		}
	}
	move(&s.start)
	for _, svc := range s.services {
		move(&svc.emptySince)
	}
	for _, d := range s.devices {
		move(&d.newest)
	}
	for _, p := range s.pods {
		move(&p.uidTime, &p.svcTime, &p.firstSeen, &p.lastSeen)
		for _, h := range p.devices {
			move(&h.lastSeen, &h.runStart, &h.lastBusy)
			for i := range h.samples {
				move(&h.samples[i].time)
			}
			for i := range h.times {
				move(&h.times[i])
			}
		}
	}
}
