// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import "time"

// standing is what is expected of a pod at one moment, whatever its telemetry.
type standing struct {
	running bool
	age     int64 // of its containers, its announcements or its telemetry
	needs   int64 // the age at which it is settled

	// A start knows nothing: awaited, its agent may not have come back yet since;
	// unaged, it may be older than the start, and so than age.
	awaited, unaged bool
	listed          bool // the Kubernetes API has it
}

// unknown reports whether the pod may be settled, but for what the start does not know.
func (st standing) unknown() bool {
	return st.running && (st.awaited && st.age >= st.needs || st.unaged && st.age < st.needs)
}

// standing of an expected pod. What was before the start is not known, so no
// sighting is older than it, but those of Restore.
func (s *Summary) standing(p *pod, now, staleness int64) standing {
	least := max(int64(s.cfg.Warmup), staleness)
	reconnects := now-s.start < int64(s.cfg.ReconnectGrace)
	e := p.inCluster()
	switch {
	case s.cfg.Expected == Seen && s.restored:
		return standing{running: true, age: now - p.firstSeen, needs: least, awaited: p.restored && reconnects}
	case s.cfg.Expected == Seen:
		return standing{running: true, age: now - max(p.firstSeen, s.start), needs: least, unaged: p.firstSeen <= s.back(staleness)}
	case e == nil:
		return standing{
			running: true, age: now - max(p.firstAnnounced, s.start), needs: int64(s.cfg.Warmup),
			awaited: s.awaited(p, reconnects), unaged: p.firstAnnounced <= s.back(staleness),
		}
	}
	age := now - e.Started.UnixNano()
	// It crashes again and again: this run and the one before are short.
	loops := age < int64(s.cfg.Warmup) && e.LastRun >= 0 && e.LastRun < s.cfg.Warmup
	return standing{
		running: e.Running && !e.Deleted && e.Up && !loops, age: age, needs: least,
		awaited: s.awaited(p, reconnects), listed: true,
	}
}

// awaited reports whether the agent of p, with Kubernetes, may not have come back yet.
func (s *Summary) awaited(p *pod, reconnects bool) bool {
	return s.cfg.Expected == Kubernetes && len(p.devices) == 0 && reconnects
}

// back is when all senders are back after the start.
func (s *Summary) back(staleness int64) int64 {
	return s.start + max(int64(s.cfg.ReconnectGrace), staleness)
}

// knowledge is how much the start lets be known of a service.
type knowledge struct {
	open bool // the start gate
	back bool // all senders are
	all  bool // its pods are known, those that fell silent before the start too
}

// knowledge of a service: the Kubernetes API has all pods, gpu.allocation those of the
// agents that are back, and telemetry alone never has those that are silent: until
// they would be forgotten in any case.
func (s *Summary) knowledge(svc *service, sum *totals, now, staleness int64) knowledge {
	k := knowledge{open: svc.known, back: sum.listed || s.restored || now >= s.back(staleness)}
	k.all = k.back && (s.cfg.Expected != Seen || s.restored || now-s.start >= int64(s.cfg.ServiceTTL))
	return k
}

// isExpected reports whether p should report, after pruneDevices.
func (s *Summary) isExpected(p *pod, now int64) bool {
	if s.cfg.Expected == Seen {
		return len(p.devices) > 0 && p.firstSeen != 0 && (p.allocated || now-p.lastSeen <= int64(s.cfg.ServiceTTL))
	}
	announced := false
	for _, h := range p.devices {
		if held, _ := s.announced(p, h, now); held {
			announced = true
			break
		}
	}
	if !announced {
		p.firstAnnounced = 0 // the next one is announced again
	}
	return announced || p.inCluster() != nil
}

// announced reports whether h is announced for p, and by its own id.
func (s *Summary) announced(p *pod, h *held, now int64) (held, resolved bool) {
	for _, a := range h.announced {
		if a.held && now-a.time <= int64(s.cfg.AllocationTTL) && (p.entry != nil || a.time > p.removed) {
			held = true
			resolved = resolved || a.resolved
		}
	}
	return held, resolved
}

// prune takes out of svc the pods that moved to another service and those of which
// nothing is known any more, and reports which of the others are expected.
func (s *Summary) prune(svc *service, now int64, e *Evaluation) {
	svc.sort()
	svc.expected = 0
	kept := svc.pods[:0]
	for _, p := range svc.pods {
		if p.service == svc {
			s.pruneDevices(p, now)
			if p.expected = s.isExpected(p, now); p.expected {
				svc.expected++
				kept = append(kept, p)
				continue
			}
			if s.forgettable(p, now) {
				s.forgetPod(p)
			} else {
				for _, h := range p.devices {
					h.stale = now // idle_for starts again
				}
				kept = append(kept, p)
			}
		}
		if p.shownIn == svc {
			e.gone = append(e.gone, podPoint{service: svc.key, pod: p.key.name, state: p.shown})
			p.shownIn = nil
		}
	}
	clear(svc.pods[len(kept):])
	svc.pods = kept
}

// forgettable reports whether nothing is known any more of p, which is not expected.
// What Kubernetes has taken back is known for as long as an announcement of before
// may come: it must not make the pod expected again.
func (s *Summary) forgettable(p *pod, now int64) bool {
	if s.cfg.Expected == Seen {
		return true
	}
	return p.entry == nil && len(p.devices) == 0 && now-p.removed > int64(s.cfg.AllocationTTL)
}

// pruneDevices takes out of p what no longer counts. Announcements do for
// allocation_ttl, ended ones too: they stand against older points that come late.
// Telemetry does for service_ttl; with Seen, where it reports what is held, see holds.
func (s *Summary) pruneDevices(p *pod, now int64) {
	p.sort()
	p.allocated = false
	kept := p.devices[:0]
	for _, h := range p.devices {
		if s.keeps(p, h, now) {
			kept = append(kept, h)
		} else {
			s.forgetHeld(h)
		}
	}
	clear(p.devices[len(kept):])
	p.devices = kept
}

func (s *Summary) keeps(p *pod, h *held, now int64) bool {
	if s.cfg.Expected == Seen {
		return s.holds(p, h, now)
	}
	h.pruneAnnouncements(now, s.cfg.AllocationTTL)
	return len(h.announced) > 0 || h.lastSeen > 0 && now-h.lastSeen <= int64(s.cfg.ServiceTTL)
}

func (h *held) pruneAnnouncements(now int64, ttl time.Duration) {
	kept := h.announced[:0]
	for _, a := range h.announced {
		if now-a.time <= int64(ttl) {
			kept = append(kept, a)
		}
	}
	clear(h.announced[len(kept):])
	h.announced = kept
}

func (s *Summary) forgetPod(p *pod) {
	for _, h := range p.devices {
		s.forgetHeld(h)
	}
	p.devices = nil
	delete(s.pods, p.key)
}
