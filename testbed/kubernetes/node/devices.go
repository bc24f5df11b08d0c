// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

// Device is a GPU that can be held, or a MIG instance of one.
type Device struct {
	HWID string // as telemetry names it: GPU-<uuid>, or GPU-<uuid>/<GPU instance id>
	GPU  gpusim.DeviceInfo
	MIG  *gpusim.InstanceInfo // nil: the whole GPU
	slot string               // as gpusim.Pod names it

	plugin, id string // resource and id at the plugin of another vendor
}

// kubeletID is what the device plugin calls the device.
func (d Device) kubeletID() string {
	if d.plugin != "" {
		return d.id
	}
	if d.MIG != nil {
		return d.MIG.UUID
	}
	return d.GPU.UUID
}

// resource is what the device plugin serves the device as, with its strategy
// "mixed".
func (d Device) resource() string {
	if d.plugin != "" {
		return d.plugin
	}
	if d.MIG != nil {
		return "nvidia.com/mig-" + d.MIG.Profile
	}
	return "nvidia.com/gpu"
}

// draName is what the DRA driver calls the device.
func (d Device) draName() string {
	if d.MIG == nil {
		return fmt.Sprintf("gpu-%d", d.GPU.Minor)
	}
	return fmt.Sprintf("gpu-%d-mig-%s-%d-%d", d.GPU.Minor, strings.ReplaceAll(d.MIG.Profile, ".", ""), d.MIG.ProfileID, d.MIG.Start)
}

// inventory are the devices of a node at one time.
type inventory struct {
	node    string
	devices []Device
}

// hwID is what telemetry calls a device that the kubelet calls id.
func (i inventory) hwID(id string) string {
	device, ok := i.find(id)
	if !ok {
		return id
	}
	if _, replica, shared := strings.Cut(id, "::"); shared {
		return device.HWID + "::" + replica
	}
	return device.HWID
}

// find looks a device up by the kubelet's id; of a replica it is the device that
// is shared.
func (i inventory) find(id string) (Device, bool) {
	base, _, _ := strings.Cut(id, "::")
	for _, d := range i.devices {
		if base == d.kubeletID() || base == kubelet.DRAID(Driver, i.node, d.draName()) {
			return d, true
		}
	}
	return Device{}, false
}

// Devices are what the node has now, held or free.
func (n *Node) Devices() []Device {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.devices.devices)
}

// announce gives the kubelet what the device plugin has, and returns how much
// that is of each resource. What it had before and has no more is 0.
func (n *Node) announce() corev1.ResourceList {
	n.mu.Lock()
	defer n.mu.Unlock()
	by := map[string][]kubelet.Device{}
	if !n.opts.DRA {
		for _, d := range n.devices.devices {
			by[d.resource()] = append(by[d.resource()], kubelet.Device{ID: d.kubeletID(), Healthy: true, NUMA: []int64{int64(d.GPU.NUMANode)}})
		}
	}
	capacity := corev1.ResourceList{}
	for name := range n.announced {
		n.kubelet.SetDevices(name, nil)
		capacity[corev1.ResourceName(name)] = resource.MustParse("0")
	}
	n.announced = map[string]bool{}
	for name, devices := range by {
		if n.replicas > 1 {
			devices = kubelet.Replicas(devices, n.replicas)
		}
		n.kubelet.SetDevices(name, devices)
		n.announced[name] = true
		capacity[corev1.ResourceName(name)] = *resource.NewQuantity(int64(len(devices)), resource.DecimalSI)
	}
	return capacity
}

// readDevices keeps what the driver reports that the node has.
func (n *Node) readDevices() error {
	devices, err := n.boards.devices()
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.devices = inventory{node: n.opts.Name, devices: devices}
	return nil
}

// register creates the node.
func (n *Node) register(ctx context.Context) error {
	labels := n.labels()
	maps.Copy(labels, n.opts.Labels)
	err := n.cluster.AddNode(ctx, cluster.NodeSpec{Name: n.opts.Name, Labels: labels, Capacity: n.announce()})
	if err != nil {
		return err
	}
	node, err := n.cluster.Client().CoreV1().Nodes().Get(ctx, n.opts.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	n.pool.uid = node.UID
	return nil
}

// labels are those that GPU feature discovery sets.
func (n *Node) labels() map[string]string {
	if n.opts.Vendor != nil {
		return map[string]string{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	labels := map[string]string{
		"nvidia.com/gpu.count":    strconv.Itoa(n.opts.GPUs),
		"nvidia.com/gpu.replicas": strconv.Itoa(n.replicas),
		"nvidia.com/mig.strategy": "mixed",
	}
	if n.replicas > 1 {
		labels["nvidia.com/gpu.sharing-strategy"] = "time-slicing"
	} else {
		labels["nvidia.com/gpu.sharing-strategy"] = "none"
	}
	return labels
}

// Reconfigure changes the MIG layout, by GPU index; a GPU that is not named is
// whole again. As NVIDIA's MIG manager does it sets nvidia.com/mig.config.state
// to pending for the time, and it wants the GPUs free: one that changes and is
// held is an error, drain the node first.
func (n *Node) Reconfigure(ctx context.Context, layout map[int][]string) error {
	gpus, err := n.exporter.fleet.Devices(n.opts.Name)
	if err != nil {
		return err
	}
	truth := n.Truth()
	changed := map[int]bool{}
	for _, g := range gpus {
		var profiles []string
		for _, instance := range g.Instances {
			profiles = append(profiles, instance.Profile)
		}
		changed[g.Index] = !slices.Equal(profiles, layout[g.Index])
	}
	for _, d := range n.Devices() {
		if held := truth.Owners[d.HWID]; changed[d.GPU.Index] && len(held) > 0 {
			return fmt.Errorf("node %s: %s is held by %v: its layout cannot change", n.opts.Name, d.HWID, held)
		}
	}
	if err := n.setLabels(ctx, map[string]string{"nvidia.com/mig.config.state": "pending"}); err != nil {
		return err
	}
	for _, g := range gpus {
		if !changed[g.Index] {
			continue
		}
		if err := n.exporter.fleet.SetMIG(n.opts.Name, g.Index, layout[g.Index]); err != nil {
			return err
		}
	}
	if err := n.readDevices(); err != nil {
		return err
	}
	if err := n.reannounce(ctx); err != nil {
		return err
	}
	return n.setLabels(ctx, map[string]string{"nvidia.com/mig.config.state": "success"})
}

// SetTimeSlicing makes the device plugin announce every device as so many
// replicas; 1 ends it. Pods keep what they have under the id that it had.
func (n *Node) SetTimeSlicing(ctx context.Context, replicas int) error {
	n.mu.Lock()
	n.replicas = max(replicas, 1)
	n.mu.Unlock()
	if err := n.reannounce(ctx); err != nil {
		return err
	}
	return n.setLabels(ctx, n.labels())
}

// reannounce gives kubelet and control plane what the node has now.
func (n *Node) reannounce(ctx context.Context) error {
	if err := n.cluster.SetCapacity(ctx, n.opts.Name, n.announce()); err != nil {
		return err
	}
	if n.opts.DRA {
		if err := n.pool.publish(ctx, n.Devices()); err != nil {
			return err
		}
	}
	n.pods.signal()
	return nil
}

func (n *Node) setLabels(ctx context.Context, labels map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return err
	}
	_, err = n.cluster.Client().CoreV1().Nodes().Patch(ctx, n.opts.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
