// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/places"
)

// Config of an Evaluator.
type Config struct {
	Window  time.Duration // for how long a pod counts in what is usual
	MaxPods int           // of them
	// IsDevice reports whether a resource is an accelerator.
	IsDevice func(resource string) bool
	Places   *places.Set
}

// Evaluator computes Figures. It remembers what pods requested. It is not safe for
// concurrent use.
type Evaluator struct {
	cfg   Config
	usual usual
}

// New returns an Evaluator that knows no pod.
func New(cfg Config) *Evaluator {
	return &Evaluator{cfg, usual{cfg.Window, cfg.MaxPods, map[string]asked{}}}
}

// claim is a ResourceClaim: pods that share it share its devices.
type claim struct{ namespace, name, resource string }

// taken is what the pods on a node request.
type taken struct {
	gpupods.Amount
	devices []gpupods.Request // by resource
	claims  map[claim]bool    // that are among them
}

func (t *taken) add(r gpupods.Request) {
	if i := slices.IndexFunc(t.devices, func(is gpupods.Request) bool { return is.Resource == r.Resource }); i >= 0 {
		t.devices[i].Count += r.Count
	} else {
		t.devices = append(t.devices, gpupods.Request{Resource: r.Resource, Count: r.Count})
	}
}

func (t *taken) of(resource string) int {
	for i := range t.devices {
		if t.devices[i].Resource == resource {
			return t.devices[i].Count
		}
	}
	return 0
}

// Evaluate computes the figures of a moment; each node's name is there once.
func (e *Evaluator) Evaluate(now time.Time, nodes []*Node, pods *gpupods.Snapshot) *Figures {
	f := &Figures{}
	f.Forgotten = e.usual.note(now, pods.Pods)
	customs := e.usual.customs(largest(nodes))

	at := make(map[string]*taken, len(nodes))
	for _, n := range nodes {
		at[n.Name] = &taken{Amount: pods.Others[n.Name]}
		f.Quantities += n.Odd
	}
	held := map[claim]bool{}
	var waiting []*gpupods.Pod
	for _, p := range pods.Pods {
		f.absurd(p)
		switch {
		case p.Scheduling == nil, over(p):
		case p.Node != "":
			f.bind(p, at[p.Node], held)
		case !p.Deleted:
			waiting = append(waiting, p)
		}
	}
	kinds := map[Kind]*kind{}
	for _, n := range nodes {
		f.node(n, at[n.Name], customs, kinds)
	}
	for _, k := range kinds {
		k.finish()
		f.Kinds = append(f.Kinds, k.KindFigures)
	}
	slices.SortFunc(f.Kinds, func(a, b KindFigures) int { return a.Kind.compare(b.Kind) })
	slices.SortFunc(f.Nodes, func(a, b NodeFigures) int { return cmp.Or(cmp.Compare(a.Node, b.Node), a.Kind.compare(b.Kind)) })
	e.wait(now, waiting, held, f)
	return f
}

func (k Kind) compare(than Kind) int {
	return cmp.Or(cmp.Compare(k.Resource, than.Resource), cmp.Compare(k.Model, than.Model))
}

// bind adds what a pod on a node requests; at is nil where that node is not there.
func (f *Figures) bind(p *gpupods.Pod, at *taken, held map[claim]bool) {
	for _, r := range p.Scheduling.Requests {
		if r.Claim != "" {
			is := claim{p.Namespace, r.Claim, r.Resource}
			held[is] = true
			if at == nil || at.claims[is] {
				continue
			}
			if at.claims == nil {
				at.claims = map[claim]bool{}
			}
			at.claims[is] = true
		}
		if at != nil {
			at.add(r)
		}
	}
	if at == nil {
		f.UnknownNodes++
		return
	}
	at.Amount = at.Plus(p.Scheduling.Amount)
}

// absurd notes a pod that requests more devices than any node could ever have.
func (f *Figures) absurd(p *gpupods.Pod) {
	if p.Scheduling == nil || over(p) {
		return
	}
	for _, r := range p.Scheduling.Requests {
		if r.Absurd {
			f.Absurd++
			f.AbsurdPod = p.Namespace + "/" + p.Name
			return
		}
	}
}

// largest is how many devices of a resource a node has at most. A request for more finds no place
// however the free devices are spread.
func largest(nodes []*Node) map[string]int {
	out := map[string]int{}
	for _, n := range nodes {
		for _, d := range n.Devices {
			if d.Unknown {
				out[d.Resource] = math.MaxInt
			}
			out[d.Resource] = max(out[d.Resource], d.Allocatable)
		}
	}
	return out
}

// kind adds up one kind of devices.
type kind struct {
	KindFigures
	custom custom
	fits   []int // of the sizes that are usual
}

// node adds the figures of a node.
func (f *Figures) node(n *Node, at *taken, customs map[string]custom, kinds map[Kind]*kind) {
	add := func(d Devices) {
		is := NodeFigures{Node: n.Name, Kind: d.Kind, Allocatable: d.Allocatable, Requested: at.of(d.Resource)}
		if d.Unknown || is.Allocatable == 0 && is.Requested == 0 {
			return
		}
		if is.Requested > is.Allocatable {
			f.Overcommitted++
			f.Example = is
		}
		is.Free = max(0, is.Allocatable-is.Requested)
		k := kinds[d.Kind]
		if k == nil {
			usual := customs[d.Resource]
			k = &kind{KindFigures{Kind: d.Kind}, usual, make([]int, len(usual.sizes))}
			kinds[d.Kind] = k
		}
		is.Stranded = is.Free - k.usable(n, at, is.Free)
		f.Nodes = append(f.Nodes, is)
	}
	for _, d := range n.Devices {
		add(d)
	}
	for _, r := range at.devices {
		if !slices.ContainsFunc(n.Devices, func(d Devices) bool { return d.Resource == r.Resource }) {
			add(Devices{Kind: Kind{Resource: r.Resource}}) // the node had them once
		}
	}
}

// usable is how many of the free devices of a node can be used, and adds them.
func (k *kind) usable(n *Node, at *taken, free int) int {
	if n.Closed != Schedulable {
		k.Stranded[n.Closed] += free
		return 0
	}
	withCPU := k.custom.cpu.enough(n.CPU-at.CPU, free)
	usable := k.custom.memory.enough(n.Memory-at.Memory, withCPU)
	k.Stranded[CPU] += free - withCPU
	k.Stranded[Memory] += withCPU - usable
	k.Free += free
	for i, r := range Sizes {
		k.Fit[i] += usable / r
	}
	for i, s := range k.custom.sizes {
		k.fits[i] += usable / s.devices
	}
	return usable
}

// finish computes what follows from the sums over nodes.
func (k *kind) finish() {
	// frag(r) = 1 − r·fit(r)/F
	fragmentation := func(r, fit int) float64 { return 1 - float64(r*fit)/float64(k.Free) }
	k.Expected = math.NaN()
	for i, r := range Sizes {
		k.Fragmentation[i] = math.NaN()
		if k.Free > 0 {
			k.Fragmentation[i] = fragmentation(r, k.Fit[i])
		}
	}
	if k.Free == 0 || k.custom.devices == 0 {
		return
	}
	// Σ p(r)·frag(r); p is the part of all requested devices that are requested r at once.
	k.Expected = 0
	for i, s := range k.custom.sizes {
		p := float64(s.devices*s.requests) / float64(k.custom.devices)
		k.Expected += p * fragmentation(s.devices, k.fits[i])
	}
}
