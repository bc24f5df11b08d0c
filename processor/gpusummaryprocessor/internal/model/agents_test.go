// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// serviceAt is the service that agents report at t.
func (p *life) serviceAt(t at) string {
	if t >= p.moves {
		return p.later
	}
	return p.service
}

// on is the node that telemetry names; not all does.
func (p *life) on(f *fleet) string { return pick(f, p.node.name, p.node.name, p.node.name, "") }

// runs reports whether the pod's containers run at t, and since when.
func (p *life) runs(t at) (since, lastRun at, up bool) {
	if t < p.started || t >= p.stopped {
		return p.started, -1, false
	}
	if p.crashes == 0 {
		return p.started, -1, true
	}
	// It runs for half the time between two starts.
	n := (t - p.started) / p.crashes
	since, lastRun = p.started+n*p.crashes, p.crashes/2
	if n == 0 {
		lastRun = -1
	}
	return since, lastRun, t-since < p.crashes/2
}

// telemetry are the points of the pod's devices.
func (f *fleet) telemetry(p *life) {
	uid := ""
	if p.uidOnPoints {
		uid = p.fact.uid
	}
	first := max(p.started, -2*p.node.scrape)
	phase := f.between(0, p.node.scrape)
	for t := first + phase; t < min(f.horizon, p.stopped); t += p.node.scrape {
		if _, _, up := p.runs(t); !up || within(p.node.exporter, t) {
			continue
		}
		for _, d := range p.devices {
			if d.broken || f.IntN(25) == 0 {
				continue
			}
			f.read(p, d, uid, t)
		}
		if within(p.node.frozen, t) || f.IntN(60) == 0 {
			f.point(f.arrival(t+p.node.lag+f.between(0, 3*second)), point{
				pod: podKey{cluster: p.fact.pod.cluster}, node: pick(f, p.node.name, p.node.name, "", "another"),
				field: stillness, value: float64(pick(f, 1, 1, 1, 0)), stamp: f.stamp(p.node, t),
			})
		}
	}
	f.goesOn(p)
	if p.stopped < f.horizon && f.IntN(2) == 0 { // gpu_pod ends the series when the devices go
		t := p.stopped + f.between(0, 20*second)
		arrives := f.arrival(t + p.node.lag)
		if p.named { // not before the first value, nor with it: see read
			arrives = f.arrival(t + p.node.lag + 3*second + f.grain)
		}
		for _, d := range p.devices {
			for i := range numSamples {
				if d.fields[i] {
					f.point(arrives, point{pod: p.fact.pod, uid: uid, service: p.serviceAt(t), device: d.id, field: i, end: true, stamp: f.stamp(p.node, t)})
				}
			}
		}
	}
}

// goesOn are the devices after the pod: they are there, and unowned, for a while.
func (f *fleet) goesOn(p *life) {
	if p.stopped >= f.horizon || f.IntN(3) == 0 {
		return
	}
	for t := max(p.stopped, 0); t < min(f.horizon, p.stopped+f.between(0, 300*second)); t += p.node.scrape {
		if within(p.node.exporter, t) {
			continue
		}
		for _, d := range p.devices {
			if !d.broken {
				f.point(f.arrival(t+p.node.lag+f.between(0, 2*second)), point{
					pod: podKey{cluster: p.fact.pod.cluster}, node: p.node.name, device: d.id, field: pick(f, utilization, memoryUsage, suspended), stamp: f.stamp(p.node, t),
				})
			}
		}
	}
}

