// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"fmt"
	"slices"
)

// Claim is a ResourceClaim that a container uses, with the devices that were
// given to it.
type Claim struct {
	Namespace, Name, UID string
	Devices              []ClaimDevice
}

// ClaimDevice is a device of a ResourceClaim.
type ClaimDevice struct {
	Driver, Pool, Device string
	ShareID              string // of a device that is shared by capacity; empty: none
	// CDI are the qualified names of CDI devices; none: the name that NVIDIA's
	// driver gives, k8s.<driver>/claim=<claim uid>-<device>.
	CDI []string
}

// SetDevices sets what a resource has from now on, as a plugin's ListAndWatch
// does. A device that vanishes stays with the container that has it, and is
// given to no other. No devices: the plugin is gone, or has not registered
// again since the kubelet's restart.
func (a *allocations) SetDevices(resource string, devices []Device) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(devices) == 0 {
		delete(a.devices, resource)
		return
	}
	copied := slices.Clone(devices)
	for i := range copied {
		copied[i].NUMA = slices.Clone(copied[i].NUMA)
	}
	a.devices[resource] = copied
}

// Allocate gives a container n devices of a resource and returns all that it
// has of it: free and healthy ones, the first that the plugin named; shares go
// to the device with the fewest given away. Asked again, as after a restart, it
// gives what is missing to n. A pod or container that is unknown is added, as
// an app container. With too few devices it changes nothing and returns an error.
func (a *allocations) Allocate(p Pod, containerName, resource string, n int) ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := named(p, Container{Name: containerName}); err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("%d devices cannot be given", n)
	}
	known := a.find(p)
	if known != nil && known.finished {
		return nil, fmt.Errorf("pod %s/%s is finished", p.Namespace, p.Name)
	}
	var ids []string
	var chosen []held
	if known != nil {
		if c := known.container(containerName); c != nil {
			ids = c.ids(resource)
		}
		chosen = known.fromInit(containerName, resource, n-len(ids))
	}
	if missing := n - len(ids) - len(chosen); missing > 0 {
		free := a.free(resource)
		if missing > len(free) {
			return nil, fmt.Errorf("%s: %d devices are wanted and %d are free", resource, missing, len(free))
		}
		for _, d := range free[:missing] {
			chosen = append(chosen, held{resource, d})
		}
	}
	found, err := a.add(p, Container{Name: containerName})
	if err != nil {
		return nil, err
	}
	c := found.container(containerName)
	for _, h := range chosen {
		found.leaveInit(h)
		ids = append(ids, h.device.ID)
	}
	c.held = append(c.held, chosen...)
	return ids, nil
}

// ids are what a container has of a resource.
func (c *container) ids(resource string) (out []string) {
	for _, h := range c.held {
		if h.resource == resource {
			out = append(out, h.device.ID)
		}
	}
	return out
}

// fromInit are up to n devices that the pod's init containers have: they pass
// to an app container.
func (p *pod) fromInit(to, resource string, n int) (out []held) {
	if c := p.container(to); c != nil && c.Kind != App {
		return nil
	}
	for _, c := range p.containers {
		for _, h := range c.held {
			if c.Kind == Init && h.resource == resource && len(out) < n {
				out = append(out, h)
			}
		}
	}
	return out
}

// leaveInit takes a device from the init container that has it.
func (p *pod) leaveInit(h held) {
	for _, c := range p.containers {
		if c.Kind == Init {
			c.held = slices.DeleteFunc(c.held, func(o held) bool { return o.resource == h.resource && o.device.ID == h.device.ID })
		}
	}
}

// free lists what can be given of a resource, in the order in which it is to be
// given: that of the plugin, but shares of devices in turn.
func (a *allocations) free(resource string) []Device {
	taken := map[string]bool{}
	given := map[string]int{} // shares of each device
	for _, p := range a.pods {
		for _, c := range p.containers {
			for _, h := range c.held {
				if h.resource == resource && !p.finished {
					taken[h.device.ID] = true
					given[shared(h.device.ID)]++
				}
			}
		}
	}
	type candidate struct {
		device Device
		turn   int
	}
	var all []candidate
	for _, d := range a.devices[resource] {
		if d.Healthy && !taken[d.ID] {
			taken[d.ID] = true // once, however often the plugin names it
			all = append(all, candidate{d, given[shared(d.ID)]})
			given[shared(d.ID)]++
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.turn - b.turn })
	out := make([]Device, 0, len(all))
	for _, c := range all {
		out = append(out, c.device)
	}
	return out
}

// AllocateClaim lets a container use the devices of a ResourceClaim, which the
// scheduler has chosen. Several containers and pods may use one claim.
func (a *allocations) AllocateClaim(p Pod, containerName string, claim Claim) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if claim.Name == "" || claim.Namespace == "" {
		return errors.New("a claim needs namespace and name")
	}
	claim.Devices = slices.Clone(claim.Devices)
	for i := range claim.Devices {
		d := &claim.Devices[i]
		if d.Driver == "" || d.Pool == "" || d.Device == "" {
			return errors.New("a device of a claim needs driver, pool and device")
		}
		if d.CDI = slices.Clone(d.CDI); len(d.CDI) == 0 {
			d.CDI = []string{fmt.Sprintf("k8s.%s/claim=%s-%s", d.Driver, claim.UID, d.Device)}
		}
	}
	found, err := a.add(p, Container{Name: containerName})
	if err != nil {
		return err
	}
	c := found.container(containerName)
	for _, known := range c.claims {
		if known.Namespace == claim.Namespace && known.Name == claim.Name {
			return nil // asked again, as after a restart
		}
	}
	c.claims = append(c.claims, claim)
	return nil
}

// Force makes the API report that a container has devices, whatever really has
// them: one device under two pods, a pod that the API server does not know, ids
// that no plugin gives. It changes neither what is free nor Owners; Release
// takes it back.
func (a *allocations) Force(p Pod, containerName, resource string, devices ...Device) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, err := a.add(p, Container{Name: containerName})
	if err != nil {
		return err
	}
	c := found.container(containerName)
	for _, d := range devices {
		d.NUMA = slices.Clone(d.NUMA)
		c.forced = append(c.forced, held{resource, d})
	}
	return nil
}
