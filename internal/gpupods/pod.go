// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupods

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	// Count is at most maxRequest.
	Count int
	// Absurd is whether so many devices are requested that no node could ever have them. Count is
	// 0 then, so that no pod distorts a sum.
	Absurd bool
	// Allocated is whether the devices of a claim are. Those of pods on a node always
	// are.
	Allocated bool
}

// maxRequest is more devices of a resource than any node has, in the smallest of parts.
const maxRequest = 1 << 14

// request is a request for n devices.
func request(resource, claim string, n int64) Request {
	if n < 0 || n > maxRequest {
		return Request{Resource: resource, Claim: claim, Absurd: true}
	}
	return Request{Resource: resource, Claim: claim, Count: int(n)}
}

// devices is a quantity of devices, rounded up, and more than maxRequest for each that is.
func devices(q resource.Quantity) int64 {
	if q.CmpInt64(maxRequest) > 0 {
		return maxRequest + 1 // Value is another number where the quantity does not fit into 64 bits
	}
	return q.Value()
}

// Amount is of CPU and memory, as the scheduler counts a pod's request.
type Amount struct {
	CPU    int64 // thousandths of a CPU
	Memory int64 // bytes
}

// maxAmount is more memory than any machine has, 256 TiB, and more CPUs.
const maxAmount = 1 << 48

// AmountOf returns what a list has of CPU and memory, both from 0 to maxAmount.
func AmountOf(list corev1.ResourceList) Amount {
	bounded := func(q *resource.Quantity, of func() int64) int64 {
		if q.CmpInt64(maxAmount) > 0 {
			return maxAmount
		}
		return min(max(0, of()), maxAmount)
	}
	return Amount{CPU: bounded(list.Cpu(), list.Cpu().MilliValue), Memory: bounded(list.Memory(), list.Memory().Value)}
}

// Plus returns the sum of two amounts, at most maxAmount.
func (a Amount) Plus(b Amount) Amount {
	return Amount{CPU: min(a.CPU+b.CPU, maxAmount), Memory: min(a.Memory+b.Memory, maxAmount)}
}