// read is one scrape of one device.
func (f *fleet) read(p *life, d device, uid string, t at) {
	delay := p.node.lag + f.between(0, 2*second)
	if f.IntN(40) == 0 && !p.named {
		delay += f.between(0, 3*time.Minute)
	}
	asleep := within(d.sleeps, t)
	for i := range numSamples {
		if !d.fields[i] || f.IntN(30) == 0 || asleep && i != suspended {
			continue
		}
		x := point{pod: p.fact.pod, uid: uid, service: p.serviceAt(t), node: p.on(f), device: d.id, field: i, stamp: f.stamp(p.node, t)}
		x.value = d.level * float64(f.IntN(8)) / 7
		if i >= memoryUsage {
			x.value = float64(f.IntN(80)) * (1 << 30)
		}
		if i == suspended {
			x.value = 0
			if asleep && f.IntN(3) > 0 { // or it is left alone so that it can fall asleep
				x.value = 1
			}
		}
		odd := f.IntN(200)
		if p.named && odd != 3 {
			// Pods that had the same name in turn are distinguished by their times: the
			// end of a series that overtakes the first value of a successor, and
			// times at which both seem to be, are the exceptions that package summary
			// names.
			odd = -1
		}
		switch odd {
		case 0:
			x.stamp += time.Hour
		case 1:
			x.end = true
		case 2:
			x.end, x.value = true, math.NaN()
		case 3:
			x.value = -1
		case 4:
			x.stamp += f.between(-40*second, 40*second)
		}
		f.point(f.arrival(t+delay), x)
		if f.IntN(60) == 0 { // reported again, and perhaps something else
			if f.IntN(2) == 0 && !x.end {
				x.value *= float64(f.IntN(2)) / 2
			}
			f.point(f.arrival(t+delay+f.between(0, 20*second)), x)
		}
	}
}

func (f *fleet) point(t at, p point) {
	if t < f.horizon {
		f.facts = append(f.facts, fact{at: t, point: &p})
	}
}

// allocations are the points of gpu.allocation for the pod.
func (f *fleet) allocations(p *life) {
	if !p.announced || f.cfg.Expected == summary.Seen && f.IntN(2) == 0 {
		return
	}
	announce := func(t at, d device, end bool) {
		a := announcement{pod: p.fact.pod, container: d.container, device: d.announcedAs, resolved: d.resolved, end: end, stamp: f.stamp(p.node, t)}
		if p.uidOnAlloc {
			a.uid = p.fact.uid
		}
		if p.serviceOnAlloc || f.cfg.Expected == summary.Allocation {
			a.service = p.serviceAt(t)
		}
		if arrives := f.arrival(t + p.node.lag/2 + f.between(0, second)); arrives < f.horizon {
			f.facts = append(f.facts, fact{at: arrives, announcement: &a})
		}
	}
	from := max(p.created, -30*second)
	if f.IntN(2) == 0 {
		from = max(p.started, -30*second)
	}
	until := min(f.horizon, p.stopped)
	for t := from; t < until; t += 15 * second {
		if within(p.node.api, t) {
			continue
		}
		for _, d := range p.devices {
			announce(t, d, !p.named && f.IntN(300) == 0)
		}
	}
	if until < f.horizon && !p.named && f.IntN(2) == 0 {
		for _, d := range p.devices {
			announce(until+f.between(second, 15*second), d, true)
		}
	}
	if t := until + f.between(second, 30*second); t < f.horizon && f.IntN(2) == 0 {
		for _, d := range p.devices {
			f.facts = append(f.facts, fact{at: f.arrival(t), announcement: &announcement{
				pod: podKey{cluster: p.fact.pod.cluster}, device: d.announcedAs, resolved: d.resolved, stamp: f.stamp(p.node, t),
			}})
		}
	}
}

// snapshots are what the Kubernetes API reports, at the start and at every change, but
// while it is away.
func (f *fleet) snapshots() {
	if f.cfg.Expected != summary.Kubernetes {
		return
	}
	away := f.windows(1)
	last := ""
	for t := f.arrival(f.between(0, 30*second)); t < f.horizon; t += f.grain {
		if within(away, t) {
			continue
		}
		pods := f.podsAt(t)
		if now := fmt.Sprint(pods); now != last {
			f.facts = append(f.facts, fact{at: t, pods: &pods})
			last = now
		}
	}
}

func (f *fleet) podsAt(t at) []podFact {
	pods := []podFact{}
	for _, p := range f.pods {
		if p.fact.pod.cluster != cluster || t < p.created || t >= p.gone {
			continue
		}
		x := p.fact
		x.started, x.lastRun, x.up = p.runs(t)
		x.running = t >= p.started && t < p.stopped
		x.deleted = p.gone != math.MaxInt64 && t >= p.stopped
		if t < p.started && t-p.created < 10*second {
			x.node = ""
		}
		pods = append(pods, x)
	}
	return pods
}
