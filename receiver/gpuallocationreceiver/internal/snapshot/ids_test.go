// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
)

const (
	amd   = "GPU-e3a9c1d200000001"
	cpx   = "GPU-e3a9c1d200000002"
	intel = "PCI-node-a@0000:03:00.0"
	flex  = "PCI-node-a@0000:04:00.0"
)

// host has a board of AMD that is not partitioned, one in CPX, and two GPUs of Intel. The names
// of partitions are not in their order.
func host(t *testing.T, refuse syscall.Errno) *gpusysfs.Snapshot {
	root := sysfstest.Write(t,
		sysfstest.Board{PCI: "0000:19:00.0", UniqueID: 0xe3a9c1d200000001, Compute: "SPX", Memory: "NPS1", Card: 0, Render: 128, XCP: 50},
		sysfstest.Board{PCI: "0000:27:00.0", UniqueID: 0xe3a9c1d200000002, Compute: "CPX", Memory: "NPS4", Parts: 8, Card: 1, Render: 129, XCP: 7},
		sysfstest.Board{PCI: "0000:03:00.0", Vendor: 0x8086, Device: 0x0bda, Class: "0x038000", Card: 20, Render: 150},
		sysfstest.Board{PCI: "0000:04:00.0", Vendor: 0x8086, Device: 0x56c0, Class: "0x038000", Card: 21, Render: 151},
		sysfstest.Board{PCI: "0000:04:00.1", Vendor: 0x8086, Device: 0x56c0, Class: "0x038000", Card: 22, Render: 152, Files: map[string]string{"physfn/vendor": "0x8086"}})
	var fsys fs.FS = os.DirFS(root)
	if refuse != 0 {
		fsys = sysfstest.Refusing{FS: fsys, Path: "/properties", Error: refuse}
	}
	return gpusysfs.Read(root, fsys, t0)
}

