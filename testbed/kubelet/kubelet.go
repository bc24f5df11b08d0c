// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Options are what kind of kubelet it is. The zero value is that of Kubernetes
// 1.35 with its defaults.
type Options struct {
	Seed uint64 // of the order in which it lists things
	// ListFinished lists finished pods with the devices that they had, as before 1.34.
	ListFinished bool
	// NoDynamicResources leaves devices of ResourceClaims out, as before 1.34.
	NoDynamicResources bool
	NoGet              bool // the call Get is switched off, as before 1.34
	// QPS and Burst limit the calls of all clients together; default 100 and 10,
	// a negative QPS is no limit.
	QPS   float64
	Burst int
	Clock func() time.Time // of that limit; default time.Now
}

// Pod names a pod. UID may be empty; two pods of one name and different uids
// are two pods, which the API shows without a difference.
type Pod struct{ Namespace, Name, UID string }

// Kind is how the API treats a container.
type Kind int

// The kinds of containers.
const (
	App     Kind = iota
	Sidecar      // restartable init container: listed, before the others
	Init         // ordinary init container: never listed; its devices pass to the app containers
)

// Container is one container of a pod's spec.
type Container struct {
	Name string
	Kind Kind
}

// Owner is a container that really has a device.
type Holder struct {
	Pod       Pod
	Container string
	Resource  string // of the device plugin; for DRA the driver's name
	Claim     string // namespace/name of the ResourceClaim; empty for a device plugin
}

// Kubelet is one node's kubelet. Its methods may be called at the same time.
type Kubelet struct {
	opts Options

	mu       sync.Mutex // never held over I/O
	devices  map[string][]Device
	pods     []*pod
	faults   Faults
	changed  chan struct{} // closed when the faults change
	order    *rand.Rand
	tokens   float64
	refilled time.Time

	serving sync.Mutex // guards served: one Serve or Stop at a time
	served  *served
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

// New makes a kubelet without devices and pods. Serve lets clients in.
func New(opts Options) *Kubelet {
	if opts.QPS == 0 {
		opts.QPS = 100
	}
	if opts.Burst == 0 {
		opts.Burst = 10
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	return &Kubelet{
		opts: opts, devices: map[string][]Device{}, changed: make(chan struct{}),
		order:  rand.New(rand.NewPCG(opts.Seed, 1)),
		tokens: float64(opts.Burst), refilled: opts.Clock(),
	}
}

// AddPod declares a pod with its containers, in the order of the spec: the
// kubelet lists it whether or not it has devices. Containers that are there
// already stay as they are.
func (k *Kubelet) AddPod(p Pod, containers ...Container) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, err := k.add(p, containers...)
	return err
}

// add finds or makes a pod and its containers; an error changes nothing.
func (k *Kubelet) add(p Pod, containers ...Container) (*pod, error) {
	if err := named(p, containers...); err != nil {
		return nil, err
	}
	found := k.find(p)
	if found == nil {
		found = &pod{Pod: p}
		k.pods = append(k.pods, found)
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

func (k *Kubelet) find(p Pod) *pod {
	for _, known := range k.pods {
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
func (k *Kubelet) Finish(p Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if found := k.find(p); found != nil {
		found.finished = true
	}
}

// Release forgets a pod: its devices are free. A pod that is unknown is no error.
func (k *Kubelet) Release(p Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = slices.DeleteFunc(k.pods, func(known *pod) bool { return known.Pod == p })
}

// Owners is the truth: who has each device, by the plugin's id or by DRAID.
// A device has several owners only through a shared ResourceClaim. What faults
// make the API report is not in it.
func (k *Kubelet) Holders() map[string][]Holder {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := map[string][]Holder{}
	for _, p := range k.pods {
		if p.finished {
			continue
		}
		for _, c := range p.containers {
			for _, h := range c.held {
				out[h.device.ID] = append(out[h.device.ID], Holder{Pod: p.Pod, Container: c.Name, Resource: h.resource})
			}
			for _, claim := range c.claims {
				for _, d := range claim.Devices {
					id := DRAID(d.Driver, d.Pool, d.Device)
					out[id] = append(out[id], Holder{Pod: p.Pod, Container: c.Name, Resource: d.Driver, Claim: claim.Namespace + "/" + claim.Name})
				}
			}
		}
	}
	return out
}
