// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Manager is what gives the devices of a node to owners. A node may have both.
type Manager uint8

const (
	// Kubelet gives devices to containers.
	Kubelet Manager = iota
	// Slurm gives devices to jobs.
	Slurm
	managers
)

// managerOf is the manager that points of a gpu.attribution.source are of.
func managerOf(source string) Manager {
	if strings.HasPrefix(source, names.SourceSlurm) {
		return Slurm
	}
	return Kubelet
}

// Reporter is the manager of a node. Each has snapshots of its own.
type Reporter struct {
	Node
	Manager
}

func (r Reporter) id() string {
	if r.Manager == Slurm {
		return r.Node.id() + "\x00slurm"
	}
	return r.Node.id()
}

func (r Reporter) clone() Reporter { return Reporter{r.Node.clone(), r.Manager} }

// answer is what the nodes of one manager know of a device.
type answer struct {
	found *Fact // nil: nothing that counts
	stale bool  // what one of them knows is too old
}

func (a *answer) add(f *Fact, expired bool) {
	switch {
	case f == nil:
	case expired:
		a.stale = true
	case a.found == nil:
		a.found = f
	case !a.found.agrees(f):
		// Two nodes list one device, as after a machine got a new name.
		a.found = contested
	}
}

func (a *answer) fact() *Fact {
	switch {
	case a.found != nil:
		return a.found
	case a.stale:
		return expired
	}
	return unknown
}

// both is what is known of a device from the kubelet and from Slurm. What one of them has free
// the other may have given away; what both have given away is contested, unless Slurm's daemon
// runs in a pod (nested): then the pod has the device, and the job has it within the pod.
func both(kubelet, slurm *Fact, nested bool) *Fact {
	switch {
	case slurm.State == Unknown:
		return kubelet
	case kubelet.State == Unknown, kubelet.State == Free:
		return slurm
	case slurm.State == Free, slurm.State == Expired:
		return kubelet
	case nested && kubelet.State == Owned && slurm.State == Owned:
		f := &Fact{State: Owned, Owner: kubelet.Owner, DRA: kubelet.DRA, Since: max(kubelet.Since, slurm.Since)}
		f.Owner.Job = slurm.Owner.Job
		return f
	case nested:
		return kubelet // the pod is certain, or is not known
	case kubelet.State == Expired:
		return slurm
	case kubelet.State == MIGParent && slurm.State == MIGParent:
		return migParent
	}
	return contested
}
