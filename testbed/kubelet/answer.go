// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"maps"
	"slices"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// list is the answer to List.
func (k *Kubelet) list() *podresources.ListPodResourcesResponse {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := &podresources.ListPodResourcesResponse{}
	if k.faults.NoPods {
		return out
	}
	for _, p := range k.pods {
		if !p.finished || k.opts.ListFinished {
			out.PodResources = append(out.PodResources, k.describe(p))
		}
	}
	shuffle(k, out.PodResources)
	return out
}

// get is the answer to Get, or nil for a pod that is unknown or finished.
func (k *Kubelet) get(namespace, name string) *podresources.PodResources {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if p.Namespace == namespace && p.Name == name && (!p.finished || k.opts.ListFinished) {
			return k.describe(p)
		}
	}
	return nil
}

// allocatable is the answer to GetAllocatableResources: what is healthy, given
// away or not, without devices of ResourceClaims.
func (k *Kubelet) allocatable() *podresources.AllocatableResourcesResponse {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []held
	for _, resource := range slices.Sorted(maps.Keys(k.devices)) {
		for _, d := range k.devices[resource] {
			if d.Healthy {
				all = append(all, held{resource, d})
			}
		}
	}
	return &podresources.AllocatableResourcesResponse{Devices: k.perNUMANode(all)}
}

// describe is one pod: sidecars first, then app containers.
func (k *Kubelet) describe(p *pod) *podresources.PodResources {
	out := &podresources.PodResources{Namespace: p.Namespace, Name: p.Name}
	for _, kind := range []Kind{Sidecar, App} {
		for _, c := range p.containers {
			if c.Kind != kind {
				continue
			}
			r := &podresources.ContainerResources{Name: c.Name, Devices: k.perNUMANode(slices.Concat(c.held, c.forced))}
			if !k.opts.NoDynamicResources {
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
func (k *Kubelet) perNUMANode(all []held) []*podresources.ContainerDevices {
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
	shuffle(k, out)
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
func shuffle[T any](k *Kubelet, list []T) {
	k.order.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}
