// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/capacity"
)

// SliceKeeper takes of a ResourceSlice what is needed.
type SliceKeeper struct{ Drivers map[string]bool }

// Slice is what is kept of a ResourceSlice.
type Slice struct {
	node  string // "": which nodes reach its devices is not followed
	pool  pool
	count int64 // of the pool's slices
	// generation is of the pool: older slices do not count.
	generation int64
	devices    int
	model      string // of all its devices, "" where it is not one
	// parts: devices share counters, so that not all can be allocated at once.
	parts bool
}

type pool struct{ driver, name string }

// maxModel bounds the name of a model, in bytes.
const maxModel = 128

// Keep is the slice as far as it is needed.
func (k *SliceKeeper) Keep(obj any) (Slice, bool) {
	s, ok := obj.(*resourcev1.ResourceSlice)
	if !ok || !k.Drivers[s.Spec.Driver] {
		return Slice{}, false
	}
	if s.Spec.NodeName == nil || *s.Spec.NodeName == "" {
		return Slice{pool: pool{driver: s.Spec.Driver}}, true
	}
	out := Slice{
		node: *s.Spec.NodeName, pool: pool{s.Spec.Driver, s.Spec.Pool.Name},
		count: s.Spec.Pool.ResourceSliceCount, generation: s.Spec.Pool.Generation,
		parts: len(s.Spec.SharedCounters) > 0,
	}
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		out.parts = out.parts || len(d.ConsumesCounters) > 0
		if slices.ContainsFunc(d.Taints, func(t resourcev1.DeviceTaint) bool {
			return t.Effect == resourcev1.DeviceTaintEffectNoSchedule || t.Effect == resourcev1.DeviceTaintEffectNoExecute
		}) {
			continue
		}
		model := ""
		if a := d.Attributes["productName"]; a.StringValue != nil && strings.HasPrefix(s.Spec.Driver, "gpu.nvidia.") {
			model = safetext.Strip(*a.StringValue, maxModel)
		}
		if out.devices > 0 && model != out.model {
			model = ""
		}
		out.model = model
		out.devices++
	}
	return out, true
}

// onNodes are the devices of slices by node. How many a pool has is not known
// until its newest generation is complete.
func onNodes(all []Slice) map[string][]capacity.Devices {
	newest, there := map[pool]int64{}, map[pool]int64{}
	for _, s := range all {
		switch generation, known := newest[s.pool]; {
		case !known || s.generation > generation:
			newest[s.pool], there[s.pool] = s.generation, 1
		case s.generation == generation:
			there[s.pool]++
		}
	}
	type at struct{ node, driver string }
	sums := map[at]*capacity.Devices{}
	// models that differ leave none, in whichever order the slices are
	mixed := map[at]bool{}
	for _, s := range all {
		if s.generation != newest[s.pool] {
			continue
		}
		is := at{s.node, s.pool.driver}
		d := sums[is]
		if d == nil {
			d = &capacity.Devices{Kind: capacity.Kind{Resource: s.pool.driver, Model: s.model}}
			sums[is] = d
		}
		d.Unknown = d.Unknown || s.parts || there[s.pool] != s.count
		mixed[is] = mixed[is] || s.devices > 0 && d.Allocatable > 0 && s.model != d.Model
		if d.Allocatable == 0 {
			d.Model = s.model
		}
		d.Allocatable += s.devices
	}
	out := map[string][]capacity.Devices{}
	for is, d := range sums {
		if mixed[is] {
			d.Model = ""
		}
		out[is.node] = append(out[is.node], *d)
	}
	for node := range out {
		slices.SortFunc(out[node], func(a, b capacity.Devices) int { return strings.Compare(a.Resource, b.Resource) })
	}
	return out
}

// WithSlices are nodes with the devices of slices beside their own. Pods on any node may hold
// devices of slices without a node, so that those of their driver are unknown on every node.
func WithSlices(nodes []*capacity.Node, all []Slice) []*capacity.Node {
	shared := map[string]bool{}
	own := make([]Slice, 0, len(all))
	for _, s := range all {
		if s.node == "" {
			shared[s.pool.driver] = true
		} else {
			own = append(own, s)
		}
	}
	more := onNodes(own)
	if len(more)+len(shared) == 0 {
		return nodes
	}
	out := make([]*capacity.Node, len(nodes))
	for i, n := range nodes {
		has := slices.DeleteFunc(more[n.Name], func(d capacity.Devices) bool { return shared[d.Resource] })
		for _, driver := range slices.Sorted(maps.Keys(shared)) {
			has = append(has, capacity.Devices{Kind: capacity.Kind{Resource: driver}, Unknown: true})
		}
		if len(has) > 0 {
			with := *n
			with.Devices = append(slices.Clone(n.Devices), has...)
			n = &with
		}
		out[i] = n
	}
	return out
}
