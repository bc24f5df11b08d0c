// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import "time"

// podState is the state of a pod.
type podState uint8

const (
	reporting  podState = iota // every device has a current point
	degraded                   // some have
	missing                    // none has
	warming                    // too young to be missing
	notRunning                 // the Kubernetes API reports it
	numPodStates
)

// Evaluation is what all services and pods are at one moment.
type Evaluation struct {
	at       time.Time
	services []serviceFigures
	pods     []podPoint // service by service
	gone     []podPoint // of which only the end of the series is reported

	// Flapping is the service of which staleness is the furthest from fitting.
	Flapping Flapping
	// SilentNodes are nodes with missing pods of which nothing came since the start: no
	// agent runs there. At most maxSilentNodes.
	SilentNodes []string
}

// podPoint is what is to be reported about a pod.
type podPoint struct {
	service serviceKey
	pod     string
	state   podState
	left    [numPodStates]bool // the states it has left, to be reported as 0
}

// Evaluate returns the figures of all services at now. Its cost is linear in pods
// and devices.
func (s *Summary) Evaluate(now time.Time) Evaluation {
	t := now.UnixNano()
	order := s.inOrder()
	e := Evaluation{at: now, services: make([]serviceFigures, 0, len(order)), pods: make([]podPoint, 0, len(s.pods))}
	if s.cfg.Expected == Seen {
		s.attach(t)
	}
	j := judge{cfg: &s.cfg, start: s.start, restored: s.restored, frozen: s.frozen, now: t, scratch: &s.scratch}
	// All services first, so that a pod is gone from the service that it left
	// before the one that it joined reports it.
	for _, svc := range order {
		s.prune(svc, &j, &e)
	}
	for _, svc := range order {
		if svc.expected > 0 {
			svc.emptySince = 0
		} else if svc.emptySince == 0 {
			svc.emptySince = t
		}
		switch {
		case svc.expected > 0, svc.shown != 0 && t-svc.emptySince < int64(s.cfg.ServiceTTL):
			s.summarize(svc, &j, &e)
			continue
		case svc.shown != 0:
			e.services = append(e.services, serviceFigures{key: svc.key, ended: svc.shown})
			svc.shown = 0
		}
		if len(svc.pods) == 0 {
			delete(s.services, svc.key)
			s.order = nil
		}
	}
	s.devices.prune(t, int64(max(s.cfg.ServiceTTL, s.cfg.AllocationTTL)))
	// A scrape is kept as long as its points can count, whatever their interval.
	s.frozen.prune(t, int64(max(s.cfg.ServiceTTL, s.cfg.StalenessAt(Outage))))
	return e
}

// summarize appends the figures of svc and the states of its pods.
func (s *Summary) summarize(svc *service, j *judge, e *Evaluation) {
	j.staleness = j.stalenessOf(svc, e)
	svc.known = svc.known || s.synced != 0 && j.now-s.synced >= j.staleness

	var sum totals
	for _, p := range svc.pods {
		if !p.expected {
			continue
		}
		v := j.valueOf(p)
		stands := j.standing(p)
		st := v.state(stands, svc.known)
		if entry := p.inCluster(); st == notRunning && entry != nil && entry.Node == "" {
			sum.pending++
		}
		sum.add(&v, st, stands)
		if st == missing {
			e.note(p, s.nodes)
		}

		// Which state it was in before a start is not known: it is in none of the others.
		point := podPoint{service: svc.key, pod: p.key.name, state: st}
		for other := range numPodStates {
			point.left[other] = other != st && (p.shownIn != svc || p.shown == other)
		}
		e.pods = append(e.pods, point)
		p.shownIn, p.shown = svc, st
	}

	f := sum.figures(svc, j.knowledge(svc, &sum), s.cfg.PartialThreshold, j.now)
	if s.cfg.Expected == Kubernetes && s.synced != 0 {
		f.set(serPodsPending, float64(sum.pending))
	}
	f.key, f.pods = svc.key, svc.expected
	f.ended = svc.shown &^ f.present
	svc.shown = svc.shown&^f.ended | f.present
	e.services = append(e.services, f)
}

// state of a pod. Until the start gate is open, for its service and for the pod
// itself, it is not known to be missing.
func (v *podValue) state(st standing, known bool) podState {
	switch {
	case !st.running:
		return notRunning
	case !known || st.awaited || st.age < st.needs:
		return warming
	case v.fresh == 0 && !v.frozen:
		return missing
	case v.silent > 0:
		return degraded
	default:
		return reporting
	}
}
