// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"fmt"
	"strings"
)

// DeviceInfo is what the driver of a node says of a GPU: what a device plugin
// or a DRA driver announces.
type DeviceInfo struct {
	Index     int    `json:"index"`
	Minor     int    `json:"minor"`      // of /dev/nvidia<minor>; the same as the index
	UUID      string `json:"uuid"`       // GPU-…
	PCIBusID  string `json:"pci_bus_id"` // as Kubernetes writes it: 0000:53:00.0
	Model     string `json:"model"`      // as the exporter prints it
	Key       string `json:"key"`        // as a configuration names it
	MemoryMiB int    `json:"memory_mib"`
	NUMANode  int    `json:"numa_node"` // the first half of the devices is at 0, the rest at 1
	Driver    string `json:"driver"`    // version, 580.126.09
	// Instances are empty when MIG is off.
	Instances []InstanceInfo `json:"instances,omitempty"`
}

// InstanceInfo is a MIG device: a GPU instance with its one compute instance.
type InstanceInfo struct {
	Position  int    `json:"position"` // in the layout
	Profile   string `json:"profile"`  // 1g.10gb
	ProfileID int    `json:"profile_id"`
	ID        int    `json:"id"`    // GPU instance id
	Start     int    `json:"start"` // first memory slice
	Size      int    `json:"size"`  // memory slices
	UUID      string `json:"uuid"`  // MIG-…
	MemoryMiB int    `json:"memory_mib"`
}

// Devices lists the GPUs of a node as they are now.
func (fl *Fleet) Devices(node string) ([]DeviceInfo, error) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	n := fl.node(node)
	if n == nil {
		return nil, fmt.Errorf("unknown node %q", node)
	}
	var out []DeviceInfo
	k := Duration(n.at(fl.elapsed(fl.clock()))).step()
	for i, b := range n.boards {
		d := DeviceInfo{
			Index: n.index(b, k), Minor: b.index, UUID: b.uuid, PCIBusID: strings.ToLower(b.pci[4:]), Model: b.model.Name, Key: b.model.Key,
			MemoryMiB: b.model.MemoryMiB, NUMANode: i * 2 / max(len(n.boards), 2), Driver: n.exp.driver,
		}
		for position := range b.instances {
			in := &b.instances[position]
			d.Instances = append(d.Instances, InstanceInfo{
				Position: position, Profile: in.profile, ProfileID: in.profileID, ID: in.id, Start: in.start, Size: in.eighths,
				UUID: b.migUUID(in), MemoryMiB: in.memoryMiB,
			})
		}
		out = append(out, d)
	}
	return out, nil
}

// migUUID is made from the board and from what the instance is and where, as
// the driver's: the same instance made anew has the same one. It is a version 5
// UUID in form.
func (b *board) migUUID(in *instance) string {
	u := uuidFrom(stream(b.seed, fmt.Sprintf("mig/%s/%d/%d", in.profile, in.id, in.start)))
	return "MIG-" + u[:14] + "5" + u[15:]
}
