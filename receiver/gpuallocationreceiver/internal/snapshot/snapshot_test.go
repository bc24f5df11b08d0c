// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubelet"
)

var t0 = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// drivers are the defaults of the configuration.
var drivers = map[string]bool{"gpu.nvidia.com": true, "gpu.amd.com": true, "gpu.intel.com": true, "gaudi.intel.com": true}

func newBuilder(t testing.TB, change ...func(*Builder)) *Builder {
	t.Helper()
	b := &Builder{
		Node: "node-a", MaxContainers: 10_000, MaxDevices: 50_000,
		Read: Reader{Resources: matcher(t, resourcenames.Default()...), Drivers: drivers},
	}
	for _, f := range change {
		f(b)
	}
	return b
}

func matcher(t testing.TB, resources ...string) *resourcenames.Matcher {
	t.Helper()
	m, err := resourcenames.New(resources)
	require.NoError(t, err)
	return m
}

func answer(n *node, seed uint64) kubelet.Answer {
	order := rand.New(rand.NewPCG(seed, seed))
	return kubelet.Answer{At: t0, List: n.List(order), Allocatable: n.Allocatable(order)}
}

func TestSnapshot(t *testing.T) {
	for name, tt := range map[string]struct {
		node   node
		want   []string
		states States
	}{
		"nothing": {node{}, []string{}, States{}},
		"whole GPUs, one of them free": {
			node{
				Devices: map[string][]string{gpuName: {gpuA, gpuB}},
				Pods:    []pod{holds("ml", "train", gpuName, gpuA)},
			},
			[]string{
				"-/-/- " + gpuB + " 0 nvidia.com/gpu none true",
				"ml/train/main " + gpuA + " 1 nvidia.com/gpu none true",
			},
			States{Held: 1, Free: 1},
		},
		"one pod, two containers, three GPUs": {
			node{
				Devices: map[string][]string{gpuName: {gpuA, gpuB, "GPU-cccccccc-0000-0000-0000-000000000000"}},
				Pods: []pod{{Namespace: "ml", Name: "train", Containers: []container{
					{Name: "a", Devices: map[string][]string{gpuName: {gpuA, gpuB}}},
					{Name: "b", Devices: map[string][]string{gpuName: {"GPU-cccccccc-0000-0000-0000-000000000000"}}},
					{Name: "sidecar"},
				}}},
			},
			[]string{
				"ml/train/a " + gpuA + " 1 nvidia.com/gpu none true",
				"ml/train/a " + gpuB + " 1 nvidia.com/gpu none true",
				"ml/train/b GPU-cccccccc-0000-0000-0000-000000000000 1 nvidia.com/gpu none true",
			},
			States{Held: 3},
		},
		"replicas: two pods hold three of four": {
			node{
				Devices: map[string][]string{"nvidia.com/gpu.shared": replicas(gpuA, 4)},
				Pods: []pod{
					holds("ml", "one", "nvidia.com/gpu.shared", gpuA+"::2"),
					holds("ml", "two", "nvidia.com/gpu.shared", gpuA+"::0", gpuA+"::3"),
				},
			},
			[]string{
				"-/-/- " + gpuA + "::1 0 nvidia.com/gpu.shared time_slicing true",
				"ml/one/main " + gpuA + "::2 0.25 nvidia.com/gpu.shared time_slicing true",
				"ml/two/main " + gpuA + "::0 0.25 nvidia.com/gpu.shared time_slicing true",
				"ml/two/main " + gpuA + "::3 0.25 nvidia.com/gpu.shared time_slicing true",
			},
			States{Held: 3, Free: 1},
		},
		"shared since a pod holds the whole": {
			node{
				Devices: map[string][]string{gpuName: replicas(gpuA, 2)},
				Pods:    []pod{holds("ml", "old", gpuName, gpuA), holds("ml", "new", gpuName, gpuA+"::0")},
			},
			[]string{
				"-/-/- " + gpuA + "::1 0 nvidia.com/gpu time_slicing true",
				"ml/new/main " + gpuA + "::0 0.5 nvidia.com/gpu time_slicing true",
				"ml/old/main " + gpuA + " 1 nvidia.com/gpu none true",
			},
			States{Held: 2, Free: 1},
		},
		"MIG by UUID: whose instance it is needs NVML": {
			node{
				Devices: map[string][]string{"nvidia.com/mig-1g.5gb": {migC}, gpuName: replicas(migC, 2)},
				Pods:    []pod{holds("ml", "a", "nvidia.com/mig-1g.5gb", migC), holds("ml", "b", gpuName, migC+"::1")},
			},
			[]string{
				"-/-/- node-a/" + migC + "::0 0 nvidia.com/gpu time_slicing false",
				"ml/a/main node-a/" + migC + " 1 nvidia.com/mig-1g.5gb none false",
				"ml/b/main node-a/" + migC + "::1 0.5 nvidia.com/gpu time_slicing false",
			},
			States{Unresolved: 2, Free: 1},
		},
		"MIG by GPU: compute instances are parts of the instance": {
			node{
				Devices: map[string][]string{gpuName: {
					"MIG-" + gpuA + "/7/0", "MIG-" + gpuA + "/1/0", "MIG-" + gpuA + "/1/1", "MIG-" + gpuA + "/2/0", "MIG-" + gpuA + "/2/1",
				}},
				Pods: []pod{
					holds("ml", "a", gpuName, "MIG-"+gpuA+"/7/0"),
					holds("ml", "b", gpuName, "MIG-"+gpuA+"/1/0", "MIG-"+gpuA+"/1/1"),
					holds("ml", "c", gpuName, "MIG-"+gpuA+"/2/1"),
				},
			},
			[]string{
				"ml/a/main " + gpuA + "/7 1 nvidia.com/gpu none true",
				"ml/b/main " + gpuA + "/1 1 nvidia.com/gpu none true",
				"ml/c/main " + gpuA + "/2 0.5 nvidia.com/gpu none true",
			},
			States{Held: 4},
		},
		"nobody holds more than the whole: the kubelet lists one part of two that are held": {
			node{
				Devices: map[string][]string{gpuName: {"MIG-" + gpuA + "/1/0"}},
				Pods:    []pod{holds("ml", "a", gpuName, "MIG-"+gpuA+"/1/0", "MIG-"+gpuA+"/1/1")},
			},
			[]string{"ml/a/main " + gpuA + "/1 1 nvidia.com/gpu none true"},
			States{Held: 2},
		},
		"GKE": {
			node{
				Devices: map[string][]string{gpuName: {"nvidia0", "nvidia1/gi7", "nvidia2/vgpu0", "nvidia2/vgpu1", "nvidia3/gi1/vgpu0", "nvidia3/gi1/vgpu1"}},
				Pods:    []pod{holds("ml", "a", gpuName, "nvidia0", "nvidia1/gi7", "nvidia2/vgpu0", "nvidia3/gi1/vgpu1")},
			},
			[]string{
				"-/-/- node-a/nvidia2/vgpu1 0 nvidia.com/gpu time_slicing false",
				"-/-/- node-a/nvidia3/gi1/vgpu0 0 nvidia.com/gpu time_slicing false",
				"ml/a/main node-a/nvidia0 1 nvidia.com/gpu none false",
				"ml/a/main node-a/nvidia1/gi7 1 nvidia.com/gpu none false",
				"ml/a/main node-a/nvidia2/vgpu0 0.5 nvidia.com/gpu time_slicing false",
				"ml/a/main node-a/nvidia3/gi1/vgpu1 0.5 nvidia.com/gpu time_slicing false",
			},
			States{Unresolved: 4, Free: 2},
		},
		"other vendors, and what is no accelerator": {
			node{
				Devices: map[string][]string{
					"amd.com/gpu": {"0000:19:00.0"}, "habana.ai/gaudi": {"AN01234567"}, "gpu.intel.com/i915": {"card0-0"},
					"gpu.intel.com/i915_monitoring": {"all"}, "rdma/hca": {"mlx5_0"},
				},
				Pods: []pod{
					holds("ml", "a", "amd.com/gpu", "0000:19:00.0"), holds("ml", "b", "habana.ai/gaudi", "AN01234567"),
					holds("ml", "c", "rdma/hca", "mlx5_0"), holds("ml", "d", "gpu.intel.com/i915_monitoring", "all"),
				},
			},
			[]string{
				"-/-/- node-a/card0-0 0 gpu.intel.com/i915 none false",
				"ml/a/main node-a/0000:19:00.0 1 amd.com/gpu none false",
				"ml/b/main GAUDI-AN01234567 1 habana.ai/gaudi none true",
			},
			States{Held: 1, Unresolved: 1, Free: 1},
		},
		"a device in two pods: both are reported, as the kubelet says": {
			node{
				Devices: map[string][]string{gpuName: {gpuA}},
				Pods:    []pod{holds("ml", "finished", gpuName, gpuA), holds("ml", "next", gpuName, gpuA)},
			},
			[]string{
				"ml/finished/main " + gpuA + " 1 nvidia.com/gpu none true",
				"ml/next/main " + gpuA + " 1 nvidia.com/gpu none true",
			},
			States{Contested: 1},
		},
		"a device that the kubelet no longer lists is still held": {
			node{Pods: []pod{holds("ml", "a", gpuName, gpuA)}},
			[]string{"ml/a/main " + gpuA + " 1 nvidia.com/gpu none true"},
			States{Held: 1},
		},
		"HAMi: parts of a GPU, not surely of the one in the id": {
			node{
				Devices: map[string][]string{gpuName: {gpuA + "-0", gpuA + "-1"}},
				Pods:    []pod{holds("ml", "a", gpuName, gpuA+"-1")},
			},
			[]string{
				"-/-/- node-a/" + gpuA + "-0 0 nvidia.com/gpu time_slicing false",
				"ml/a/main node-a/" + gpuA + "-1 0.5 nvidia.com/gpu time_slicing false",
			},
			States{Unresolved: 1, Free: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t)
			for seed := range uint64(10) { // the kubelet's order is that of a map
				s, tl := b.Build(answer(&tt.node, seed), View{}, nil)
				require.Equal(t, tt.want, lines(s.Metrics(&Origin{Node: b.Node})))
				require.Equal(t, tt.states, s.States)
				require.Zero(t, tl.Refused)
				require.Zero(t, tl.SharesAssumed)
			}
		})
	}
}

