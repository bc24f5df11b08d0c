// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"strconv"
	"strings"
)

// Device is one device as a plugin announces it.
type Device struct {
	ID   string
	NUMA []int64 // NUMA nodes that it belongs to; none: the plugin reports none
	// Healthy devices alone are given away and called allocatable.
	Healthy bool
}

// Devices makes healthy devices without NUMA nodes.
func Devices(ids ...string) []Device {
	out := make([]Device, 0, len(ids))
	for _, id := range ids {
		out = append(out, Device{ID: id, Healthy: true})
	}
	return out
}

// The ids below are those that plugins give to the kubelet. uuid is written
// with or without its prefix.

// GPUID is a whole GPU of NVIDIA's plugin: GPU-<uuid>.
func GPUID(uuid string) string { return "GPU-" + strings.TrimPrefix(uuid, "GPU-") }

// MIGID is a MIG device since driver 470: MIG-<uuid>.
func MIGID(uuid string) string { return "MIG-" + strings.TrimPrefix(uuid, "MIG-") }

// OldMIGID is a MIG device before driver 470: MIG-GPU-<uuid>/<GPU instance>/<compute instance>.
func OldMIGID(gpu string, gi, ci int) string {
	return fmt.Sprintf("MIG-%s/%d/%d", GPUID(gpu), gi, ci)
}

// ReplicaID is a share of a device under time-slicing or MPS: <id>::<n>.
func ReplicaID(id string, n int) string { return id + "::" + strconv.Itoa(n) }

// GKEID is a whole GPU of GKE's plugin: nvidia<minor>.
func GKEID(minor int) string { return "nvidia" + strconv.Itoa(minor) }

// GKEMIGID is a GPU instance of GKE's plugin: nvidia<minor>/gi<id>.
func GKEMIGID(minor, gi int) string { return fmt.Sprintf("nvidia%d/gi%d", minor, gi) }

// GKESharedID is a share of a device of GKE's plugin: <id>/vgpu<n>.
func GKESharedID(id string, n int) string { return id + "/vgpu" + strconv.Itoa(n) }

// DRAID is how Owners names a device of a ResourceClaim: <driver>/<pool>/<device>.
func DRAID(driver, pool, device string) string { return driver + "/" + pool + "/" + device }

// Replicas makes n shares of every device, as time-slicing and MPS announce them.
func Replicas(devices []Device, n int) []Device {
	out := make([]Device, 0, n*len(devices))
	for _, d := range devices {
		for i := range n {
			share := d
			share.ID = ReplicaID(d.ID, i)
			out = append(out, share)
		}
	}
	return out
}

// shared is the device that an id is a share of: the id itself for a whole one.
func shared(id string) string {
	if base, _, ok := strings.Cut(id, "::"); ok {
		return base
	}
	if base, _, ok := strings.Cut(id, "/vgpu"); ok {
		return base
	}
	return id
}

// BadIDs are ids that no plugin should give and the kubelet would pass on:
// empty, blank, not printable, markup, and too long. All are valid UTF-8, since
// gRPC sends no other text.
func BadIDs() []string {
	return []string{"", " ", "GPU-\x00\x1b[31m\n", "GPU-\u202e\ufeff", `GPU-"},{x="`, "::", "GPU-" + strings.Repeat("a", 70_000)}
}

// ManyIDs are n ids of whole GPUs without an owner.
func ManyIDs(n int) []string {
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, fmt.Sprintf("GPU-00000000-0000-4000-8000-%012x", i))
	}
	return out
}
