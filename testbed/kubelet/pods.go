// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
)

// allocations are the pods of a node and what they were given, in memory alone. Its
// methods may be called at the same time.
type allocations struct {
	listFinished, noDynamicResources bool // of Options

	mu      sync.Mutex // guards what follows
	devices map[string][]Device
	pods    []*pod
	order   *rand.Rand // of answers
}

type pod struct {
	Pod
	containers []*container
	finished   bool
}

type container struct {
	Container
	held   []held
	forced []held // what a fault makes the API report
	claims []Claim
}

// held is a device with the NUMA nodes that it had when it was given away: the
// kubelet keeps them in its checkpoint.
type held struct {
	resource string
	device   Device
}

// AddPod declares a pod with its containers, in the order of the spec: the
// kubelet lists it whether or not it has devices. Containers that are there
// already stay as they are.
func (a *allocations) AddPod(p Pod, containers ...Container) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.add(p, containers...)
	return err
}

// add finds or makes a pod and its containers; an error changes nothing.
func (a *allocations) add(p Pod, containers ...Container) (*pod, error) {
	if err := named(p, containers...); err != nil {
		return nil, err
	}
	found := a.find(p)
	if found == nil {
		found = &pod{Pod: p}
		a.pods = append(a.pods, found)
	}
	for _, c := range containers {
		if found.container(c.Name) == nil {
			found.containers = append(found.containers, &container{Container: c})
		}
	}
	return found, nil
}

// named is an error for a pod or container without a name.
func named(p Pod, containers ...Container) error {
	if p.Namespace == "" || p.Name == "" {
		return errors.New("a pod needs namespace and name")
	}
	for _, c := range containers {
		if c.Name == "" {
			return errors.New("a container needs a name")
		}
	}
	return nil
}

func (a *allocations) find(p Pod) *pod {
	for _, known := range a.pods {
		if known.Pod == p {
			return known
		}
	}
	return nil
}

func (p *pod) container(name string) *container {
	for _, c := range p.containers {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Finish marks that a pod succeeded or failed and is still in the API server:
// its devices are free, and it is listed only with ListFinished.
func (a *allocations) Finish(p Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.find(p); found != nil {
		found.finished = true
	}
}

// Release forgets a pod: its devices are free. A pod that is unknown is no error.
func (a *allocations) Release(p Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods = slices.DeleteFunc(a.pods, func(known *pod) bool { return known.Pod == p })
}

// Owners is the truth: who has each device, by the plugin's id or by DRAID.
// A device has several owners only through a shared ResourceClaim. What faults
// make the API report is not in it.
func (a *allocations) Owners() map[string][]Owner {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string][]Owner{}
	for _, p := range a.pods {
		if p.finished {
			continue
		}
		for _, c := range p.containers {
			for _, h := range c.held {
				out[h.device.ID] = append(out[h.device.ID], Owner{Pod: p.Pod, Container: c.Name, Resource: h.resource})
			}
			for _, claim := range c.claims {
				for _, d := range claim.Devices {
					id := DRAID(d.Driver, d.Pool, d.Device)
					out[id] = append(out[id], Owner{Pod: p.Pod, Container: c.Name, Resource: d.Driver, Claim: claim.Namespace + "/" + claim.Name})
				}
			}
		}
	}
	return out
}
