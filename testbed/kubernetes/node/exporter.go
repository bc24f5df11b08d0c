// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

// AnnotationLoad of a pod is the load that it puts on its GPUs: inference
// (default), training or idle.
const AnnotationLoad = "testbed/load"

// startExporter starts the node's GPUs and the exporter that shows them.
func (n *Node) startExporter() error {
	kubernetes := !n.opts.HideHolders
	layouts := map[string][]string{}
	for index, profiles := range n.opts.MIG {
		layouts[strconv.Itoa(index)] = profiles
	}
	fleet, err := gpusim.New(gpusim.Config{Seed: n.opts.Seed, Nodes: []gpusim.Node{{
		Name: n.opts.Name, Version: n.opts.Exporter, Model: n.opts.Model, Devices: n.opts.GPUs, MIG: layouts,
		Kubernetes: &kubernetes, PodLabels: true, Fields: n.opts.Fields,
	}}}, time.Now)
	if err != nil {
		return err
	}
	n.fleet = fleet
	if n.server, err = exporters.Serve(fleet, "127.0.0.1", 0); err != nil {
		return err
	}
	return n.readDevices()
}

// readDevices records the devices that the driver lists.
func (n *Node) readDevices() error {
	gpus, err := n.fleet.Devices(n.opts.Name)
	if err != nil {
		return err
	}
	var devices []Device
	for _, g := range gpus {
		whole := Device{HWID: g.UUID, GPU: g, slot: strconv.Itoa(g.Index)}
		if len(g.Instances) == 0 {
			devices = append(devices, whole)
		}
		for _, instance := range g.Instances {
			d := whole
			d.HWID = fmt.Sprintf("%s/%d", g.UUID, instance.ID)
			d.MIG = &instance
			d.slot = fmt.Sprintf("%d:%d", g.Index, instance.Position)
			devices = append(devices, d)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.devices = devices
	return nil
}

// export lets the GPUs work for those who hold them, which the exporter shows.
func (n *Node) export(pods []*corev1.Pod, holders map[string][]kubelet.Holder) error {
	type who struct {
		pod       kubelet.Pod
		container string
	}
	slots := map[who][]string{}
	for _, id := range slices.Sorted(maps.Keys(holders)) {
		device, ok := n.find(id)
		if !ok {
			continue // a device that is no more
		}
		slot := device.slot
		if _, replica, shared := strings.Cut(id, "::"); shared {
			slot += "::" + replica
		}
		// Of the owners of a shared claim the exporter knows one.
		by := who{holders[id][0].Pod, holders[id][0].Container}
		slots[by] = append(slots[by], slot)
	}
	var exported []gpusim.Pod
	for _, pod := range pods {
		for _, c := range containers(pod) {
			held := slots[who{key(pod), c.Name}]
			if len(held) == 0 {
				continue
			}
			load := gpusim.Load(pod.Annotations[AnnotationLoad])
			if load == "" {
				load = gpusim.Inference
			}
			exported = append(exported, gpusim.Pod{
				Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Container: c.Name,
				Labels: pod.Labels, Devices: held, Load: load,
			})
		}
	}
	return n.fleet.SetPods(n.opts.Name, exported)
}
