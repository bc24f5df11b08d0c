// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"math"
	"time"
)

// podState is the state of a pod.
type podState uint8

const (
	reporting  podState = iota // every device has a fresh utilization point
	degraded                   // some have
	missing                    // none has
	warming                    // too young to be missing
	notRunning                 // known not to run; telemetry alone cannot know it
	numPodStates
)

// evaluation is what all services and pods are at one moment.
type Evaluation struct {
	at       time.Time
	services []serviceFigures
	pods     []podPoint
}

// podPoint is what is to be said about a pod.
type podPoint struct {
	service serviceKey
	pod     string
	state   podState
	left    podState // the state it left, if hasLeft
	hasLeft bool
	ended   bool // the pod is gone: only the end of the series of state is said
}

// evaluate returns the figures of all services at now. Its cost is linear in pods
// and devices.
func (s *Summary) Evaluate(now time.Time) Evaluation {
	t := now.UnixNano()
	e := Evaluation{at: now}
	order := s.inOrder()
	// All services first, so that a pod is gone from the service that it left
	// before the one that it came to says where it is.
	for _, svc := range order {
		s.prune(svc, t, &e)
	}
	for _, svc := range order {
		if len(svc.pods) == 0 && svc.emptySince == 0 {
			svc.emptySince = t
		}
		switch {
		case len(svc.pods) == 0 && svc.shown == 0:
			s.forgetService(svc) // nothing was ever said about it
		case len(svc.pods) == 0 && t-svc.emptySince >= int64(s.cfg.ServiceTTL):
			e.services = append(e.services, serviceFigures{key: svc.key, ended: svc.shown})
			s.forgetService(svc)
		default:
			s.summarize(svc, t, &e)
		}
	}
	return e
}

func (s *Summary) forgetService(svc *service) {
	delete(s.services, svc.key)
	s.order = nil
}

// prune takes out of svc the pods that moved to another service, those not seen
// within service_ttl, and those whose devices have all been seen with other pods
// since.
func (s *Summary) prune(svc *service, now int64, e *Evaluation) {
	svc.sort()
	kept := svc.pods[:0]
	for _, p := range svc.pods {
		if p.service == svc {
			s.pruneDevices(p, now)
			if len(p.devices) > 0 && now-p.lastSeen <= int64(s.cfg.ServiceTTL) {
				kept = append(kept, p)
				continue
			}
			s.forgetPod(p)
		}
		if p.shownIn == svc {
			e.pods = append(e.pods, podPoint{service: svc.key, pod: p.key.name, state: p.shown, ended: true})
			p.shownIn = nil
		}
	}
	clear(svc.pods[len(kept):])
	svc.pods = kept
}

// pruneDevices takes out of p the devices that another pod was seen with later,
// those that were never seen but in a point that ended a series, and those whose
// utilization ended and that were not seen within service_ttl: p, or a pod of its
// name before it, gave them back. A device that only fell silent is still held.
func (s *Summary) pruneDevices(p *pod, now int64) {
	p.sort()
	kept := p.devices[:0]
	for _, h := range p.devices {
		released := math.IsNaN(h.samples[utilization].value) && now-h.lastSeen > int64(s.cfg.ServiceTTL)
		if h.lastSeen > 0 && h.lastSeen >= h.device.newest && !released {
			kept = append(kept, h)
		} else {
			s.forgetHeld(h)
		}
	}
	clear(p.devices[len(kept):])
	p.devices = kept
}

func (s *Summary) forgetPod(p *pod) {
	for _, h := range p.devices {
		s.forgetHeld(h)
	}
	p.devices = nil
	delete(s.pods, p.key)
}

// summarize appends the figures of svc and the states of its pods.
func (s *Summary) summarize(svc *service, now int64, e *Evaluation) {
	staleness := s.staleness(svc)
	svc.known = svc.known || now-s.start >= staleness
	settledAge := max(int64(s.cfg.Warmup), staleness)

	var sum summary
	for _, p := range svc.pods {
		v := s.valueOf(p, now, staleness)
		// What was before the start is not known, so no pod is older than it.
		settled := now-max(p.firstSeen, s.start) >= settledAge
		st := v.state(settled)
		sum.add(&v, st, settled)

		e.pods = append(e.pods, podPoint{
			service: svc.key, pod: p.key.name, state: st,
			left: p.shown, hasLeft: p.shownIn == svc && p.shown != st,
		})
		p.shownIn, p.shown = svc, st
	}

	f := sum.figures(svc.known, s.cfg.PartialThreshold, now)
	f.key = svc.key
	f.ended = svc.shown &^ f.present
	svc.shown = svc.shown&^f.ended | f.present
	e.services = append(e.services, f)
}

// podValue is a pod at one moment.
type podValue struct {
	fresh, silent, idle int // devices
	value               [numFields]float64
	has                 [numFields]bool
	oldest              int64 // time of the oldest point in value
}

// valueOf takes the value of p over its devices with a fresh utilization point:
// the mean of a ratio, the sum of memory and power.
func (s *Summary) valueOf(p *pod, now, staleness int64) podValue {
	v := podValue{oldest: now}
	var n [numFields]int
	for _, h := range p.devices {
		if !h.samples[utilization].fresh(now, staleness) {
			v.silent++
			h.runStart = 0 // idle_for starts anew once it is seen again
			continue
		}
		v.fresh++
		if s.isIdle(h, now) {
			v.idle++
		}
		for f, sample := range h.samples {
			if sample.fresh(now, staleness) {
				v.value[f] += sample.value
				n[f]++
				v.oldest = min(v.oldest, sample.time)
			}
		}
	}
	for f := range numFields {
		v.has[f] = n[f] > 0
		if f.isRatio() && n[f] > 1 {
			v.value[f] /= float64(n[f])
		}
	}
	return v
}

// isIdle tells whether h, whose utilization is fresh, has been below
// idle_threshold for idle_for. A point speaks of the time before it, so a device
// is idle from its last busy point on, not from the first idle one.
func (s *Summary) isIdle(h *held, now int64) bool {
	since := max(h.lastBusy, h.runStart, s.start)
	return h.samples[utilization].value < s.cfg.IdleThreshold && now-since >= int64(s.cfg.IdleFor)
}

func (v *podValue) state(settled bool) podState {
	switch {
	case !settled:
		return warming
	case v.fresh == 0:
		return missing
	case v.silent > 0:
		return degraded
	default:
		return reporting
	}
}
