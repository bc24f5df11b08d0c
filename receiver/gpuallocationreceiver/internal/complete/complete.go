// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package complete distinguishes an answer of the kubelet that names the node's pods from
// one of a kubelet that does not know them yet.
//
// A kubelet serves its pod-resources API as soon as it starts, and lists the pods
// that it has been given by then: until the API server has answered, none but
// static ones, while all containers run on. Such an answer has no information about the
// owner of a device.
package complete

import "time"

// grace is for how long after a restart a kubelet that names no owner is taken for
// one without its pods, where the collector runs in none of them. It bounds for
// how long the owners of a node that was really drained meanwhile stay unknown.
const grace = 5 * time.Minute

// Pod is a pod's name; the zero Pod is none.
type Pod struct{ Namespace, Name string }

// Answer is what matters of one answer to List.
type Answer struct {
	At time.Time
	// Served is when the socket was made, zero where that is not known.
	Served time.Time
	// Pods are all pods that are listed: true for those with devices.
	Pods map[Pod]bool
}

// Judge knows the answers that it found complete. It is not safe for concurrent use.
type Judge struct {
	// Own is the pod that the collector runs in, which every complete answer has;
	// the zero Pod outside of one.
	Own Pod

	served    time.Time
	since     time.Time // since when the socket is known
	restarted bool      // no complete answer since the socket was recreated
	missed    bool      // an owner was missing in the answer before
	owners    map[Pod]bool
}

// Complete reports whether an answer names the pods of the node. One that does is
// what the next ones are compared with.
func (j *Judge) Complete(a Answer) bool {
	if !a.Served.Equal(j.served) || j.since.IsZero() {
		j.restarted = !j.since.IsZero()
		j.served, j.since, j.missed = a.Served, a.At, false
	}
	if !j.named(&a) {
		return false
	}
	// Pods are added one by one: what a kubelet that has just been given them does
	// not list, the next answer has.
	if j.restarted && !j.missed && j.lost(a.Pods) {
		j.missed = true
		return false
	}
	j.restarted, j.owners = false, map[Pod]bool{}
	for p, owns := range a.Pods {
		if owns {
			j.owners[p] = true
		}
	}
	return true
}

// named reports whether the pods that an answer must have are in it.
func (j *Judge) named(a *Answer) bool {
	if j.Own != (Pod{}) {
		_, ok := a.Pods[j.Own]
		return ok
	}
	knew := j.owners != nil && !j.restarted // its pods: a kubelet that runs forgets none
	if knew || a.Served.IsZero() {
		return true
	}
	// The wall clock may have been set since; the other cannot.
	if max(a.At.Sub(j.served), a.At.Sub(j.since)) >= grace {
		return true
	}
	if len(j.owners) == 0 {
		return len(a.Pods) > 0
	}
	for _, owns := range a.Pods {
		if owns {
			return true
		}
	}
	return false
}

// lost reports whether a pod that owned something is not listed.
func (j *Judge) lost(pods map[Pod]bool) bool {
	for p := range j.owners {
		if _, listed := pods[p]; !listed {
			return true
		}
	}
	return false
}