// Which devices there are may be unknown; then none is free.
func TestAllocatableFails(t *testing.T) {
	b := newBuilder(t)
	n := node{Devices: map[string][]string{gpuName: replicas(gpuA, 4)}, Pods: []pod{holds("ml", "a", gpuName, gpuA+"::0", gpuA+"::1")}}
	blind := answer(&n, 0)
	blind.Allocatable = nil

	s, tl := b.Build(blind, View{}, nil)
	assert.Equal(t, 1, tl.SharesAssumed)
	assert.Equal(t, []string{
		"ml/a/main " + gpuA + "::0 0.5 nvidia.com/gpu time_slicing true",
		"ml/a/main " + gpuA + "::1 0.5 nvidia.com/gpu time_slicing true",
	}, lines(s.Metrics(&Origin{Node: b.Node})), "at least two there are")

	s, tl = b.Build(answer(&n, 0), View{}, s)
	assert.Zero(t, tl.SharesAssumed)
	assert.Equal(t, States{Held: 2, Free: 2}, s.States)

	want := []string{
		"ml/a/main " + gpuA + "::0 0.25 nvidia.com/gpu time_slicing true",
		"ml/a/main " + gpuA + "::1 0.25 nvidia.com/gpu time_slicing true",
	}
	s, tl = b.Build(blind, View{}, s)
	assert.Zero(t, tl.SharesAssumed)
	assert.Equal(t, want, lines(s.Metrics(&Origin{Node: b.Node})), "what was listed before is remembered")

	n.Devices = nil // the plugin calls the device unhealthy
	for range 2 {
		s, tl = b.Build(answer(&n, 0), View{}, s)
		assert.Zero(t, tl.SharesAssumed)
		assert.Equal(t, want, lines(s.Metrics(&Origin{Node: b.Node})))
	}
	n.Pods = nil
	s, _ = b.Build(answer(&n, 0), View{}, s)
	assert.Empty(t, s.replicas, "and forgotten with its last holder")

	// A plugin that now shares by two, while a pod still holds the fourth part.
	n = node{Devices: map[string][]string{gpuName: replicas(gpuA, 2)}, Pods: []pod{holds("ml", "a", gpuName, gpuA+"::0", gpuA+"::3")}}
	s, _ = b.Build(answer(&n, 0), View{}, &Snapshot{replicas: map[device]int{{gpuName, gpuA, true}: 4}})
	assert.Equal(t, []string{
		"-/-/- " + gpuA + "::1 0 nvidia.com/gpu time_slicing true",
		"ml/a/main " + gpuA + "::0 0.5 nvidia.com/gpu time_slicing true",
		"ml/a/main " + gpuA + "::3 0.5 nvidia.com/gpu time_slicing true",
	}, lines(s.Metrics(&Origin{Node: b.Node})))

	// All four are still held: the shares do not exceed the device.
	n.Pods = []pod{holds("ml", "a", gpuName, replicas(gpuA, 4)...)}
	s, _ = b.Build(answer(&n, 0), View{}, s)
	total := 0.0
	for _, a := range s.allocations {
		total += a.share
	}
	assert.InDelta(t, 1, total, 0)
}

