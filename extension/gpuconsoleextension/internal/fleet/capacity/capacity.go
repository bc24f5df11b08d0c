// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package capacity reads what the scheduler has to give and what waits for it, as
// gpu_scheduling reports it.
package capacity // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/capacity"

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/age"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/ask"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

// Which nodes are listed.
const (
	Fitting  = "fit" // where a request fits
	Stranded = "stranded"
	Free     = "free"
	All      = "all"
)

// Query is what is asked for.
type Query struct {
	Size                     int // of a request
	Cluster, Resource, Model *string
	Node                     string // a text in the node's name, in lower case
	Show                     string
}

// Capacity is what is known.
type Capacity struct {
	Answer consoleapi.CapacityAnswer // without nodes
	nodes  []consoleapi.CapacityNode
}

// pool names devices that a request may get.
type pool struct{ cluster, resource, model string }

func poolOf(m model.Metric) pool {
	return pool{string(m[queries.Cluster]), string(m[queries.Resource]), string(m[queries.Model])}
}

func comparePools(a, b pool) int {
	return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.resource, b.resource), cmp.Compare(a.model, b.model))
}

// maxWaiting is how many groups of pods are named.
const maxWaiting = 200

// Ask asks for the capacity; the function returns it after Wait.
func Ask(q *ask.Questions, j *age.Judge, staleAfter, remembered time.Duration, of *Query) func() *Capacity {
	in := of.selector()
	seen := q.Vector(queries.CapacitySeen(in, remembered))
	nodes := q.Vector(queries.CapacityOfNodes(in, staleAfter))
	stranded := q.Vector(queries.CapacityStranded(in, staleAfter))
	fit := q.Vector(queries.CapacityFit(in, staleAfter))
	fragmentation := q.Vector(queries.CapacityFragmentation(in, staleAfter))
	where := of.waiting()
	pods := q.Vector(queries.Waiting(queries.PendingPods, where, staleAfter))
	devices := q.Vector(queries.Waiting(queries.PendingDevices, where, staleAfter))
	ages := q.Vector(queries.WaitingFor(of.inCluster(), staleAfter))
	schedulable := q.Vector(queries.Of(queries.Schedulable, of.inCluster()))
	return func() *Capacity {
		out := &Capacity{Answer: consoleapi.CapacityAnswer{
			Size: of.Size, Silent: []consoleapi.SilentCluster{}, Pools: []consoleapi.CapacityPool{}, Waiting: []consoleapi.WaitingPods{}, Hints: []consoleapi.CapacityHint{}, Nodes: []consoleapi.CapacityNode{},
		}}
		out.putSeen(j, *seen)
		p := pools{}
		all := p.putNodes(*nodes, cordons(*schedulable), of.Size)
		out.Answer.NodesKnown = len(all) > 0
		p.putStranded(*stranded)
		p.putFit(*fit, *fragmentation, of.Size)
		for _, key := range slices.SortedFunc(keys(p), comparePools) {
			out.Answer.Pools = append(out.Answer.Pools, p[key].CapacityPool)
		}
		out.putWaiting(*pods, *devices, *ages)
		out.Answer.Hints = hints(out.Answer.Pools, out.Answer.Waiting)
		out.Answer.Waiting = out.Answer.Waiting[:min(maxWaiting, len(out.Answer.Waiting))]
		out.nodes = of.listed(all)
		if len(out.Answer.Pools) == 0 && out.Answer.WaitingTotal == 0 {
			out.Answer.Reason = optional.Pointer(consoleapi.NoScheduling)
		}
		return out
	}
}

func (of *Query) inCluster() queries.Selector {
	if of.Cluster == nil {
		return queries.All
	}
	return queries.Is(queries.Cluster, *of.Cluster)
}

func (of *Query) waiting() queries.Selector {
	if of.Resource == nil {
		return of.inCluster()
	}
	return queries.And(of.inCluster(), queries.Is(queries.Resource, *of.Resource))
}

func (of *Query) selector() queries.Selector {
	if of.Model == nil {
		return of.waiting()
	}
	return queries.And(of.waiting(), queries.Is(queries.Model, *of.Model))
}

// listed are the nodes that are wanted: those with most room first.
func (of *Query) listed(all []consoleapi.CapacityNode) []consoleapi.CapacityNode {
	var list []consoleapi.CapacityNode
	for _, n := range all {
		shown := map[string]bool{Fitting: optional.Above(n.Fits), Stranded: optional.Above(n.Stranded), Free: optional.Above(n.Free), All: true}[of.Show]
		if shown && strings.Contains(strings.ToLower(n.Node), of.Node) {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b consoleapi.CapacityNode) int {
		first := cmp.Compare(optional.Zero(b.Fits), optional.Zero(a.Fits))
		if of.Show == Stranded {
			first = cmp.Compare(optional.Zero(b.Stranded), optional.Zero(a.Stranded))
		}
		return cmp.Or(first, cmp.Compare(optional.Zero(b.Free), optional.Zero(a.Free)), cmp.Compare(optional.Value(a.Cluster), optional.Value(b.Cluster)),
			cmp.Compare(a.Node, b.Node), cmp.Compare(a.Resource, b.Resource), cmp.Compare(optional.Value(a.Model), optional.Value(b.Model)))
	})
	return list
}

