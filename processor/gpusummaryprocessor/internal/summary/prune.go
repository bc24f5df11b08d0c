// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import "time"

// prune takes out of svc the pods that moved to another service and those of which
// nothing is known any more, and reports which of the others are expected.
func (m *memory) prune(svc *service, j *judge, e *Evaluation) {
	svc.sort()
	svc.expected = 0
	kept := svc.pods[:0]
	for _, p := range svc.pods {
		if p.service == svc {
			p.prune(j)
			if p.expected = j.isExpected(p); p.expected {
				svc.expected++
				kept = append(kept, p)
				continue
			}
			if j.forgettable(p) {
				m.forgetPod(p)
			} else {
				for _, h := range p.devices {
					h.stale = j.now // idle_for starts again
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

// prune takes out of p what no longer counts. Announcements do for
// allocation_ttl, ended ones too: they stand against older points that come late.
// Telemetry does for service_ttl; with Seen, where it reports what is held, see holds.
func (p *pod) prune(j *judge) {
	p.sort()
	p.allocated = false
	kept := p.devices[:0]
	for _, h := range p.devices {
		if j.keeps(p, h) {
			kept = append(kept, h)
		} else {
			h.forget()
		}
	}
	clear(p.devices[len(kept):])
	p.devices = kept
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