// Each row of the table of ids in the README, of other vendors than NVIDIA.
func TestOtherVendors(t *testing.T) {
	one := func(resource string, listed ...string) node {
		return node{Devices: map[string][]string{resource: listed}, Pods: []pod{holds("ml", "a", resource, listed[0])}}
	}
	amdSlice := func(devices ...resourcev1.Device) *dra.Pools {
		return poolsOf(resourceSlice("a", dra.DriverAMD, 1, 1, devices...))
	}
	whole, unprivileged := host(t, 0), host(t, syscall.EPERM)
	const busID = "resource.kubernetes.io/pciBusID"
	for name, tt := range map[string]struct {
		node     node
		pools    *dra.Pools
		noSysfs  bool
		noNodes  bool // EPERM for the files of compute nodes
		want     []string
		resolved bool
	}{
		"AMD, a board": {
			node: one("amd.com/gpu", "0000:19:00.0"), resolved: true,
			want: []string{"a/main " + amd + " 1 amd.com/gpu pod_resources none true"},
		},
		"AMD, a board without sysfs": {
			node: one("amd.com/gpu", "0000:19:00.0"), noSysfs: true,
			want: []string{"a/main node-a/0000:19:00.0 1 amd.com/gpu pod_resources none false"},
		},
		"AMD, the first partition has the board's address": {
			node: one("amd.com/cpx_nps4", "0000:27:00.0", "amdgpu_xcp_7"), resolved: true,
			want: []string{"- " + cpx + "/1 0 amd.com/cpx_nps4 pod_resources none true", "a/main " + cpx + "/0 1 amd.com/cpx_nps4 pod_resources none true"},
		},
		"AMD, another partition": {
			node: one("amd.com/gpu", "amdgpu_xcp_12"), resolved: true,
			want: []string{"a/main " + cpx + "/6 1 amd.com/gpu pod_resources none true"},
		},
		"AMD, another partition by the other form of its name": {
			node: one("amd.com/gpu", "amdgpu_xcp.12"), resolved: true,
			want: []string{"a/main " + cpx + "/6 1 amd.com/gpu pod_resources none true"},
		},
		"AMD, without privilege: the first partition is known": {
			node: one("amd.com/gpu", "0000:27:00.0"), noNodes: true, resolved: true,
			want: []string{"a/main " + cpx + "/0 1 amd.com/gpu pod_resources none true"},
		},
		"AMD, without privilege: another is not": {
			node: one("amd.com/gpu", "amdgpu_xcp_12"), noNodes: true,
			want: []string{"a/main node-a/amdgpu_xcp_12 1 amd.com/gpu pod_resources none false"},
		},
		"AMD, what the host does not have": {
			node: one("amd.com/gpu", "amdgpu_xcp_99"),
			want: []string{"a/main node-a/amdgpu_xcp_99 1 amd.com/gpu pod_resources none false"},
		},
		"Gaudi": {
			node: one("habana.ai/gaudi", "AN01234567", "AN7654321"), noSysfs: true, resolved: true,
			want: []string{"- GAUDI-AN7654321 0 habana.ai/gaudi pod_resources none true", "a/main GAUDI-AN01234567 1 habana.ai/gaudi pod_resources none true"},
		},
		"Intel, a GPU of one user": {
			node: one("gpu.intel.com/i915", "card20-0"), resolved: true,
			want: []string{"a/main " + intel + " 1 gpu.intel.com/i915 pod_resources none true"},
		},
		"Intel, a shared GPU": {
			node: one("gpu.intel.com/xe", "card20-1", "card20-0", "card21-0"), resolved: true,
			want: []string{
				"- " + intel + "::0 0 gpu.intel.com/xe pod_resources time_slicing true", "- " + flex + " 0 gpu.intel.com/xe pod_resources none true",
				"a/main " + intel + "::1 0.5 gpu.intel.com/xe pod_resources time_slicing true",
			},
		},
		"Intel, a shared GPU without sysfs": {
			node: one("gpu.intel.com/xe", "card20-1", "card20-0"), noSysfs: true,
			want: []string{
				"- node-a/card20-0 0 gpu.intel.com/xe pod_resources time_slicing false",
				"a/main node-a/card20-1 0.5 gpu.intel.com/xe pod_resources time_slicing false",
			},
		},
		"Intel, a virtual function": {
			node: one("gpu.intel.com/xe", "card22-0"),
			want: []string{"a/main node-a/card22-0 1 gpu.intel.com/xe pod_resources none false"},
		},
		"AMD by DRA": {
			node: node{Pods: []pod{shared("a", "c", dra.DriverAMD, "gpu-0-128", "")}}, resolved: true,
			pools: amdSlice(sliceDevice("gpu-0-128", "type", "amdgpu", busID, "0000:19:00.0")),
			want:  []string{"a/main " + amd + " 1 gpu.amd.com dra none true"},
		},
		"AMD by DRA, older attributes": {
			node: node{Pods: []pod{shared("a", "c", dra.DriverAMD, "gpu-0-128", "")}}, resolved: true,
			pools: amdSlice(sliceDevice("gpu-0-128", "type", "amdgpu", "pciAddr", "0000:19:00.0"), sliceDevice("gpu-3-131", "type", "amdgpu-partition", "parentPciAddr", "0000:27:00:0")),
			want:  []string{"- " + cpx + "/2 0 gpu.amd.com dra none true", "a/main " + amd + " 1 gpu.amd.com dra none true"},
		},
		"AMD by DRA, partitions by their render nodes": {
			node: node{Pods: []pod{shared("a", "c", dra.DriverAMD, "gpu-4-132", "")}}, resolved: true,
			pools: amdSlice(sliceDevice("gpu-1-129", "type", "amdgpu-partition", busID, "0000:27:00.0", "partitionProfile", "cpx_nps4"),
				sliceDevice("gpu-4-132", "type", "amdgpu-partition", busID, "0000:27:00.0", "partitionProfile", "cpx_nps4")),
			want: []string{"- " + cpx + "/0 0 gpu.amd.com dra none true", "a/main " + cpx + "/3 1 gpu.amd.com dra none true"},
		},
		"AMD by DRA, the render node is another board's": {
			node:  node{Pods: []pod{shared("a", "c", dra.DriverAMD, "gpu-4-132", "")}},
			pools: amdSlice(sliceDevice("gpu-4-132", "type", "amdgpu-partition", busID, "0000:19:00.0", "partitionProfile", "cpx_nps4")),
			want:  []string{"a/main node-a/gpu.amd.com/node-a/gpu-4-132 1 gpu.amd.com dra none false " + amd + " cpx_nps4"},
		},
		"AMD by DRA, partitions without privilege": {
			node: node{Pods: []pod{shared("a", "c", dra.DriverAMD, "gpu-4-132", "")}}, noNodes: true,
			pools: amdSlice(sliceDevice("gpu-4-132", "type", "amdgpu-partition", busID, "0000:27:00.0", "partitionProfile", "cpx_nps4")),
			want:  []string{"a/main node-a/gpu.amd.com/node-a/gpu-4-132 1 gpu.amd.com dra none false " + cpx + " cpx_nps4"},
		},
		"AMD by DRA, a board that is passed through: it is not free, and has no owner": {
			node: node{Pods: []pod{shared("a", "c", dra.DriverAMD, "gpu-vfio-0", "")}}, resolved: true,
			pools: amdSlice(sliceDevice("gpu-0-128", "type", "amdgpu", busID, "0000:19:00.0"), sliceDevice("gpu-vfio-0", "type", "vfio", busID, "0000:19:00.0")),
			want:  []string{},
		},
		"AMD by DRA, a mode that the driver sets: each share is a partition": {
			node:  node{Pods: []pod{shared("a", "c", dra.DriverAMD, "gpu-1-cpx-nps4", "s1"), shared("b", "d", dra.DriverAMD, "gpu-1-cpx-nps4", "s2")}},
			pools: amdSlice(sliceDevice("gpu-1-cpx-nps4", "type", "amdgpu-partition", busID, "0000:27:00.0", "partitionProfile", "cpx_nps4")),
			want: []string{
				"a/main node-a/gpu.amd.com/node-a/gpu-1-cpx-nps4::0 1 gpu.amd.com dra none false cpx_nps4",
				"b/main node-a/gpu.amd.com/node-a/gpu-1-cpx-nps4::1 1 gpu.amd.com dra none false cpx_nps4",
			},
		},
		"AMD by plugin and DRA: the plugin's board is not free": {
			node: one("amd.com/gpu", "0000:27:00.0"), resolved: true,
			pools: amdSlice(sliceDevice("gpu-4-132", "type", "amdgpu-partition", busID, "0000:27:00.0"), sliceDevice("gpu-0-128", "type", "amdgpu", busID, "0000:19:00.0")),
			want:  []string{"- " + amd + " 0 gpu.amd.com dra none true", "a/main " + cpx + "/0 1 amd.com/gpu pod_resources none true"},
		},
		"Intel by DRA: attributes, name, and a virtual function": {
			node: node{Pods: []pod{shared("a", "c", dra.DriverIntel, "x", "")}}, noSysfs: true,
			pools: poolsOf(resourceSlice("a", dra.DriverIntel, 1, 1, sliceDevice("x", busID, "0000:03:00.0"), sliceDevice("y", "pciAddress", "0000:04:00.0"),
				sliceDevice("0000-4d-00-0-0x0bda"), sliceDevice("0000-4d-00-1-0x0bda"), sliceDevice("0000-4e-00-0-0x0bda", "health", "Unhealthy"))),
			want: []string{
				"- " + flex + " 0 gpu.intel.com dra none true", "- PCI-node-a@0000:4d:00.0 0 gpu.intel.com dra none true",
				"- node-a/gpu.intel.com/node-a/0000-4d-00-1-0x0bda 0 gpu.intel.com dra none false",
				"a/main " + intel + " 1 gpu.intel.com dra none true",
			},
		},
		"Gaudi by DRA without serial number": {
			node:  node{Pods: []pod{shared("a", "c", dra.DriverGaudi, "0000-a0-00-0-0x1020", "")}},
			pools: poolsOf(resourceSlice("a", dra.DriverGaudi, 1, 1, sliceDevice("0000-a0-00-0-0x1020", "serial", ""))),
			want:  []string{"a/main node-a/gaudi.intel.com/node-a/0000-a0-00-0-0x1020 1 gaudi.intel.com dra none false"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t)
			v := readAll(t, &tt.node, tt.pools, nil, nil)
			switch {
			case tt.noNodes:
				v.Sysfs = unprivileged
			case !tt.noSysfs:
				v.Sysfs = whole
			}
			for seed := range uint64(10) {
				s, tl := b.Build(answer(&tt.node, seed), v, nil)
				require.Equal(t, tt.want, draLines(s))
				require.Zero(t, tl.Refused)
				if tt.resolved {
					require.Zero(t, s.States.Unresolved)
				}
			}
		})
	}
}

