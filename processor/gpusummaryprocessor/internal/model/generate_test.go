// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

const cluster = "east"

// fleet makes a world.
type fleet struct {
	*rand.Rand
	cfg     summary.Config
	every   at // between two evaluations
	horizon at
	grain   at // arrivals are at multiples of it: what arrives at one moment is shuffled
	nodes   []*node
	pods    []*life
	facts   []fact
}

// node is a machine: its exporter and its agent.
type node struct {
	name          string
	scrape        at // collection interval of the exporter
	lag           at
	skew, skewed  at // its clock differs by skew, by skewed more once the gateway's was set
	exporter, api []window
	frozen        []window // its values stand still
}

// window is a time of silence.
type window struct{ from, to at }

// life is what one pod does.
type life struct {
	fact                      podFact
	node                      *node
	created, started, stopped at // stopped: its containers; the object goes later
	gone                      at
	crashes                   at // 0: no crash loop; else the time between two starts
	service, later            string
	moves                     at
	devices                   []device
	uidOnPoints, uidOnAlloc   bool
	announced, serviceOnAlloc bool
	named                     bool // one of several pods that had this name in turn
}

// device is a device as one pod holds it.
type device struct {
	id, announcedAs, container string
	resolved, broken           bool
	fields                     [numSamples]bool
	level                      float64
	sleeps                     []window
}

// generate makes the world of a seed.
func generate(seed uint64) world {
	f := &fleet{Rand: rand.New(rand.NewPCG(seed, 1))}
	f.configure()
	for i := range 1 + f.IntN(3) {
		f.nodes = append(f.nodes, &node{
			name: fmt.Sprint("node-", i), scrape: f.seconds(5, 15, 15, 15, 30, 60, 120), lag: f.seconds(0, 0, 1, 10, 25),
			skew: f.seconds(0, 0, 0, -10, 10), exporter: f.windows(2), api: f.windows(1), frozen: f.windows(1),
		})
	}
	if f.IntN(7) == 0 {
		f.setClock()
	}
	n := pick(f, 1, 2, 2, 3, 3, 4, 5, 8, 12)
	for i := range n {
		f.addPod(i)
	}
	for _, p := range f.pods {
		f.telemetry(p)
		f.allocations(p)
	}
	f.snapshots()
	for t := f.every; t <= f.horizon; t += f.every {
		f.facts = append(f.facts, fact{at: t, evaluate: true})
	}
	slices.SortStableFunc(f.facts, func(a, b fact) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(rank(a), rank(b)))
	})
	return world{f.cfg, f.facts}
}

// rank is the order of what happens at one moment.
func rank(f fact) int {
	switch {
	case f.step != 0:
		return 0
	case f.pods != nil:
		return 1
	case f.evaluate:
		return 3
	default:
		return 2
	}
}

func pick[T any](f *fleet, from ...T) T { return from[f.IntN(len(from))] }

// seconds is one of these times.
func (f *fleet) seconds(from ...int64) at { return at(pick(f, from...)) * second }

// between is a time from a to b, in whole seconds.
func (f *fleet) between(a, b at) at {
	if b <= a {
		return a
	}
	return a + at(f.Int64N(int64((b-a)/second)+1))*second
}

func (f *fleet) windows(most int) []window {
	var out []window
	for range f.IntN(most + 1) {
		from := f.between(0, f.horizon)
		out = append(out, window{from, from + f.between(0, f.horizon/3)})
	}
	return out
}

func within(all []window, t at) bool {
	return slices.ContainsFunc(all, func(w window) bool { return t >= w.from && t < w.to })
}

func (f *fleet) configure() {
	c := &f.cfg
	c.Expected = summary.Source(f.IntN(3))
	c.Staleness = f.seconds(0, 0, 0, 20, 90)
	c.InitialInterval = f.seconds(5, 15, 15, 30, 120)
	c.Warmup = f.seconds(0, 30, 90, 90, 180)
	c.AllocationTTL = f.seconds(60, 300)
	c.ServiceTTL = max(c.Warmup, c.StalenessAt(c.InitialInterval)) + f.seconds(15, 60, 420)
	if c.Expected != summary.Kubernetes { // there it means more, which the model does not know
		c.ReconnectGrace = f.seconds(0, 30, 150)
	}
	c.PartialThreshold = pick(f, 0, 0.25, 0.25, 1./3, 0.5, 1)
	c.IdleThreshold = pick(f, 0, 0.05, 0.05, 0.5)
	c.IdleFor = f.seconds(30, 120, 900)
	c.MaxPods, c.MaxServices = 200_000, 20_000
	f.every = f.seconds(5, 10, 15, 15, 30, 60)
	f.horizon = f.every * at(15+f.IntN(60))
	f.grain = pick(f, second, 5*second, f.every)
}

// setClock sets the gateway's wall clock once; every other node keeps the old time.
func (f *fleet) setClock() {
	step := f.seconds(-3600, -300, 90, 3600)
	when := f.between(second, f.horizon)
	f.facts = append(f.facts, fact{at: when, step: step})
	for i, n := range f.nodes {
		if i%2 == 1 {
			n.skewed = step
		}
	}
}

// stepped is by how much the gateway's clock was set until t.
func (f *fleet) stepped(t at) at {
	for _, x := range f.facts {
		if x.step != 0 && t >= x.at {
			return x.step
		}
	}
	return 0
}

