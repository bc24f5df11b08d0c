// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"

import (
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// MaxGroupWait is longer than any useful delay.
const MaxGroupWait = 10 * time.Minute

// groups gathers events of one place into one delivery. An event that joins no
// group but has a key in common with an open one ends that group first, so that
// their order stays. Guarded by the queue.
type groups struct {
	wait    time.Duration
	limit   int // parts of one group
	byPlace map[string]*group
	byKey   map[string]*group
}

type group struct {
	endpoint string
	place    string
	parts    []*Part
	timer    *time.Timer
}

// takes reports whether the delivery may travel with others.
func (g *groups) takes(d *Delivery) bool {
	p := d.Parts[0]
	return g.wait > 0 && g.limit > 1 && d.Waiter == nil && p.Trigger == audit.TriggerEvent && p.Place() != ""
}

// gather adds the delivery's part to the group of its place. The caller holds
// q.mu.
func (q *Queue) gather(d *Delivery) {
	p := d.Parts[0]
	place := p.Place()
	if other := q.groups.byKey[p.Key]; other != nil && other.place != place {
		q.dispatch(other)
	}
	g := q.groups.byPlace[place]
	if g == nil {
		g = &group{endpoint: d.Endpoint, place: place}
		g.timer = time.AfterFunc(q.groups.wait, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.dispatch(g)
		})
		q.groups.byPlace[place] = g
	}
	g.parts = append(g.parts, p)
	if p.Key != "" {
		q.groups.byKey[p.Key] = g
	}
	if len(g.parts) >= q.groups.limit {
		q.dispatch(g)
	}
}

// dispatch lines the group up as one delivery, if that has not happened. The
// caller holds q.mu.
func (q *Queue) dispatch(g *group) {
	if q.groups.byPlace[g.place] != g {
		return
	}
	g.timer.Stop()
	delete(q.groups.byPlace, g.place)
	for _, p := range g.parts {
		delete(q.groups.byKey, p.Key)
	}
	q.enqueue(&Delivery{Endpoint: g.endpoint, Parts: g.parts})
}

// endGroups dispatches all groups. The caller holds q.mu.
func (q *Queue) endGroups() {
	for _, g := range q.groups.byPlace {
		q.dispatch(g)
	}
}

// Split puts the parts of a delivery that was taken, each by itself, into its
// place in the queue.
func (q *Queue) Split(d *Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	singles := make([]*Delivery, len(d.Parts))
	byKey := map[string][]*Delivery{}
	for i, p := range d.Parts {
		one := &Delivery{Endpoint: d.Endpoint, Parts: []*Part{p}, State: d.State}
		singles[i] = one
		key := one.keys()[0]
		if len(byKey[key]) > 0 {
			one.blockers++
		}
		byKey[key] = append(byKey[key], one)
	}
	for key, list := range byKey { // d is the first in each of these lanes
		q.lanes[key] = slices.Concat(list, q.lanes[key][1:])
	}
	q.flying--
	q.waiting += len(singles)
	for _, one := range singles {
		q.makeReady(one)
	}
	q.moved.Broadcast()
}
