// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package firstuse measures how soon pods use the devices that they hold.
//
// A pod counts once: from the first start of its accelerator containers to its first
// point of utilization that reaches the threshold, or as never used where it ended before.
// Pods that started before the measurement, and those whose first start is not known
// because a container has run before, are left out: whether they were used is not known.
// So a restart of the gateway or of a container repeats none.
package firstuse

import (
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/places"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

const (
	// grace is for how long the points of a pod that ended may still come.
	grace = time.Minute
	// remember is for how long a pod is known that the Kubernetes API does not have: it may
	// have been left out of a snapshot.
	remember = 10 * time.Minute
	// futureSkew is how far another machine's clock may be ahead.
	futureSkew = 30 * time.Second
	// maxPlaces bounds the pairs of namespace and queue. Pods beyond them have neither.
	maxPlaces = 2000
)

// Tracker has the pods that have devices. It is not safe for concurrent use.
type Tracker struct {
	cluster   string
	threshold float64
	start     time.Time

	pods  map[key]*pod
	round uint64
	waits int // pods in the stage waiting
	room  *places.Set
	used  map[places.Place]*uses
}

// uses are of the pods of one place.
type uses struct {
	after *places.Histogram
	never int64
}

type key struct{ namespace, name string }

// pod is one that has devices.
type pod struct {
	uid     string
	stage   stage
	started time.Time // from waiting on
	uses    *uses     // from pending on
	ended   time.Time // zero: it runs
	round   uint64
}

// stage is what a pod is known to have done.
type stage uint8

const (
	unknown stage = iota // whether it ran is not known
	pending              // it never ran
	waiting              // it runs, and was not used yet
	done                 // it counts, or is left out
)

// New returns a Tracker of pods of a cluster that start from now on. threshold is a
// utilization, 0..1.
func New(cluster string, threshold float64, now time.Time) *Tracker {
	return &Tracker{
		cluster: cluster, threshold: threshold, start: now,
		pods: map[key]*pod{}, room: places.New(maxPlaces), used: map[places.Place]*uses{},
	}
}

// Shift moves the times that are this machine's: its clock was set.
func (t *Tracker) Shift(step time.Duration) {
	t.start = t.start.Add(step)
	for _, p := range t.pods {
		if !p.ended.IsZero() {
			p.ended = p.ended.Add(step)
		}
	}
}

// SetPods takes what the Kubernetes API has now. Pods have their Scheduling.
func (t *Tracker) SetPods(snapshot *gpupods.Snapshot, now time.Time) {
	t.round++
	for _, is := range snapshot.Pods {
		t.set(is, now)
	}
	for _, p := range t.pods {
		if p.round != t.round && p.ended.IsZero() {
			p.ended = now
		}
	}
}

func (t *Tracker) set(is *gpupods.Pod, now time.Time) {
	k := key{is.Namespace, is.Name}
	p := t.pods[k]
	if p != nil && p.uid != is.UID {
		t.settle(p)
		p = nil
	}
	over := is.Phase == corev1.PodSucceeded || is.Phase == corev1.PodFailed
	if p == nil {
		if over || is.Devices == 0 {
			return
		}
		p = &pod{uid: is.UID}
		t.pods[k] = p
	}
	p.round = t.round
	switch {
	case !over:
		p.ended = time.Time{}
		if is.Devices > 0 {
			t.follow(p, is, now)
		}
	case p.ended.IsZero():
		p.ended = now
	}
}

// follow takes a pod from stage to stage until it is used.
func (t *Tracker) follow(p *pod, is *gpupods.Pod, now time.Time) {
	switch {
	case p.stage >= waiting:
		return
	case !is.Up:
		if is.Phase != corev1.PodPending || p.stage == pending {
			return
		}
		p.stage = pending
	case is.Started.Before(t.start), p.stage == unknown && is.LastRun >= 0:
		p.stage = done
		return
	default:
		p.stage, p.started = waiting, is.Started
		t.waits++
	}
	if p.uses == nil {
		p.uses = t.at(is, now)
	}
}

// settle ends the wait for a pod's first use, which never came.
func (t *Tracker) settle(p *pod) {
	if p.stage == waiting {
		t.waits--
		p.uses.never++
	}
	p.stage = done
}

// at is where a pod counts. Its series are there before the pod is used, with 0: the
// increase of a counter that begins with 1 is none.
func (t *Tracker) at(is *gpupods.Pod, now time.Time) *uses {
	of := places.Place{Namespace: is.Namespace}
	if is.Scheduling != nil {
		of.Queue = is.Scheduling.Queue
	}
	of = t.room.Admit(of, now)
	u := t.used[of]
	if u == nil {
		u = &uses{after: places.NewHistogram(t.start)}
		t.used[of] = u
	}
	return u
}

// Refused returns how many pods were counted without namespace and queue since the last call:
// there are too many pairs.
func (t *Tracker) Refused() int { return t.room.Refused() }

// Observe looks for the first use of pods, and leaves md as it is. It costs nothing while
// no pod is waited for.
func (t *Tracker) Observe(md pmetric.Metrics, now time.Time) {
	if t.waits == 0 {
		return
	}
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		p := t.pods[key{points.Str(attrs, names.K8sNamespaceName), points.Str(attrs, names.K8sPodName)}]
		if p == nil || p.stage != waiting || points.Str(attrs, names.K8sClusterName) != t.cluster {
			continue
		}
		if uid := points.Str(attrs, names.K8sPodUID); uid != "" && p.uid != "" && uid != p.uid {
			continue
		}
		if at, ok := t.firstUse(rm, p.started, now); ok {
			p.stage = done
			t.waits--
			p.uses.after.Record(at.Sub(p.started))
		}
	}
}

