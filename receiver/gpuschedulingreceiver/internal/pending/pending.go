// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package pending knows why a pod has no node, in one word of a closed list.
package pending

import "strings"

// Reason is the value of gpu.pending.reason.
type Reason string

const (
	InsufficientGPU    Reason = "insufficient_gpu"
	Claim              Reason = "claim" // a ResourceClaim is not there, or cannot be allocated
	InsufficientCPU    Reason = "insufficient_cpu"
	InsufficientMemory Reason = "insufficient_memory"
	Volume             Reason = "volume"
	Affinity           Reason = "affinity" // of nodes or pods, selectors and topology spread
	Taint              Reason = "taint"    // cordoned nodes too
	Gated              Reason = "gated"    // a scheduling gate, such as Kueue's, is not removed yet
	SchedulerError     Reason = "scheduler_error"
	NotTried           Reason = "not_tried"
	Other              Reason = "other"
)

// Reasons are all of them. Of several causes in a message the first in this order
// decides: what is about devices, because nodes without them could never take the pod, and
// then what is in short supply before what excludes nodes.
func Reasons() []Reason {
	return []Reason{
		InsufficientGPU, Claim, InsufficientCPU, InsufficientMemory, Volume, Affinity, Taint,
		Gated, SchedulerError, NotTried, Other,
	}
}

// Reasons of the condition PodScheduled, k8s.io/api/core/v1.
const (
	schedulingGated = "SchedulingGated"
	schedulerError  = "SchedulerError"
)

// Of is why a pod waits, from reason and message of its condition PodScheduled, both ""
// where no scheduler looked at it yet. isDevice reports whether a resource is an accelerator.
func Of(reason, message string, isDevice func(resource string) bool) Reason {
	switch reason {
	case schedulingGated:
		return Gated
	case schedulerError:
		return SchedulerError
	case "":
		if message == "" {
			return NotTried
		}
	}
	// What preemption could not do is not why the pod waits.
	message, _, _ = strings.Cut(message, "preemption:")
	lower := strings.ToLower(message)
	short := shortages(message, lower, isDevice)
	for _, cause := range []struct {
		reason Reason
		is     bool
	}{
		{InsufficientGPU, short.device},
		{Claim, has(lower, "resourceclaim", "resource claim", "cannot allocate all claims", "deviceclass")},
		{InsufficientCPU, short.cpu},
		{InsufficientMemory, short.memory},
		// "node(s) had volume node affinity conflict" is about volumes.
		{Volume, has(lower, "volume", "pvc(s)")},
		{Affinity, has(lower, "affinity", "node selector", "topology spread", "requested node name")},
		{Taint, has(lower, "taint", "node(s) were unschedulable")},
	} {
		if cause.is {
			return cause.reason
		}
	}
	return Other
}

func has(text string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// short is what a message has as in short supply.
type short struct{ device, cpu, memory bool }

func (s *short) add(resource string, isDevice func(string) bool) {
	switch {
	case resource == "cpu":
		s.cpu = true
	case resource == "memory":
		s.memory = true
	case isDevice(resource):
		s.device = true
	}
}

// shortages reads "2 Insufficient nvidia.com/gpu" of kube-scheduler and Volcano, and
// "3 node(s) didn't have enough resources: GPUs" of KAI.
func shortages(message, lower string, isDevice func(string) bool) (all short) {
	for rest, found := message, true; found; {
		if _, rest, found = strings.Cut(rest, "Insufficient "); found {
			all.add(word(rest), isDevice)
		}
	}
	for rest, found := lower, true; found; {
		if _, rest, found = strings.Cut(rest, "enough resources: "); !found {
			break
		}
		switch kind := word(rest); {
		case kind == "gpus", kind == "gpu", isDevice(kind):
			all.device = true
		default:
			all.add(kind, isDevice)
		}
	}
	return all
}

// word is what text begins with, up to white space, a comma, or a full stop at its end.
func word(text string) string {
	if end := strings.IndexAny(text, " \t\r\n,;"); end >= 0 {
		text = text[:end]
	}
	return strings.TrimRight(text, ".")
}
