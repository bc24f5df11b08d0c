// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package holders keeps who has which devices, from gpu.allocation: pods by their names, jobs of Slurm
// by their ids. It has no clock and no I/O.
package holders

import (
	"maps"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// Holder is a pod, or a job of Slurm.
type Holder struct {
	Namespace, Pod string
	Job            string // slurm.job.id
}

// Put writes the attributes of h.
func (h Holder) Put(attrs pcommon.Map) {
	for key, v := range map[string]string{names.K8sNamespaceName: h.Namespace, names.K8sPodName: h.Pod, names.SlurmJobID: h.Job} {
		if v != "" {
			attrs.PutStr(key, v)
		}
	}
}

// State is what is known. It is not safe for concurrent use.
type State struct {
	ttl     time.Duration
	max     int
	devices map[held]device
	jobs    map[string]owner.Job
}

// held is a device that a holder has; others may have parts of it too.
type held struct {
	id     string // hw.id
	holder Holder
}

type device struct {
	whole bool
	seen  time.Time
}

// New returns a State that keeps at most max devices, each until nothing arrived of it for ttl.
func New(maxDevices int, ttl time.Duration) *State {
	return &State{ttl: ttl, max: maxDevices, devices: map[held]device{}, jobs: map[string]owner.Job{}}
}

// Observe takes in what md has of gpu.allocation.
func (s *State) Observe(md pmetric.Metrics, now time.Time) {
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != names.GPUAllocation.Name {
					continue
				}
				dps, _ := points.Numbers(m)
				for _, dp := range dps.All() {
					s.point(attrs, dp, now)
				}
			}
		}
	}
}

func (s *State) point(attrs pcommon.Map, dp pmetric.NumberDataPoint, now time.Time) {
	id := points.Str(dp.Attributes(), names.HwID)
	if id == "" {
		id = points.Str(attrs, names.HwID)
	}
	is := held{id, Holder{points.Str(attrs, names.K8sNamespaceName), points.Str(attrs, names.K8sPodName), points.Str(attrs, names.SlurmJobID)}}
	if is.holder.Pod != "" {
		is.holder.Job = "" // a job within a pod is the pod's
	}
	share := points.Value(dp) // NaN where the series ends
	resolved, known := dp.Attributes().Get(names.GPUAllocationResolved)
	whole := share >= 1 && !(known && !resolved.Bool())
	if whole || share == 0 && is.holder == (Holder{}) { // what others had of it is over
		maps.DeleteFunc(s.devices, func(h held, _ device) bool { return h.id == id })
	}
	if id == "" || is.holder == (Holder{}) || !(share > 0) {
		delete(s.devices, is)
		return
	}
	if _, has := s.devices[is]; !has && len(s.devices) >= s.max {
		return
	}
	s.devices[is] = device{whole, now}
	if is.holder.Job != "" {
		s.jobs[is.holder.Job] = owner.JobOf(attrs)
	}
}

// Device is the device of a holder that has exactly one, whole; else "". Ranks are matched to no
// devices by their order.
func (s *State) Device(of Holder, now time.Time) (only string) {
	if of == (Holder{}) {
		return ""
	}
	for h, d := range s.devices {
		if h.holder != of || now.Sub(d.seen) > s.ttl {
			continue
		}
		if only != "" || !d.whole {
			return ""
		}
		only = h.id
	}
	return only
}

// Job is what is known of a job of this node; ok is false where it has no device.
func (s *State) Job(id string) (job owner.Job, ok bool) {
	job, ok = s.jobs[id]
	return job, ok
}

// Prune forgets devices of which nothing arrives any more, and jobs without any.
func (s *State) Prune(now time.Time) {
	has := map[string]bool{}
	for h, d := range s.devices {
		if now.Sub(d.seen) > s.ttl {
			delete(s.devices, h)
			continue
		}
		has[h.holder.Job] = true
	}
	for id := range s.jobs {
		if !has[id] {
			delete(s.jobs, id)
		}
	}
}
