// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
)

// pool is a pool of devices of one DRA driver.
type pool struct{ driver, name string }

// poolDevice is a device as DRA names it.
type poolDevice struct {
	pool
	device string
}

func (d poolDevice) String() string { return d.driver + "/" + d.name + "/" + d.device }

// attributes are what a driver says of a device, as far as it is needed. Every
// one of them may be "".
type attributes struct {
	kind    string // gpu, mig, vfio
	uuid    string
	parent  string // GPU-<uuid> of a MIG device
	profile string
}

const (
	kindMIG  = "mig"
	kindVFIO = "vfio"
)

// gpu is the hw.id, "" where the attributes do not tell it.
func (a attributes) gpu() string {
	if deviceid.IsGPU(a.uuid) && a.kind != kindVFIO && a.kind != kindMIG {
		return a.uuid
	}
	return ""
}

// physical is the GPU that the device is, is a part of, or passes through.
func (a attributes) physical() string {
	if a.parent != "" {
		return a.parent
	}
	if deviceid.IsGPU(a.uuid) {
		return a.uuid
	}
	return ""
}

// keptDevice is what is kept of a device.
type keptDevice struct {
	name string
	attributes
	counters []string // names of the counter sets that it draws on
}

// keptSlice is what is kept of a ResourceSlice.
type keptSlice struct {
	pool              pool
	generation, count int64
	devices           []keptDevice
}

// sliceKeeper keeps the slices of some drivers.
type sliceKeeper struct{ drivers map[string]bool }

func (k sliceKeeper) keep(obj any) (keptSlice, bool) {
	slice, ok := obj.(*resourcev1.ResourceSlice)
	if !ok || !k.drivers[slice.Spec.Driver] {
		return keptSlice{}, false
	}
	kept := keptSlice{
		pool:       pool{slice.Spec.Driver, slice.Spec.Pool.Name},
		generation: slice.Spec.Pool.Generation,
		count:      slice.Spec.Pool.ResourceSliceCount,
		devices:    make([]keptDevice, 0, len(slice.Spec.Devices)),
	}
	for i := range slice.Spec.Devices {
		d := &slice.Spec.Devices[i]
		text := func(name resourcev1.QualifiedName) string {
			a, ok := d.Attributes[name]
			if !ok {
				a = d.Attributes[resourcev1.QualifiedName(slice.Spec.Driver)+"/"+name]
			}
			if a.StringValue == nil || !isID(*a.StringValue) {
				return ""
			}
			return *a.StringValue
		}
		out := keptDevice{name: d.Name, attributes: attributes{
			kind: text("type"), uuid: text("uuid"), parent: text("parentUUID"), profile: text("profile"),
		}}
		for _, c := range d.ConsumesCounters {
			out.counters = append(out.counters, c.CounterSet)
		}
		kept.devices = append(kept.devices, out)
	}
	return kept, true
}

// pools is what all slices of a node say, each pool as of its newest generation.
// It is immutable.
type pools struct {
	devices map[poolDevice]keptDevice
	// ordered are the devices of complete pools, those of which all slices are
	// there. A device that is missing in another may be in a slice to come.
	ordered []poolDevice
	mig     map[string]attributes // MIG devices by UUID
	refused int                   // devices beyond max_devices
}

// newPools reads slices, at most limit devices.
func newPools(kept map[string]keptSlice, limit int) *pools {
	generation := map[pool]int64{}
	count := map[pool]int64{}
	for _, s := range kept {
		switch newest, ok := generation[s.pool]; {
		case !ok || s.generation > newest:
			generation[s.pool], count[s.pool] = s.generation, 1
		case s.generation == newest:
			count[s.pool]++
		}
	}
	names := make([]string, 0, len(kept))
	for name := range kept {
		names = append(names, name)
	}
	slices.Sort(names)

	p := &pools{devices: map[poolDevice]keptDevice{}, mig: map[string]attributes{}}
	twice := map[poolDevice]bool{}
	var complete []poolDevice
	for _, name := range names {
		s := kept[name]
		if s.generation != generation[s.pool] {
			continue
		}
		for _, d := range s.devices {
			id := poolDevice{s.pool, d.name}
			if _, ok := p.devices[id]; ok {
				twice[id] = true // which of the two it is cannot be known
				continue
			}
			if len(p.devices) >= limit {
				p.refused++
				continue
			}
			p.devices[id] = d
			if d.kind == kindMIG && d.uuid != "" {
				p.mig[d.uuid] = d.attributes
			}
			if count[s.pool] == s.count {
				complete = append(complete, id)
			}
		}
	}
	for id := range twice {
		p.devices[id] = keptDevice{name: id.device}
	}
	for _, id := range complete {
		if !twice[id] {
			p.ordered = append(p.ordered, id)
		}
	}
	return p
}
