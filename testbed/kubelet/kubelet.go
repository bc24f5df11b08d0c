// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"math/rand/v2"
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
type Owner struct {
	Pod       Pod
	Container string
	Resource  string // of the device plugin; for DRA the driver's name
	Claim     string // namespace/name of the ResourceClaim; empty for a device plugin
}

// Kubelet is one node's kubelet. Its methods may be called at the same time.
type Kubelet struct {
	allocations
	gate  gate
	noGet bool

	serving sync.Mutex // guards served: one Serve or Stop at a time
	served  *served
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
		noGet: opts.NoGet,
		allocations: allocations{
			listFinished: opts.ListFinished, noDynamicResources: opts.NoDynamicResources,
			devices: map[string][]Device{}, order: rand.New(rand.NewPCG(opts.Seed, 1)),
		},
		gate: gate{
			qps: opts.QPS, burst: float64(opts.Burst), clock: opts.Clock,
			changed: make(chan struct{}), tokens: float64(opts.Burst), refilled: opts.Clock(),
		},
	}
}
