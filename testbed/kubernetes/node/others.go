// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

// others are a node's boards of another vendor than NVIDIA.
type others struct {
	node   string
	fleet  *vendors.Fleet
	server *exporters.VendorServer
}

// startOthers starts the boards of a node and their exporter, and writes the node's sysfs.
func startOthers(o Options, sysfs string) (*others, error) {
	n := *o.Vendor
	n.Name, n.Pods = o.Name, nil
	fleet, err := vendors.New(vendors.Config{Seed: o.Seed, Nodes: []vendors.Node{n}}, time.Now)
	if err != nil {
		return nil, err
	}
	if err := fleet.WriteSysfs(o.Name, sysfs, time.Now()); err != nil {
		return nil, err
	}
	server, err := exporters.ServeVendors(fleet, "127.0.0.1", 0)
	if err != nil {
		return nil, err
	}
	return &others{node: o.Name, fleet: fleet, server: server}, nil
}

// devices are what the vendor's plugin announces.
func (o *others) devices() (devices []Device, err error) {
	for _, d := range o.fleet.TruthAt(time.Now()).Nodes[0].Devices {
		for i, id := range d.KubeletID {
			one := Device{HWID: d.ID, slot: fmt.Sprintf("%d:%d", d.Board, d.Part), plugin: d.Resource, id: id}
			if len(d.KubeletID) > 1 {
				one.HWID, one.slot = fmt.Sprintf("%s::%d", d.ID, i), fmt.Sprintf("%d::%d", d.Board, i)
			}
			devices = append(devices, one)
		}
	}
	return devices, nil
}

func (o *others) show(pods []*corev1.Pod, devices inventory, owners map[string][]kubelet.Owner) error {
	var held []vendors.Pod
	for _, h := range holdings(pods, devices, owners) {
		held = append(held, vendors.Pod{Namespace: h.pod.Namespace, Name: h.pod.Name, Container: h.container, Devices: h.slots})
	}
	return o.fleet.SetPods(o.node, held)
}

func (o *others) url() string { return o.server.URL(o.node) }
func (o *others) close()      { o.server.Close() }