// stamp is what a node's clock reports at t.
func (f *fleet) stamp(n *node, t at) at {
	if n.skewed != 0 && f.stepped(t) != 0 {
		t -= n.skewed
	}
	return t + n.skew
}

// arrival is when what leaves at t arrives.
func (f *fleet) arrival(t at) at {
	t = max(t, 0)
	return (t + f.grain - 1) / f.grain * f.grain
}

func (f *fleet) addPod(i int) {
	p := &life{node: pick(f, f.nodes...)}
	p.created = f.between(-2*time.Minute, f.horizon/2)
	if f.IntN(3) > 0 {
		p.created = -f.between(0, 10*time.Minute)
	}
	p.started = p.created + f.between(0, 40*second)
	p.stopped, p.gone = math.MaxInt64, math.MaxInt64
	if f.IntN(3) == 0 {
		p.stopped = f.between(p.started, f.horizon)
		p.gone = p.stopped + f.between(0, 2*time.Minute)
	}
	if f.IntN(8) == 0 {
		p.crashes = f.between(10*second, 2*time.Minute)
	}
	p.service = pick(f, "api", "api", "api", "web")
	p.later = p.service
	if f.IntN(7) == 0 {
		p.later, p.moves = pick(f, "api", "web", "web"), f.between(0, f.horizon)
	}
	p.uidOnPoints, p.uidOnAlloc = f.IntN(2) == 0, f.IntN(2) == 0
	p.announced, p.serviceOnAlloc = f.IntN(10) > 0, f.IntN(5) > 0
	p.fact = podFact{
		pod:     podKey{pick(f, cluster, cluster, cluster, "west", ""), pick(f, "shop", "shop", "test"), fmt.Sprint("pod-", f.IntN(i+2))},
		uid:     fmt.Sprint("uid-", i),
		service: pick(f, p.service, p.service, "computed"),
		node:    p.node.name,
	}
	for _, other := range f.pods {
		if other.fact.pod == p.fact.pod {
			if f.stepped(f.horizon) != 0 {
				p.fact.pod.name = fmt.Sprint("only-", i)
				break
			}
			f.succeed(p, other)
		}
	}
	for n := range pick(f, 1, 1, 1, 2, 2, 4, 8) {
		p.devices = append(p.devices, f.device(i, n))
	}
	p.fact.devices = max(1, len(p.devices)+pick(f, 0, 0, 0, 0, 1, -1))
	f.pods = append(f.pods, p)
}

// succeed makes p the pod that takes the name of another after it, as a StatefulSet
// does.
func (f *fleet) succeed(p, other *life) {
	if other.stopped == math.MaxInt64 {
		other.stopped = f.between(other.started, f.horizon)
	}
	other.gone = other.stopped + f.between(0, 30*second)
	after := max(other.gone, 0)
	p.created = max(p.created, after+45*second)
	p.started = p.created + f.between(0, 40*second)
	if p.stopped != math.MaxInt64 {
		p.stopped = max(p.stopped, p.started+second)
		p.gone = max(p.gone, p.stopped)
	}
	p.named, other.named = true, true
	p.uidOnPoints, p.uidOnAlloc = true, true
	other.uidOnPoints, other.uidOnAlloc = true, true
}

// boardOf is the hw.id of a pod's device, in the forms of all vendors: a pod may have those
// of several, and so may a service.
func boardOf(pod, n int) string {
	switch (pod + n) % 4 {
	case 1:
		return fmt.Sprintf("GPU-%016x", 1+pod<<8+n)
	case 2:
		return fmt.Sprintf("GAUDI-AN%d-%d", pod, n)
	case 3:
		return fmt.Sprintf("PCI-node-1@0000:%02x:%02x.0", pod, n)
	}
	return fmt.Sprintf("GPU-%d-%d", pod, n)
}

func (f *fleet) device(pod, n int) device {
	id := boardOf(pod, n)
	if pod > 0 && f.IntN(12) == 0 {
		id = boardOf(f.IntN(pod), n) // another pod's, before or at the same time
	}
	d := device{resolved: true, container: pick(f, "main", "main", "side"), level: pick(f, 0, 0.02, 0.4, 0.9)}
	switch f.IntN(6) {
	case 0:
		id += "/1" // a MIG instance, a partition or a tile
	case 1:
		d.announcedAs = id + "::0" // a replica
		if f.IntN(2) == 0 {
			id = d.announcedAs
		}
	}
	d.id = id
	if d.announcedAs == "" {
		d.announcedAs = id
	}
	if f.IntN(8) == 0 {
		d.resolved, d.announcedAs = false, "node/"+id
	}
	d.broken = f.IntN(12) == 0
	for i := range numFields {
		d.fields[i] = i == utilization || f.IntN(4) == 0
	}
	switch f.IntN(8) {
	case 0: // a MIG instance of an A100, a partition in a guest
		d.fields[utilization], d.fields[memoryUsage], d.fields[memoryLimit] = false, true, true
	case 1: // GB10
		d.fields[memoryUsage], d.fields[memoryLimit], d.fields[power] = false, false, true
	case 2: // power alone
		d.fields = [numSamples]bool{power: true}
	case 3: // runtime power management
		d.fields[suspended], d.sleeps = true, f.windows(2)
	}
	return d
}
