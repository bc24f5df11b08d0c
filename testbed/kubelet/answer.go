// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"maps"
	"math/rand/v2"
	"slices"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// list is the answer to List.
func (a *allocations) list() *podresources.ListPodResourcesResponse {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := &podresources.ListPodResourcesResponse{}
	for _, p := range a.pods {
		if !p.finished || a.listFinished {
			out.PodResources = append(out.PodResources, a.describe(p))
		}
	}
	shuffle(a.order, out.PodResources)
	return out
}

// get is the answer to Get, or nil for a pod that is unknown or finished.
func (a *allocations) get(namespace, name string) *podresources.PodResources {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.pods {
		if p.Namespace == namespace && p.Name == name && (!p.finished || a.listFinished) {
			return a.describe(p)
		}
	}
	return nil
}

// allocatable is the answer to GetAllocatableResources: what is healthy, given
// away or not, without devices of ResourceClaims.
func (a *allocations) allocatable() *podresources.AllocatableResourcesResponse {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []held
	for _, resource := range slices.Sorted(maps.Keys(a.devices)) {
		for _, d := range a.devices[resource] {
			if d.Healthy {
				all = append(all, held{resource, d})
			}
		}
	}
	return &podresources.AllocatableResourcesResponse{Devices: a.perNUMANode(all)}
}

// describe is one pod: sidecars first, then app containers.
func (a *allocations) describe(p *pod) *podresources.PodResources {
	out := &podresources.PodResources{Namespace: p.Namespace, Name: p.Name}
	for _, kind := range []Kind{Sidecar, App} {
		for _, c := range p.containers {
			if c.Kind != kind {
				continue
			}
			r := &podresources.ContainerResources{Name: c.Name, Devices: a.perNUMANode(slices.Concat(c.held, c.forced))}
			if !a.noDynamicResources {
				for _, claim := range c.claims {
					r.DynamicResources = append(r.DynamicResources, describeClaim(claim))
				}
			}
			out.Containers = append(out.Containers, r)
		}
	}
	return out
}

// perNUMANode has one entry for each device and NUMA node, in any order.
func (a *allocations) perNUMANode(all []held) []*podresources.ContainerDevices {
	var out []*podresources.ContainerDevices
	for _, h := range all {
		entry := func() *podresources.ContainerDevices {
			return &podresources.ContainerDevices{ResourceName: h.resource, DeviceIds: []string{h.device.ID}}
		}
		if len(h.device.NUMA) == 0 {
			out = append(out, entry())
		}
		for _, id := range h.device.NUMA {
			e := entry()
			e.Topology = &podresources.TopologyInfo{Nodes: []*podresources.NUMANode{{ID: id}}}
			out = append(out, e)
		}
	}
	shuffle(a.order, out)
	return out
}

// describeClaim repeats, with every device, the CDI names of those of the same
// driver before it, as the kubelet does.
func describeClaim(c Claim) *podresources.DynamicResource {
	out := &podresources.DynamicResource{ClaimName: c.Name, ClaimNamespace: c.Namespace}
	names := map[string][]*podresources.CDIDevice{}
	for _, d := range c.Devices {
		for _, name := range d.CDI {
			names[d.Driver] = append(names[d.Driver], &podresources.CDIDevice{Name: name})
		}
		r := &podresources.ClaimResource{
			CdiDevices: slices.Clone(names[d.Driver]), DriverName: d.Driver, PoolName: d.Pool, DeviceName: d.Device,
		}
		if d.ShareID != "" {
			share := d.ShareID
			r.ShareId = &share
		}
		out.ClaimResources = append(out.ClaimResources, r)
	}
	return out
}

// shuffle puts a list in any order: the kubelet goes through maps.
func shuffle[T any](order *rand.Rand, list []T) {
	order.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}