// Len is how many nodes are listed.
func (c *Capacity) Len() int { return len(c.nodes) }

// Key distinguishes one of them from all others.
func (c *Capacity) Key(i int) string {
	n := &c.nodes[i]
	return strings.Join([]string{optional.Value(n.Cluster), n.Node, n.Resource, optional.Value(n.Model)}, "\x00")
}

// Page is the answer with some of the nodes.
func (c *Capacity) Page(from, to int) *consoleapi.CapacityAnswer {
	c.Answer.Nodes = append(c.Answer.Nodes, c.nodes[from:to]...)
	c.Answer.Total = len(c.nodes)
	return &c.Answer
}

// putSeen notes which clusters have reported, and do no more.
func (c *Capacity) putSeen(j *age.Judge, seen model.Vector) {
	for _, sample := range seen {
		t := ask.Seconds(sample.Value)
		j.Used(t)
		if !j.Fresh(t) {
			c.Answer.Silent = append(c.Answer.Silent, consoleapi.SilentCluster{Cluster: optional.Text(sample.Metric[queries.Cluster]), Last: t})
		}
	}
	slices.SortFunc(c.Answer.Silent, func(a, b consoleapi.SilentCluster) int {
		return cmp.Compare(optional.Value(a.Cluster), optional.Value(b.Cluster))
	})
}

// group names pods that wait.
type group struct{ cluster, namespace, queue, reason string }

func groupOf(m model.Metric) group {
	return group{string(m[queries.Cluster]), string(m[queries.Namespace]), string(m[queries.Queue]), string(m[queries.PendingReason])}
}

func (c *Capacity) putWaiting(pods, devices, ages model.Vector) {
	type key struct {
		group
		resource string
	}
	oldest := map[group]float64{}
	for _, sample := range ages {
		oldest[groupOf(sample.Metric)] = float64(sample.Value)
	}
	found := map[key]*consoleapi.WaitingPods{}
	of := func(m model.Metric) *consoleapi.WaitingPods {
		k := key{groupOf(m), string(m[queries.Resource])}
		if found[k] == nil {
			found[k] = &consoleapi.WaitingPods{Cluster: optional.Text(m[queries.Cluster]), Namespace: k.namespace, Queue: optional.Text(m[queries.Queue]), Reason: k.reason, Resource: k.resource}
			if age, known := oldest[k.group]; known {
				found[k].Oldest = &age
			}
		}
		return found[k]
	}
	for _, sample := range pods {
		of(sample.Metric).Pods = count(sample.Value)
	}
	for _, sample := range devices {
		of(sample.Metric).Devices = count(sample.Value)
	}
	for _, w := range found {
		// A series that has fallen to 0 is about pods that found their place.
		if w.Pods == nil || *w.Pods > 0 {
			c.Answer.Waiting = append(c.Answer.Waiting, *w)
		}
	}
	waited := func(w *consoleapi.WaitingPods) float64 {
		if w.Oldest == nil {
			return -1
		}
		return *w.Oldest
	}
	slices.SortFunc(c.Answer.Waiting, func(a, b consoleapi.WaitingPods) int {
		return cmp.Or(cmp.Compare(waited(&b), waited(&a)), cmp.Compare(optional.Value(a.Cluster), optional.Value(b.Cluster)), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(optional.Value(a.Queue), optional.Value(b.Queue)), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Resource, b.Resource))
	})
	c.Answer.WaitingTotal = len(c.Answer.Waiting)
}

func count(v model.SampleValue) *int { return optional.Whole(optional.Pointer(float64(v))) }

// cordons are the nodes of which gpu_allocation reports whether they take pods.
func cordons(schedulable model.Vector) map[[2]string]bool {
	out := map[[2]string]bool{}
	for _, sample := range schedulable {
		out[[2]string{string(sample.Metric[queries.Cluster]), string(sample.Metric[queries.Node])}] = sample.Value != 0
	}
	return out
}

// sizeOf is the number of devices of a request; 0 for what pods asked of late.
func sizeOf(m model.Metric) int {
	n, err := strconv.Atoi(string(m[queries.RequestSize]))
	if err != nil {
		return 0
	}
	return n
}