// A GPU stays shared while its replicas are not listed.
func TestIntelStaysShared(t *testing.T) {
	b, v := newBuilder(t), View{Sysfs: host(t, 0)}
	n := node{Devices: map[string][]string{"gpu.intel.com/xe": {"card20-0", "card20-1"}}, Pods: []pod{holds("ml", "a", "gpu.intel.com/xe", "card20-0")}}
	s, _ := b.Build(answer(&n, 0), v, nil)
	n.Devices = nil
	s, tl := b.Build(answer(&n, 0), v, s)
	assert.Equal(t, []string{"a/main " + intel + "::0 0.5 gpu.intel.com/xe pod_resources time_slicing true"}, draLines(s))
	assert.Zero(t, tl.SharesAssumed)
}

// Only what sysfs resolves is looked for there: nothing on a node of NVIDIA.
func TestLocal(t *testing.T) {
	b := newBuilder(t)
	n := node{
		Devices: map[string][]string{"amd.com/gpu": {"0000:19:00.0", "amdgpu_xcp_7"}, "amd.com/nic": {"0000:66:00.0"}, gpuName: {gpuA}, "gpu.intel.com/xe": {"card20-1"}},
		Pods:    []pod{holds("ml", "a", "gpu.intel.com/xe", "card20-0"), holds("ml", "b", "habana.ai/gaudi", "AN1")},
	}
	v := View{Pools: poolsOf(resourceSlice("a", dra.DriverAMD, 1, 1, sliceDevice("gpu-4-132", "type", "amdgpu-partition", "pciAddr", "0000:27:00.0"),
		sliceDevice("gpu-1-cpx-nps4", "pciAddr", "0000:28:00.0")))}
	a := answer(&n, 0)
	assert.Equal(t, []string{"0000:19:00.0", "0000:27:00.0", "amdgpu_xcp_7", "card20", "renderD132"}, b.Read.Local(&a, v))
	a = answer(&node{Devices: map[string][]string{gpuName: {gpuA, migC}}}, 0)
	assert.Empty(t, b.Read.Local(&a, View{Pools: onePool(wholeGPU("gpu-0", gpuA))}))
}
