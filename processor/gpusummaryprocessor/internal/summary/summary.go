// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package summary is the service summary as a state machine without clock,
// goroutine or I/O: input comes with the time of its arrival, and an
// evaluation is a function of that input and of its own time.
//
//	s := summary.New(cfg, start)
//	s.SetPods(pods, now)   // Kubernetes alone: the pods of the cluster
//	s.Observe(md, now)     // telemetry and gpu.allocation
//	s.Evaluate(now).Metrics(version)
//
// Times that reach it must not go back; Shift follows a clock that is set. It is
// not safe for concurrent use.
//
// What the specification leaves open is decided so:
//
//   - Times before start, of first sightings and announcements, count as start, but
//     after Restore.
//   - Until the start gate is open no pod is settled: pods that would be are
//     warming. Absent are partial, missing_ratio, the averages, sums, min and max,
//     data.age, and also devices and idle_devices. The gate of a service opens at
//     the first evaluation at which the source has been in sync for the service's
//     staleness (Seen and Allocation are in sync from start; Kubernetes from the
//     first SetPods), and stays open while the service is in memory.
//   - Senders that lost their gateway come back one after the other, and not all
//     before the gate opens. So a pod of Kubernetes of which neither telemetry nor
//     gpu.allocation has reported since start is warming, and not missing, until
//     ReconnectGrace after start.
//   - So partial, missing_ratio, devices{missing} and idle_devices are absent while
//     such a pod is there, or one that is warming by its announcements or sightings alone
//     and showed first before ReconnectGrace, or one staleness, after start. And a partial
//     of 0 is, until all pods can be known; see knowledge and figures.
//   - idle_devices is absent, too, while a device did nothing since the start, or since
//     before all senders were back, for less than idle_for.
//   - An evaluation is missing_ratio-less while no pod is settled.
//   - A service that has no expected pod any more is reported, with zeros, for
//     ServiceTTL from the first evaluation without one, and then ended. A service
//     that never had one is not reported.
//   - A pod seen that is not expected belongs to nothing. It goes
//     neither into counts nor into the interval.
//   - The interval pools the gaps of all devices of the service's expected pods, each
//     of its first field;
//     three gaps are three in all. Of an even number the median is the mean of
//     the two in the middle.
//   - A device of which utilization was not current at an evaluation, or its pod not expected,
//     starts idle_for again at that evaluation. idle_for is counted from the latest of: start, that evaluation,
//     the first utilization point, the newest one that is not below the threshold.
//   - devices{missing} and idle_devices are those of settled pods; devices{reporting}
//     are those of all expected pods.
//   - A pod that is being deleted is not_running. So is one with an accelerator
//     container that is not running, and one in a crash loop: its newest start is
//     younger than Warmup, and the run before it was shorter than Warmup.
//   - pods.pending counts the not_running pods without node. Only Kubernetes
//     knows it: it is absent with the other two sources.
//   - A pod's devices, with Allocation and Kubernetes: those that are announced
//     for it; where the Kubernetes pod asks for more, as many more. A device that
//     is announced by its own id (gpu.allocation.resolved) reports when the pod's
//     telemetry of that hw.id is fresh, for a replica `<id>::<n>` also when that
//     of `<id>` is: then its ratios are the device's, and it has no memory and
//     power. The others are compared by count: of the pod's further devices
//     that are fresh, the newest (then the first by hw.id) report, at most
//     as many as there are. Further ones are left out.
//   - With Seen a pod holds the devices it was seen with, and once it was seen, those
//     that gpu.allocation reports it has, until something newer reports otherwise: see holds.
//     gpu.allocation makes no pod known, and none older; what is not resolved reports
//     nothing.
//   - A device is fresh while one of its fields has a current point, or gpu.device.suspended
//     has. A point at the time of a gpu.exporter.frozen that is 1, of the same node where
//     both name one, is not current; the node of a device is that of its newest point. A pod
//     that has a device with such points alone and no fresh one is degraded, and not missing.
//   - gpu.device.suspended of 1 is a utilization of 0 as well: a device that sleeps does nothing.
//   - Resume is a start that knows the pods of before: each is warming, and not missing, until
//     something reports it, or until ReconnectGrace.
//   - With Kubernetes a pod that was in a snapshot and is no longer is not
//     expected by announcements up to then. The state of a pod in the snapshot is
//     reported by the snapshot, of others by their announcements.
//   - A pod with another uid than the pod of its name before it starts again, and so
//     does the naming of its service. Announcements that bear another uid than
//     the new one end with it; those without uid stay.
//   - gpu.allocation of value 0 for a pod, NaN and NoRecordedValue end that
//     announcement. It is one for each pod, container and hw.id; the device is
//     announced while one of them is.
package summary

import "time"

// Source is where the pods that should report are known from.
type Source uint8

