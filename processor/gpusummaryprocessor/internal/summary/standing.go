// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import "time"

// judge is what pods and devices are judged by at one moment.
type judge struct {
	cfg       *Config
	start     int64
	restored  bool // see Summary
	frozen    frozen
	now       int64
	staleness int64 // of the service that is judged
	*scratch
}

// scratch is space that is used again.
type scratch struct {
	gaps   []int64 // of interval
	others []*held // of takeHeld
}

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
func (j *judge) standing(p *pod) standing {
	least := max(int64(j.cfg.Warmup), j.staleness)
	reconnects := j.now-j.start < int64(j.cfg.ReconnectGrace)
	e := p.inCluster()
	switch {
	case j.cfg.Expected == Seen && j.restored:
		return standing{running: true, age: j.now - p.firstSeen, needs: least, awaited: j.awaited(p, reconnects)}
	case j.cfg.Expected == Seen:
		return standing{running: true, age: j.now - max(p.firstSeen, j.start), needs: least, unaged: p.firstSeen <= j.back()}
	case e == nil:
		return standing{
			running: true, age: j.now - max(p.firstAnnounced, j.start), needs: int64(j.cfg.Warmup),
			awaited: j.awaited(p, reconnects), unaged: p.firstAnnounced <= j.back(),
		}
	}
	age := j.now - e.Started.UnixNano()
	// It crashes again and again: this run and the one before are short.
	loops := age < int64(j.cfg.Warmup) && e.LastRun >= 0 && e.LastRun < j.cfg.Warmup
	return standing{
		running: e.Running && !e.Deleted && e.Up && !loops, age: age, needs: least,
		awaited: j.awaited(p, reconnects), listed: true,
	}
}

// awaited reports whether the agent of p may not have come back yet.
func (j *judge) awaited(p *pod, reconnects bool) bool {
	return reconnects && (p.restored || j.cfg.Expected == Kubernetes && len(p.devices) == 0)
}

// back is when all senders are back after the start.
func (j *judge) back() int64 {
	return j.start + max(int64(j.cfg.ReconnectGrace), j.staleness)
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
func (j *judge) knowledge(svc *service, sum *totals) knowledge {
	k := knowledge{open: svc.known, back: sum.listed || j.restored || j.now >= j.back()}
	k.all = k.back && (j.cfg.Expected != Seen || j.restored || j.now-j.start >= int64(j.cfg.ServiceTTL))
	return k
}

// isExpected reports whether p should report, after prune.
func (j *judge) isExpected(p *pod) bool {
	if j.cfg.Expected == Seen {
		return len(p.devices) > 0 && p.firstSeen != 0 && (p.allocated || j.now-p.lastSeen <= int64(j.cfg.ServiceTTL))
	}
	announced := false
	for _, h := range p.devices {
		if held, _ := j.announced(p, h); held {
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
func (j *judge) announced(p *pod, h *held) (held, resolved bool) {
	for _, a := range h.announced {
		if a.held && j.now-a.time <= int64(j.cfg.AllocationTTL) && (p.entry != nil || a.time > p.removed) {
			held = true
			resolved = resolved || a.resolved
		}
	}
	return held, resolved
}

// forgettable reports whether nothing is known any more of p, which is not expected.
// What Kubernetes has taken back is known for as long as an announcement of before
// may come: it must not make the pod expected again.
func (j *judge) forgettable(p *pod) bool {
	if j.cfg.Expected == Seen {
		return true
	}
	return p.entry == nil && len(p.devices) == 0 && j.now-p.removed > int64(j.cfg.AllocationTTL)
}

func (j *judge) keeps(p *pod, h *held) bool {
	if j.cfg.Expected == Seen {
		return j.holds(p, h)
	}
	h.pruneAnnouncements(j.now, j.cfg.AllocationTTL)
	return len(h.announced) > 0 || h.lastSeen > 0 && j.now-h.lastSeen <= int64(j.cfg.ServiceTTL)
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
// A device that fell silent is still held, unless its series were ended service_ttl ago.
func (j *judge) holds(p *pod, h *held) bool {
	d := h.device
	held, left := d.allocatedTo(p, j.now, j.cfg.AllocationTTL)
	if held == 0 && left > h.lastSeen {
		return false
	}
	last := max(h.lastSeen, held)
	spoke := d.spoke()
	other := max(d.newest, spoke)
	if spoke == 0 || j.now-spoke > int64(j.cfg.AllocationTTL) {
		other = max(other, d.unowned)
	}
	released := held == 0 && h.ended() && j.now-h.lastSeen > int64(j.cfg.ServiceTTL)
	if last == 0 || last < other || released {
		return false
	}
	p.allocated = p.allocated || held > 0
	return true
}

// stalenessOf is the age up to which points of svc are fresh. One that is configured is
// noted where it lets points go stale before the next ones are due.
func (j *judge) stalenessOf(svc *service, e *Evaluation) int64 {
	interval, learned := j.interval(svc)
	if j.cfg.Staleness > 0 && learned && j.cfg.Staleness < 2*interval && interval > e.Flapping.Interval {
		e.Flapping = Flapping{svc.key.namespace, svc.key.name, interval}
	}
	return int64(j.cfg.StalenessAt(interval))
}

// interval between the points of svc, and whether it was learned from them.
func (j *judge) interval(svc *service) (interval time.Duration, learned bool) {
	j.gaps = j.gaps[:0]
	for _, p := range svc.pods {
		if !p.expected {
			continue
		}
		for _, h := range p.devices {
			j.gaps = h.times.appendGaps(j.gaps)
		}
	}
	if len(j.gaps) < leastGaps {
		return j.cfg.InitialInterval, false
	}
	return time.Duration(median(j.gaps)), true
}
