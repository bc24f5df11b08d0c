// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package capacity computes what the scheduler of a cluster has to give and what waits for
// it, from nodes and pods. It has no clock, goroutine or I/O.
//
// The idea that devices without CPU or memory beside them are fragmented too is that of
// Fragmentation Gradient Descent (Weng et al., USENIX ATC 2023).
package capacity

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/places"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/pending"
)

// Kind is what devices have in common: the resource under which they are requested, and
// their model, "" where it is not known.
type Kind struct{ Resource, Model string }

// Stranded is why a free device is of no use now.
type Stranded int

// The reasons in order: the first that applies counts.
const (
	Cordoned Stranded = iota
	NotReady
	Tainted
	CPU
	Memory
	NumStranded
)

func (s Stranded) String() string {
	return [NumStranded]string{"cordoned", "not_ready", "tainted", "cpu", "memory"}[s]
}

// Schedulable is the state of a node that takes pods.
const Schedulable = NumStranded

// Node is a node of the cluster. It is immutable.
type Node struct {
	Name    string
	Devices []Devices // by resource, each once; none on a node without accelerators
	CPU     int64     // allocatable, thousandths of a CPU
	Memory  int64     // allocatable, bytes
	// Closed is Cordoned, NotReady or Tainted, and Schedulable on a node that takes pods.
	Closed Stranded
	// Odd is how many of its quantities are no whole, positive number. They are left out.
	Odd int
}

// Devices are those of one kind on a node.
type Devices struct {
	Kind
	Allocatable int
	// Unknown: how many can be allocated is not known, so that there is no figure.
	Unknown bool
}

// Sizes are the requests of which fit is computed, in devices.
var Sizes = [...]int{1, 2, 4, 8}

// Figures are what is known at one moment.
type Figures struct {
	Nodes   []NodeFigures // by node, resource and model
	Kinds   []KindFigures // by resource and model
	Waiting []Waiting     // in no order
	Oldest  []Oldest      // in no order
	Problems
}

// NodeFigures are about the devices of one kind on a node.
type NodeFigures struct {
	Node string
	Kind
	Allocatable, Requested, Free, Stranded int
}

// KindFigures are about the devices of one kind in the cluster.
type KindFigures struct {
	Kind
	Stranded [NumStranded]int
	Free     int // on nodes that take pods
	Fit      [len(Sizes)]int
	// Fragmentation is of 0 to 1, and NaN where no device is free; that of Expected where
	// no request is known too.
	Fragmentation [len(Sizes)]float64
	Expected      float64
}

// Waiting is what pods without a node ask for.
type Waiting struct {
	places.Place
	Reason        pending.Reason
	Resource      string
	Pods, Devices int
}

// Oldest is the pod that waits for longest.
type Oldest struct {
	places.Place
	Reason pending.Reason
	Age    time.Duration
}

// Problems count objects that cannot be taken as they are.
type Problems struct {
	Quantities    int // of nodes, no whole numbers
	UnknownNodes  int // pods bound to nodes that are not there
	Overcommitted int // kinds of devices on a node of which more are requested than there are
	Negative      int // pods that wait and were created in the future
	Forgotten     int // pods that ended and are no longer remembered, for lack of room
	// Absurd counts pods that request more devices than any node could ever have; their devices
	// count nowhere. AbsurdPod is one of them, as namespace/name.
	Absurd    int
	AbsurdPod string
	// Example is a node that is overcommitted, "" where none is.
	Example NodeFigures
}
