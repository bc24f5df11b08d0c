// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package durations measures how long pods take from their creation to a node, and from
// there to running containers. A transition counts once, if it happened while pods were
// watched, so that a restart repeats none.
package durations

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/places"
)

// Transition is what happens to a pod.
type Transition int

const (
	Scheduled Transition = iota // created → a node was found
	Started                     // a node was found → its containers run
	NumTransitions
)

func (t Transition) String() string { return [NumTransitions]string{"scheduled", "started"}[t] }

// Seen counts what an Observe could not record.
type Seen struct {
	Missed   [NumTransitions]int // transitions that were not watched
	Negative int                 // durations
}

// Tracker follows pods. It is not safe for concurrent use.
type Tracker struct {
	places  *places.Set
	known   bool      // a first list, of pods that came before
	last    time.Time // the last call of Observe
	pods    map[string]*progress
	records [NumTransitions]map[places.Place]*places.Histogram
}

type progress struct {
	done [NumTransitions]bool
	seen bool
}

// New returns a Tracker that knows no pod.
func New(set *places.Set) *Tracker {
	t := &Tracker{places: set, pods: map[string]*progress{}}
	for i := range t.records {
		t.records[i] = map[places.Place]*places.Histogram{}
	}
	return t
}

// Observe takes in the pods of now. What has happened to those of the first call is
// missed.
func (t *Tracker) Observe(now time.Time, pods []*gpupods.Pod) (seen Seen) {
	for _, p := range pods {
		if p.Scheduling != nil {
			t.pod(now, p, &seen)
		}
	}
	t.known, t.last = true, now
	for uid, is := range t.pods {
		if !is.seen {
			delete(t.pods, uid)
		}
		is.seen = false
	}
	return seen
}

func (t *Tracker) pod(now time.Time, p *gpupods.Pod, seen *Seen) {
	is := t.pods[p.UID]
	if is == nil {
		is = &progress{}
		t.pods[p.UID] = is
	}
	is.seen = true
	s := p.Scheduling
	if !is.done[Scheduled] && p.Node != "" {
		is.done[Scheduled] = true
		t.record(now, p, Scheduled, s.Created, s.Scheduled, true, seen)
	}
	switch {
	case is.done[Started]:
	case p.Up && !p.Started.IsZero():
		is.done[Started] = true
		// When a container that ran before first started is not known.
		t.record(now, p, Started, s.Scheduled, p.Started, p.LastRun < 0, seen)
	case p.Phase == corev1.PodSucceeded && p.Devices > 0:
		is.done[Started] = true
		seen.Missed[Started]++ // it ran between two looks
	}
}

func (t *Tracker) record(now time.Time, p *gpupods.Pod, is Transition, from, to time.Time, sure bool, seen *Seen) {
	switch d := to.Sub(from); {
	case !t.known, !sure, from.IsZero(), to.IsZero():
		seen.Missed[is]++
	case d < 0:
		seen.Negative++
	default:
		at := t.places.Admit(places.Place{Namespace: p.Namespace, Queue: p.Scheduling.Queue}, now)
		h := t.records[is][at]
		if h == nil {
			h = places.NewHistogram(t.last)
			t.records[is][at] = h
		}
		h.Record(d)
	}
}

// Forget drops the histograms of places that are gone.
func (t *Tracker) Forget(gone []places.Place) {
	for _, at := range gone {
		for _, records := range t.records {
			delete(records, at)
		}
	}
}

// Histograms are those of a transition, valid until the next Observe.
func (t *Tracker) Histograms(is Transition) map[places.Place]*places.Histogram { return t.records[is] }
