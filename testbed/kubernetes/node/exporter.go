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

// boards are what a node has, and the exporter that shows them.
type boards interface {
	devices() ([]Device, error)
	// show lets the boards work for those who hold them.
	show(pods []*corev1.Pod, devices inventory, owners map[string][]kubelet.Owner) error
	url() string
	close()
}

// exporter is a node's GPUs and the exporter that shows them.
type exporter struct {
	node   string
	fleet  *gpusim.Fleet
	server *exporters.Server
}

// startExporter starts the GPUs of a node and its exporter.
func startExporter(o Options) (*exporter, error) {
	kubernetes := !o.HideOwners
	layouts := map[string][]string{}
	for index, profiles := range o.MIG {
		layouts[strconv.Itoa(index)] = profiles
	}
	fleet, err := gpusim.New(gpusim.Config{Seed: o.Seed, Nodes: []gpusim.Node{{
		Name: o.Name, Version: o.Exporter, Model: o.Model, Devices: o.GPUs, MIG: layouts,
		Kubernetes: &kubernetes, PodLabels: true, Fields: o.Fields,
	}}}, time.Now)
	if err != nil {
		return nil, err
	}
	server, err := exporters.Serve(fleet, "127.0.0.1", 0)
	if err != nil {
		return nil, err
	}
	return &exporter{node: o.Name, fleet: fleet, server: server}, nil
}

// devices are what the driver reports that the node has.
func (e *exporter) devices() ([]Device, error) {
	gpus, err := e.fleet.Devices(e.node)
	if err != nil {
		return nil, err
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
	return devices, nil
}

func (e *exporter) url() string { return e.server.URL(e.node) }
func (e *exporter) close()      { e.server.Close() }

// show lets the GPUs work for those who hold them, which the exporter shows.
func (e *exporter) show(pods []*corev1.Pod, devices inventory, owners map[string][]kubelet.Owner) error {
	var exported []gpusim.Pod
	for _, h := range holdings(pods, devices, owners) {
		load := gpusim.Load(h.pod.Annotations[AnnotationLoad])
		if load == "" {
			load = gpusim.Inference
		}
		exported = append(exported, gpusim.Pod{
			Namespace: h.pod.Namespace, Name: h.pod.Name, UID: string(h.pod.UID), Container: h.container,
			Labels: h.pod.Labels, Devices: h.slots, Load: load,
		})
	}
	return e.fleet.SetPods(e.node, exported)
}

// holding is a container with devices.
type holding struct {
	pod       *corev1.Pod
	container string
	slots     []string
}

// holdings are the containers that hold devices, with the names that the simulators have
// for these.
func holdings(pods []*corev1.Pod, devices inventory, owners map[string][]kubelet.Owner) (all []holding) {
	type who struct {
		pod       kubelet.Pod
		container string
	}
	slots := map[who][]string{}
	for _, id := range slices.Sorted(maps.Keys(owners)) {
		device, ok := devices.find(id)
		if !ok {
			continue // a device that is no more
		}
		slot := device.slot
		if _, replica, shared := strings.Cut(id, "::"); shared {
			slot += "::" + replica
		}
		// Of the owners of a shared claim the exporter knows one.
		by := who{owners[id][0].Pod, owners[id][0].Container}
		slots[by] = append(slots[by], slot)
	}
	for _, pod := range pods {
		for _, c := range containers(pod) {
			if held := slots[who{key(pod), c.Name}]; len(held) > 0 {
				all = append(all, holding{pod, c.Name, held})
			}
		}
	}
	return all
}