const (
	// Seen expects the pods with telemetry within ServiceTTL, or of which
	// gpu.allocation reported within AllocationTTL that they hold a device, until something
	// reports that their devices have another owner, or none.
	Seen Source = iota
	// Allocation expects the pods that gpu.allocation announced within AllocationTTL.
	Allocation
	// Kubernetes expects those and the pods of SetPods.
	Kubernetes
)

// Config is how to sum up. All values but Staleness must be set.
type Config struct {
	Expected         Source
	Staleness        time.Duration // 0: max(2.5 × interval, 45s), for each service
	InitialInterval  time.Duration // until three gaps were seen
	Warmup           time.Duration
	ReconnectGrace   time.Duration // after start, see the package's list; 0: none
	AllocationTTL    time.Duration
	ServiceTTL       time.Duration
	PartialThreshold float64 // partial above it
	IdleThreshold    float64 // idle below it
	IdleFor          time.Duration
	MaxPods          int // pods in memory, expected or not
	MaxServices      int
}

// StalenessAt is the age up to which a point is fresh when points come every
// interval.
func (c *Config) StalenessAt(interval time.Duration) time.Duration {
	if c.Staleness > 0 {
		return c.Staleness
	}
	return max(interval*5/2, 45*time.Second)
}

// Summary is all that is known between two evaluations. Times are nanoseconds since
// the Unix epoch. It is not safe for concurrent use.
//
// What Observe does to it is commutative: newest times are maxima, oldest times
// are minima, and where two points of a series bear the same time the greater
// value stays, and any value before an end. So the order in which batches arrive, and how points are grouped
// into them, changes no evaluation. The exceptions are about the next pod of the
// same name: the end of a series that overtakes the pod's first value is dropped,
// because it cannot be distinguished from an end of the earlier pod; and what has no uid
// among points that have one is taken for the pod's that is known when it arrives.
type Summary struct {
	memory
	start    int64
	synced   int64   // since when the source of pods is in sync; 0: not yet
	restored bool    // the pods that were seen before the start are known, see Restore
	frozen   frozen  // of exporters
	nodes    nodeSet // with Kubernetes: those that something came from since start
	scratch  scratch
}

// New returns a Summary that knows nothing.
func New(cfg Config, start time.Time) *Summary {
	s := &Summary{
		memory: memory{
			cfg:      cfg,
			pods:     map[podKey]*pod{},
			services: map[serviceKey]*service{},
			devices:  owners{},
		},
		start:  start.UnixNano(),
		frozen: frozen{},
		nodes:  nodeSet{},
	}
	if cfg.Expected != Kubernetes {
		s.synced = s.start
	}
	return s
}

// Tracked returns how many pods and services are in memory.
func (s *Summary) Tracked() (pods, services int) { return len(s.pods), len(s.services) }

// Expected returns how many pods the last evaluation expected to report.
func (s *Summary) Expected() int {
	n := 0
	for _, svc := range s.services {
		n += svc.expected
	}
	return n
}

// SetPods reports which pods the Kubernetes API has now, with the source Kubernetes;
// the first call reports that it is in sync. The Tally counts pods that a limit
// refuses, as of each call; calling again with the same pods refuses and changes
// nothing else. Its cost is linear in pods.
func (s *Summary) SetPods(pods *Pods, now time.Time) Tally {
	if s.synced == 0 {
		s.synced = now.UnixNano()
	}
	return s.setPods(pods, now.UnixNano())
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
		if is.Namespace == "" && !isJob(is.Cluster) || is.Name == "" || is.Service == "" || is.First <= 0 || is.First > s.start {
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

// Resume takes that what calls this Summary did not run until now: nothing could be seen, so what
// was known before is what Restore knows after a start. Series that are absent then end.
func (s *Summary) Resume(now time.Time) {
	t := now.UnixNano()
	// Telemetry alone knows the pods that were silent before the start once they would be forgotten.
	s.restored = s.cfg.Expected == Seen && (s.restored || t-s.start >= int64(s.cfg.ServiceTTL))
	s.start, s.nodes = t, nodeSet{}
	if s.synced != 0 {
		s.synced = t
	}
	for _, svc := range s.services {
		svc.known, svc.wasPartial, svc.wasIdle = false, false, false
	}
	for _, p := range s.pods {
		if p.restored = p.firstSeen != 0 || len(p.devices) > 0; p.firstSeen != 0 {
			p.lastSeen = t
		}
	}
}

// Shift moves every time in memory by step: the wall clock was set, and what is
// kept has to keep its age. Times of SetPods are the cluster's own and stay.
func (s *Summary) Shift(step time.Duration) {
	move(int64(step), &s.start, &s.synced)
	for _, svc := range s.services {
		move(int64(step), &svc.emptySince)
	}
	for _, d := range s.devices {
		d.shift(int64(step))
	}
	for _, p := range s.pods {
		p.shift(int64(step))
	}
	s.frozen = s.frozen.shifted(int64(step))
}