// An answer of a kubelet in the form of a real one.
func TestSample(t *testing.T) {
	text, err := os.ReadFile("testdata/podresources-mig.json")
	require.NoError(t, err)
	// The sample is the protocol's text in JSON, with topology in another form.
	var sample struct {
		PodResources []struct {
			Name, Namespace string
			Containers      []struct {
				Name    string
				Devices []struct {
					ResourceName string   `json:"resource_name"`
					DeviceIDs    []string `json:"device_ids"`
				}
			}
		} `json:"pod_resources"`
	}
	require.NoError(t, json.Unmarshal(text, &sample))
	var n node
	for _, p := range sample.PodResources {
		out := pod{Namespace: p.Namespace, Name: p.Name}
		for _, c := range p.Containers {
			devices := map[string][]string{}
			for _, d := range c.Devices {
				devices[d.ResourceName] = append(devices[d.ResourceName], d.DeviceIDs...)
			}
			out.Containers = append(out.Containers, container{Name: c.Name, Devices: devices})
		}
		n.Pods = append(n.Pods, out)
	}
	b := newBuilder(t)
	s, _ := b.Build(answer(&n, 0), View{}, nil)
	assert.Equal(t, []string{
		"inference/chat-0/server GPU-0a11ce00-0001-4000-8000-000000000001 1 nvidia.com/gpu none true",
		"inference/chat-0/server node-a/MIG-GPU-0a11ce00-0001-4000-8000-000000000001 1 nvidia.com/gpu none false",
	}, lines(s.Metrics(&Origin{Node: b.Node})))
}
