// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupods

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Pod is a pod that asks for an accelerator.
type Pod struct {
	Namespace, Name, UID string
	Node                 string // "": no node was found for it
	Service              string // service.name
	Phase                corev1.PodPhase
	Deleted              bool // it has a deletion timestamp
	// Up reports that all accelerator containers are running, Started the newest
	// start among them.
	Up      bool
	Started time.Time
	// LastRun is for how long the container that started last ran before, -1
	// where it never did.
	LastRun time.Duration
	// Devices is how many the containers that stay have: by requests and claims, each once.
	// 0 where only init containers that end ask for some, and for pods that reserve
	// boards for others.
	Devices int
	// Scheduling is nil unless a member needs it.
	Scheduling *Scheduling
}

// Scheduling is what the scheduler sees of a pod.
type Scheduling struct {
	Created time.Time
	// Scheduled is when a node was found; zero where none was.
	Scheduled time.Time
	// Reason and Message are those of the condition PodScheduled where it is not true;
	// "" where the scheduler did not try. Message has at most maxMessage bytes.
	Reason, Message string
	// Queue is where the pod waits, as its labels or annotations name it; "" for none.
	Queue string
	// Requests are the devices by resource. An extended resource that a claim serves is that
	// claim. Every other one is requested as
	// the scheduler counts it: the larger of what the containers with their sidecars need
	// and what the largest init container needs.
	Requests []Request
	Amount
}

// Request is a number of devices of one resource.
type Request struct {
	// Resource is the name of an extended resource, or of a device class that is requested as
	// one. With Claim it is the driver of the devices that were allocated, and until then the
	// device class.
	Resource string
	// Claim is the name of the ResourceClaim, "" for an extended resource. Pods that
	// share a claim share its devices.
	Claim string
	Count int
	// Allocated is whether the devices of a claim are. Those of pods on a node always
	// are.
	Allocated bool
}

// Amount is of CPU and memory, as the scheduler counts a pod's request.
type Amount struct {
	CPU    int64 // thousandths of a CPU
	Memory int64 // bytes
}
