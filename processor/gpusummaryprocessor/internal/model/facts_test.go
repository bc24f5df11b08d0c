// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package model is a second, slow implementation of the specification of the
// service summary, written from its text, and the test that compares package
// summary with it over random worlds. It keeps every fact it was ever given and answers
// by filtering them; one sentence of the specification is one function.
//
// All of it is test code. Where the text leaves something open it follows the list
// in the documentation of package summary, and writes "Reading" where it had to choose
// itself.
package model

import (
	"math"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// at is a moment: the time since the processor's start on a clock that is never
// set. A wall clock's time is translated when it arrives, so that all that is known
// keeps its age when the wall clock is set.
type at = time.Duration

const never = at(math.MinInt64)

type podKey struct{ cluster, namespace, name string }

type serviceKey struct{ cluster, namespace, name string }

// field is an input metric of the summary.
type field int

const (
	utilization field = iota
	smActive
	dramActive
	tensorActive
	fp16Active
	fp32Active
	memoryUsage
	memoryLimit
	power
	numFields

	// suspended is in no figure, and stillness no field of a device: gpu.exporter.frozen of
	// an exporter.
	suspended  = numFields
	numSamples = numFields + 1
	stillness  = numSamples
)

// point is a data point of telemetry; pod has no name where the device has no owner.
type point struct {
	pod          podKey
	uid, service string
	node         string
	device       string
	field        field
	value        float64
	end          bool // NoRecordedValue or NaN
	stamp        at   // its own timestamp
}

// announcement is a data point of gpu.allocation; pod has no name where the device is
// free.
type announcement struct {
	pod               podKey
	uid, service      string
	container, device string
	resolved          bool
	end               bool // NoRecordedValue, NaN, or the value 0
	stamp             at
}

// podFact is a pod of the Kubernetes API that asks for an accelerator.
type podFact struct {
	pod                podKey
	uid, service, node string
	running, deleted   bool
	up                 bool // all its accelerator containers run
	started            at   // the newest start of one of them, by the cluster's clock
	lastRun            at   // how long that one ran before, -1 if it never did
	devices            int
}

// snapshot is all pods of the cluster that ask for an accelerator.
type snapshot struct {
	arrived at
	pods    []podFact
}

// series is the history of one field of one device of a pod, as seen.
type series struct {
	uid    string
	device string
	field  field
	points []point
}

// pod is what was seen of one name.
type pod struct {
	key           podKey
	named         []naming
	unfresh       map[string]at // by device: the last evaluation at which it was not fresh
	unfreshUID    string        // of the pod that unfresh is about
	series        []*series
	announcements []announcement
	unannounced   int // announcements that were seen up to the last evaluation without one that stood
}

// naming is a point that has a value, or an announcement, as far as it identifies its
// pod.
type naming struct {
	uid, service string
	stamp        at
}

// model keeps all that was seen, and of earlier evaluations what the text refers
// to: "0 once for the state it left", "until one staleness period has passed",
// "a service without any pod for service_ttl is forgotten", "final stale markers".
type model struct {
	cfg       summary.Config
	pods      map[podKey]*pod
	snapshots []snapshot
	words     map[deviceKey][]word
	seen      map[seenKey]at // the newest value of the device
	still     []point        // of gpu.exporter.frozen

	open       map[serviceKey]bool // the start gate
	partial    map[serviceKey]bool // it was, since the start
	hasIdled   map[serviceKey]bool
	emptySince map[serviceKey]at // services that are reported
	states     map[podKey]stateReported
	reported   map[string]float64
	offset     at              // wall clock minus the clock that is never set
	uids       map[*pod]string // of this evaluation
}

type stateReported struct {
	service serviceKey
	state   string
}

func newModel(cfg summary.Config) *model {
	return &model{
		cfg: cfg, pods: map[podKey]*pod{}, words: map[deviceKey][]word{}, seen: map[seenKey]at{}, open: map[serviceKey]bool{}, partial: map[serviceKey]bool{}, hasIdled: map[serviceKey]bool{}, emptySince: map[serviceKey]at{},
		states: map[podKey]stateReported{}, reported: map[string]float64{},
	}
}

func (m *model) pod(k podKey) *pod {
	if m.pods[k] == nil {
		m.pods[k] = &pod{key: k, unfresh: map[string]at{}}
	}
	return m.pods[k]
}

// receive takes a point of telemetry that arrives now.
func (m *model) receive(p point, now at) {
	p.stamp = fromTheFuture(p.stamp, now)
	switch {
	case now-p.stamp > m.cfg.ServiceTTL, p.value < 0:
		return // bad input: negative, or of a time that is forgotten
	case p.field == stillness:
		m.still = append(m.still, p)
		return
	case !p.end && (p.pod.name == "" || p.service != ""):
		k := seenKey{deviceKey{p.pod.cluster, p.device}, p.pod.name != ""}
		if last, ok := m.seen[k]; !ok || p.stamp > last {
			m.seen[k] = p.stamp
		}
	}
	if p.service == "" {
		return // of no pod, or without identity
	}
	pod := m.pod(p.pod)
	if !p.end {
		pod.named = append(pod.named, naming{p.uid, p.service, p.stamp})
	}
	if p.field == suspended && !p.end && p.value > 0 {
		// "A GPU that is suspended does nothing, and has a utilization of 0."
		asleep := p
		asleep.field, asleep.value = utilization, 0
		m.receive(asleep, now)
	}
	for _, s := range pod.series {
		if s.uid == p.uid && s.device == p.device && s.field == p.field {
			s.points = append(s.points, p)
			return
		}
	}
	pod.series = append(pod.series, &series{uid: p.uid, device: p.device, field: p.field, points: []point{p}})
}

// receiveAllocation takes a point of gpu.allocation that arrives now.
func (m *model) receiveAllocation(a announcement, now at) {
	a.stamp = fromTheFuture(a.stamp, now)
	if now-a.stamp > m.cfg.AllocationTTL {
		return
	}
	if m.cfg.Expected == summary.Seen {
		if a.resolved {
			k := deviceKey{a.pod.cluster, a.device}
			m.words[k] = append(m.words[k], word{a.pod, a.uid, a.container, a.stamp, a.end})
		}
		return
	}
	if a.service == "" {
		return
	}
	pod := m.pod(a.pod)
	if !a.end {
		pod.named = append(pod.named, naming{a.uid, a.service, a.stamp})
	}
	pod.announcements = append(pod.announcements, a)
}

// receivePods takes what the Kubernetes API reports now.
func (m *model) receivePods(pods []podFact, now at) {
	m.snapshots = append(m.snapshots, snapshot{now, pods})
	for _, p := range pods {
		m.pod(p.pod)
	}
}

// fromTheFuture: "A point from the future (clock skew beyond 30s) counts as arriving
// now."
func fromTheFuture(stamp, now at) at {
	if stamp > now+30*time.Second {
		return now
	}
	return stamp
}
