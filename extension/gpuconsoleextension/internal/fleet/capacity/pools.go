// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package capacity // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/capacity"

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/optional"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

type pools map[pool]*found

// found is a pool in the making.
type found struct{ consoleapi.CapacityPool }

func keys(p pools) iter.Seq[pool] { return maps.Keys(p) }

func (p pools) of(m model.Metric) *found {
	key := poolOf(m)
	if p[key] == nil {
		p[key] = &found{consoleapi.CapacityPool{
			Cluster: optional.Text(m[queries.Cluster]), Resource: key.resource, Model: optional.Text(m[queries.Model]),
			StrandedBy: []consoleapi.StrandedDevices{}, Requests: []consoleapi.RequestFit{},
		}}
	}
	return p[key]
}

// putNodes adds nodes up, and returns them. Stranded devices are a part of the free ones:
// what is left of these is what requests can get.
func (p pools) putNodes(v model.Vector, schedulable map[[2]string]bool, size int) []consoleapi.CapacityNode {
	type place struct {
		pool
		node string
	}
	byPlace := map[place]*consoleapi.CapacityNode{}
	for _, sample := range v {
		m := sample.Metric
		at := place{poolOf(m), string(m[queries.Node])}
		n := byPlace[at]
		if n == nil {
			n = &consoleapi.CapacityNode{Cluster: optional.Text(m[queries.Cluster]), Node: at.node, Resource: at.resource, Model: optional.Text(m[queries.Model])}
			if on, known := schedulable[[2]string{at.cluster, at.node}]; known {
				n.Schedulable = &on
			}
			byPlace[at] = n
		}
		switch m[queries.NodeDeviceState] {
		case "allocatable":
			n.Allocatable = count(sample.Value)
		case "requested":
			n.Requested = count(sample.Value)
		case "free":
			n.Free = count(sample.Value)
		case "stranded":
			n.Stranded = count(sample.Value)
		}
	}
	add := func(to **int, n *int) {
		if n != nil {
			*to = optional.Pointer(optional.Zero(*to) + *n)
		}
	}
	all := make([]consoleapi.CapacityNode, 0, len(byPlace))
	for at, n := range byPlace {
		total := p.of(model.Metric{queries.Cluster: model.LabelValue(at.cluster), queries.Resource: model.LabelValue(at.resource), queries.Model: model.LabelValue(at.model)})
		add(&total.Allocatable, n.Allocatable)
		add(&total.Requested, n.Requested)
		add(&total.Free, n.Free)
		add(&total.Stranded, n.Stranded)
		if n.Free != nil && n.Stranded != nil {
			n.Fits = optional.Pointer(max(0, *n.Free-*n.Stranded) / size)
			add(&total.Fits, n.Fits)
			add(&total.FitNodes, optional.Pointer(min(1, *n.Fits)))
		}
		all = append(all, *n)
	}
	return all
}

// putStranded notes why devices are stranded, the reason with most of them first.
func (p pools) putStranded(v model.Vector) {
	for _, sample := range v {
		if n := count(sample.Value); *n > 0 {
			one := p.of(sample.Metric)
			one.StrandedBy = append(one.StrandedBy, consoleapi.StrandedDevices{Reason: string(sample.Metric[queries.StrandedReason]), Devices: *n})
		} else {
			p.of(sample.Metric)
		}
	}
	for _, one := range p {
		slices.SortFunc(one.StrandedBy, func(a, b consoleapi.StrandedDevices) int {
			return cmp.Or(cmp.Compare(b.Devices, a.Devices), cmp.Compare(a.Reason, b.Reason))
		})
	}
}

// putFit notes what gpu_scheduling computes. Of a size that it reports it is the authority,
// with nodes and without.
func (p pools) putFit(fit, fragmentation model.Vector, size int) {
	request := func(m model.Metric) *consoleapi.RequestFit {
		one, n := p.of(m), sizeOf(m)
		if i := slices.IndexFunc(one.Requests, func(r consoleapi.RequestFit) bool { return r.Size == n }); i >= 0 {
			return &one.Requests[i]
		}
		one.Requests = append(one.Requests, consoleapi.RequestFit{Size: n})
		return &one.Requests[len(one.Requests)-1]
	}
	for _, sample := range fit {
		if n := sizeOf(sample.Metric); n > 0 {
			request(sample.Metric).Fits = count(sample.Value)
			if n == size {
				p.of(sample.Metric).Fits = count(sample.Value)
			}
		}
	}
	for _, sample := range fragmentation {
		ratio := optional.Pointer(float64(sample.Value))
		switch {
		case sizeOf(sample.Metric) > 0:
			request(sample.Metric).Fragmentation = ratio
		case sample.Metric[queries.RequestSize] == "expected":
			p.of(sample.Metric).Fragmentation = ratio
		}
	}
	for _, one := range p {
		slices.SortFunc(one.Requests, func(a, b consoleapi.RequestFit) int { return cmp.Compare(a.Size, b.Size) })
	}
}

// hints are about resources of which as many devices are free as pods wait for.
func hints(pools []consoleapi.CapacityPool, waiting []consoleapi.WaitingPods) []consoleapi.CapacityHint {
	type key struct{ cluster, resource string }
	wanted := map[key]int{}
	reasons := map[key]map[string]int{}
	for _, w := range waiting {
		k := key{optional.Value(w.Cluster), w.Resource}
		if n := optional.Zero(w.Devices); n > 0 {
			wanted[k] += n
			if reasons[k] == nil {
				reasons[k] = map[string]int{}
			}
			reasons[k][w.Reason] += n
		}
	}
	out := []consoleapi.CapacityHint{}
	for _, k := range slices.SortedFunc(maps.Keys(wanted), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.resource, b.resource))
	}) {
		free, known, stranded := 0, false, map[string]int{}
		for i := range pools {
			one := &pools[i]
			if optional.Value(one.Cluster) != k.cluster || one.Resource != k.resource {
				continue
			}
			known = known || one.Free != nil
			free += optional.Zero(one.Free)
			for _, s := range one.StrandedBy {
				stranded[s.Reason] += s.Devices
			}
		}
		if !known || free < wanted[k] {
			continue
		}
		text := fmt.Sprintf("%d devices of %s are free, and pods wait for %d (%s).", free, k.resource, wanted[k], listed(reasons[k]))
		if len(stranded) > 0 {
			text += " Stranded: " + listed(stranded) + "."
		}
		hint := consoleapi.CapacityHint{Resource: k.resource, Text: text}
		if k.cluster != "" {
			hint.Cluster = optional.Pointer(k.cluster)
		}
		out = append(out, hint)
	}
	return out
}

// listed are counts in words, the greatest first.
func listed(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", counts[name], strings.ReplaceAll(name, "_", " "))
	}
	return strings.Join(names, ", ")
}
