// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package deviceid

import (
	"strconv"
	"strings"
)

// CutReplica splits a replica's id into the device that is shared and what
// follows it, "::" included. For any other id, replica is "".
func CutReplica(id string) (device, replica string) {
	i := strings.LastIndexByte(id, ':') - 1 // a fast no: most ids have none
	if i <= 0 || id[i] != ':' || !isNumber(id[i+2:]) {
		return id, ""
	}
	return id[:i], id[i:]
}

const slurmIndex = "slurm/"

// SlurmIndex is the unresolved hw.id of the device of a node that has the index in Slurm, as
// SLURM_JOB_GPUS counts: in the order of PCI addresses or in that of minors.
func SlurmIndex(node string, index int) string {
	return Unresolved(node, slurmIndex+strconv.Itoa(index))
}

// Hint is what the id of an unresolved device, the kubelet's or Slurm's, reveals about the
// device that it means.
type Hint struct {
	// Device is the unresolved hw.id without its replica.
	Device string
	// Replica is the suffix of a replica's hw.id, "::<n>", or "".
	Replica string
	// MIGUUID is the MIG instance's own id, MIG-<uuid>, or "".
	MIGUUID string
	// Slurm is Slurm's own index of the device, of SlurmIndex; "" where there is none.
	Slurm string
	// Index is the minor number N of GKE's nvidia<N>, and Instance the M of
	// its /gi<M>; "" where there is none.
	Index, Instance string
}

// ParseUnresolved reads an unresolved hw.id of the node, as Unresolved makes
// it. What it does not know gives a Hint without anything to join by.
func ParseUnresolved(node, hwID string) Hint {
	kubelet, ok := strings.CutPrefix(hwID, node+"/")
	if !ok || node == "" {
		device, replica := CutReplica(hwID)
		return Hint{Device: device, Replica: replica}
	}
	prefix := hwID[:len(hwID)-len(kubelet)]
	device, replica := CutReplica(kubelet)
	if gke, vgpu := cutGKEReplica(kubelet); vgpu {
		device, replica = gke, "::"+kubelet[len(gke)+len("/vgpu"):]
	}
	h := Hint{Device: prefix + device, Replica: replica}
	if IsMIG(device) {
		h.MIGUUID = device
		return h
	}
	if index, ok := strings.CutPrefix(device, slurmIndex); ok && isNumber(index) {
		h.Slurm = index
		return h
	}
	gpu, instance, mig := strings.Cut(device, "/")
	if !isNumbered(gpu, "nvidia") || mig && !isNumbered(instance, "gi") {
		return h
	}
	h.Index = strings.TrimPrefix(gpu, "nvidia")
	h.Instance = strings.TrimPrefix(instance, "gi")
	return h
}