// firstUse is the oldest point that shows use since started.
func (t *Tracker) firstUse(rm pmetric.ResourceMetrics, started, now time.Time) (first time.Time, ok bool) {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if m.Name() != names.GPUUtilization.Name || m.Unit() != names.GPUUtilization.Unit {
				continue
			}
			dps, is := points.Numbers(m)
			if !is {
				continue
			}
			for _, dp := range dps.All() {
				at, v := dp.Timestamp().AsTime(), points.Value(dp)
				switch {
				case points.Str(dp.Attributes(), names.HwGPUTask) != "general", math.IsNaN(v), v < t.threshold:
				case at.Before(started), at.After(now.Add(futureSkew)):
				case !ok || at.Before(first):
					first, ok = at, true
				}
			}
		}
	}
	return first, ok
}

// Write appends what was measured up to now to md.
func (t *Tracker) Write(md pmetric.Metrics, scope func(pcommon.InstrumentationScope), now time.Time) {
	for k, p := range t.pods {
		if p.ended.IsZero() {
			continue
		}
		if ago := now.Sub(p.ended); ago >= grace {
			t.settle(p)
			if ago >= remember {
				delete(t.pods, k)
			}
		}
	}
	if len(t.used) == 0 {
		return
	}
	rm := md.ResourceMetrics().AppendEmpty()
	if t.cluster != "" {
		rm.Resource().Attributes().PutStr(names.K8sClusterName, t.cluster)
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	scope(sm.Scope())
	ms := sm.Metrics()
	after, never := names.SchedulingFirstUse.InitHistogram(ms.AppendEmpty()), names.SchedulingNeverUsed.Init(ms.AppendEmpty())
	for _, of := range slices.SortedFunc(maps.Keys(t.used), places.Place.Compare) {
		u := t.used[of]
		first := after.AppendEmpty()
		u.after.Put(first, of, now)
		p := never.AppendEmpty()
		of.Put(p.Attributes())
		if t.cluster != "" {
			first.Attributes().PutStr(names.K8sClusterName, t.cluster)
			p.Attributes().PutStr(names.K8sClusterName, t.cluster)
		}
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(t.start))
		p.SetTimestamp(pcommon.NewTimestampFromTime(now))
		p.SetIntValue(u.never)
	}
}
