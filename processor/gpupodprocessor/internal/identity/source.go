// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// Source is where an owner is known from, or why it is unknown.
type Source uint8

// The order of those from the exporter's labels matters: where rows of one device
// differ, the later one counts.
const (
	SourceNone         Source = iota // nothing names the owner
	SourceIncomplete                 // a pod without namespace, or the other way round
	SourceShared                     // several containers use it: none of them owns it
	SourceLabels                     // the exporter's labels
	SourceResource                   // k8s.pod.name or slurm.job.id was on the resource already
	SourcePodResources               // gpu.allocation, from the kubelet
	SourceDRA                        // gpu.allocation, from a ResourceClaim
	SourceReplica                    // gpu.allocation: a part of a shared device
	SourceFree                       // gpu.allocation: the device is free
	SourceMIGParent                  // its instances have owners, it has none
	SourceContested                  // gpu.allocation: several own it whole, which is impossible
	SourceExpired                    // gpu.allocation is too old
	SourceBoard                      // the board that it is part of is owned or free as a whole
	SourceUnresolved                 // an allocation of its node is joined to no device
	SourceSlurm                      // gpu.allocation, from Slurm
	SourceCount
)

var sourceNames = [SourceCount]string{
	"none", "incomplete", "shared", "exporter_labels", "resource", "pod_resources", "dra", "replica",
	"free", "mig_parent", "contested", "expired", "board", "unresolved", names.SourceSlurmJobMap,
}

// String is the value of the attribute source.
func (s Source) String() string { return sourceNames[s] }

// Owned reports whether the device has an owner.
func (s Source) Owned() bool {
	switch s {
	case SourceLabels, SourceResource, SourcePodResources, SourceDRA, SourceReplica, SourceSlurm:
		return true
	}
	return false
}

// Allocated reports whether gpu.allocation may be the origin.
func (s Source) Allocated() bool {
	return s == SourceShared || s >= SourcePodResources && s != SourceUnresolved
}

// Unattributed reports whether the device should have an owner and has none.
func (s Source) Unattributed() bool {
	switch s {
	case SourceNone, SourceIncomplete, SourceContested, SourceExpired, SourceUnresolved:
		return true
	}
	return false
}

// SourceOf is the source of an owner by gpu.allocation; SourceNone if that has none.
func SourceOf(f *ownership.Fact) Source {
	switch f.State {
	case ownership.Owned:
		switch {
		case f.DRA:
			return SourceDRA
		case f.Owner.Pod == "":
			return SourceSlurm
		}
		return SourcePodResources
	case ownership.Free:
		return SourceFree
	case ownership.Shared:
		return SourceShared
	case ownership.Contested:
		return SourceContested
	case ownership.Expired:
		return SourceExpired
	case ownership.MIGParent:
		return SourceMIGParent
	}
	return SourceNone
}
