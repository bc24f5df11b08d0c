// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
)

const (
	gpuName = "nvidia.com/gpu"
	gpuA    = "GPU-aaaaaaaa-0000-0000-0000-000000000000"
	gpuB    = "GPU-bbbbbbbb-0000-0000-0000-000000000000"
	migC    = "MIG-cccccccc-0000-0000-0000-000000000000"
)

var t0 = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func newBuilder(t testing.TB, change ...func(*Config)) *builder {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.NodeName = "node-a"
	for _, f := range change {
		f(cfg)
	}
	require.NoError(t, cfg.Validate())
	m, err := resourcenames.New(cfg.ResourceNames)
	require.NoError(t, err)
	return &builder{cfg: cfg, read: reader{m, cfg.DRA.drivers()}}
}

func (n *node) answer(seed uint64) answer {
	order := rand.New(rand.NewPCG(seed, seed))
	return answer{at: t0, list: n.list(order), allocatable: n.allocatable(order)}
}

func replicas(id string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s::%d", id, i)
	}
	return ids
}

// lines renders metrics, one line a point: holder, hw.id, value, resource,
// sharing, resolved.
func lines(md pmetric.Metrics) []string {
	out := []string{}
	for _, rm := range md.ResourceMetrics().All() {
		get := func(attrs pcommon.Map, key string) string {
			v, ok := attrs.Get(key)
			if !ok {
				return "-"
			}
			return v.AsString()
		}
		r := rm.Resource().Attributes()
		if rm.ScopeMetrics().At(0).Metrics().At(0).Name() != names.GPUAllocation.Name {
			continue // about the node
		}
		for _, p := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
			a := p.Attributes()
			out = append(out, fmt.Sprintf("%s/%s/%s %s %v %s %s %s",
				get(r, names.K8sNamespaceName), get(r, names.K8sPodName), get(r, names.K8sContainerName),
				get(a, names.HwID), p.DoubleValue(), get(a, names.K8sResourceName), get(a, names.GPUSharing), get(a, names.GPUAllocationResolved)))
		}
	}
	return out
}

func TestSnapshot(t *testing.T) {
	for name, tt := range map[string]struct {
		node   node
		want   []string
		states states
	}{
		"nothing": {node{}, []string{}, states{}},
		"whole GPUs, one of them free": {
			node{
				devices: map[string][]string{gpuName: {gpuA, gpuB}},
				pods:    []pod{holds("ml", "train", gpuName, gpuA)},
			},
			[]string{
				"-/-/- " + gpuB + " 0 nvidia.com/gpu none true",
				"ml/train/main " + gpuA + " 1 nvidia.com/gpu none true",
			},
			states{held: 1, free: 1},
		},
		"one pod, two containers, three GPUs": {
			node{
				devices: map[string][]string{gpuName: {gpuA, gpuB, "GPU-cccccccc-0000-0000-0000-000000000000"}},
				pods: []pod{{"ml", "train", []container{
					{name: "a", devices: map[string][]string{gpuName: {gpuA, gpuB}}},
					{name: "b", devices: map[string][]string{gpuName: {"GPU-cccccccc-0000-0000-0000-000000000000"}}},
					{name: "sidecar"},
				}}},
			},
			[]string{
				"ml/train/a " + gpuA + " 1 nvidia.com/gpu none true",
				"ml/train/a " + gpuB + " 1 nvidia.com/gpu none true",
				"ml/train/b GPU-cccccccc-0000-0000-0000-000000000000 1 nvidia.com/gpu none true",
			},
			states{held: 3},
		},
		"replicas: two pods hold three of four": {
			node{
				devices: map[string][]string{"nvidia.com/gpu.shared": replicas(gpuA, 4)},
				pods: []pod{
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
			states{held: 3, free: 1},
		},
		"shared since a pod holds the whole": {
			node{
				devices: map[string][]string{gpuName: replicas(gpuA, 2)},
				pods:    []pod{holds("ml", "old", gpuName, gpuA), holds("ml", "new", gpuName, gpuA+"::0")},
			},
			[]string{
				"-/-/- " + gpuA + "::1 0 nvidia.com/gpu time_slicing true",
				"ml/new/main " + gpuA + "::0 0.5 nvidia.com/gpu time_slicing true",
				"ml/old/main " + gpuA + " 1 nvidia.com/gpu none true",
			},
			states{held: 2, free: 1},
		},
		"MIG by UUID: whose instance it is needs NVML": {
			node{
				devices: map[string][]string{"nvidia.com/mig-1g.5gb": {migC}, gpuName: replicas(migC, 2)},
				pods:    []pod{holds("ml", "a", "nvidia.com/mig-1g.5gb", migC), holds("ml", "b", gpuName, migC+"::1")},
			},
			[]string{
				"-/-/- node-a/" + migC + "::0 0 nvidia.com/gpu time_slicing false",
				"ml/a/main node-a/" + migC + " 1 nvidia.com/mig-1g.5gb none false",
				"ml/b/main node-a/" + migC + "::1 0.5 nvidia.com/gpu time_slicing false",
			},
			states{unresolved: 2, free: 1},
		},
		"MIG by GPU: compute instances are parts of the instance": {
			node{
				devices: map[string][]string{gpuName: {
					"MIG-" + gpuA + "/7/0", "MIG-" + gpuA + "/1/0", "MIG-" + gpuA + "/1/1", "MIG-" + gpuA + "/2/0", "MIG-" + gpuA + "/2/1",
				}},
				pods: []pod{
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
			states{held: 4},
		},
		"nobody holds more than the whole: the kubelet lists one part of two that are held": {
			node{
				devices: map[string][]string{gpuName: {"MIG-" + gpuA + "/1/0"}},
				pods:    []pod{holds("ml", "a", gpuName, "MIG-"+gpuA+"/1/0", "MIG-"+gpuA+"/1/1")},
			},
			[]string{"ml/a/main " + gpuA + "/1 1 nvidia.com/gpu none true"},
			states{held: 2},
		},
		"GKE": {
			node{
				devices: map[string][]string{gpuName: {"nvidia0", "nvidia1/gi7", "nvidia2/vgpu0", "nvidia2/vgpu1", "nvidia3/gi1/vgpu0", "nvidia3/gi1/vgpu1"}},
				pods:    []pod{holds("ml", "a", gpuName, "nvidia0", "nvidia1/gi7", "nvidia2/vgpu0", "nvidia3/gi1/vgpu1")},
			},
			[]string{
				"-/-/- node-a/nvidia2/vgpu1 0 nvidia.com/gpu time_slicing false",
				"-/-/- node-a/nvidia3/gi1/vgpu0 0 nvidia.com/gpu time_slicing false",
				"ml/a/main node-a/nvidia0 1 nvidia.com/gpu none false",
				"ml/a/main node-a/nvidia1/gi7 1 nvidia.com/gpu none false",
				"ml/a/main node-a/nvidia2/vgpu0 0.5 nvidia.com/gpu time_slicing false",
				"ml/a/main node-a/nvidia3/gi1/vgpu1 0.5 nvidia.com/gpu time_slicing false",
			},
			states{unresolved: 4, free: 2},
		},
		"other vendors, and what is no accelerator": {
			node{
				devices: map[string][]string{
					"amd.com/gpu": {"0000:19:00.0"}, "habana.ai/gaudi": {"AN01234567"}, "gpu.intel.com/i915": {"card0-0"},
					"gpu.intel.com/i915_monitoring": {"all"}, "rdma/hca": {"mlx5_0"},
				},
				pods: []pod{
					holds("ml", "a", "amd.com/gpu", "0000:19:00.0"), holds("ml", "b", "habana.ai/gaudi", "AN01234567"),
					holds("ml", "c", "rdma/hca", "mlx5_0"), holds("ml", "d", "gpu.intel.com/i915_monitoring", "all"),
				},
			},
			[]string{
				"-/-/- node-a/card0-0 0 gpu.intel.com/i915 none false",
				"ml/a/main node-a/0000:19:00.0 1 amd.com/gpu none false",
				"ml/b/main node-a/AN01234567 1 habana.ai/gaudi none false",
			},
			states{unresolved: 2, free: 1},
		},
		"a device in two pods: both are told, as the kubelet says": {
			node{
				devices: map[string][]string{gpuName: {gpuA}},
				pods:    []pod{holds("ml", "finished", gpuName, gpuA), holds("ml", "next", gpuName, gpuA)},
			},
			[]string{
				"ml/finished/main " + gpuA + " 1 nvidia.com/gpu none true",
				"ml/next/main " + gpuA + " 1 nvidia.com/gpu none true",
			},
			states{contested: 1},
		},
		"a device that the kubelet no longer lists is still held": {
			node{pods: []pod{holds("ml", "a", gpuName, gpuA)}},
			[]string{"ml/a/main " + gpuA + " 1 nvidia.com/gpu none true"},
			states{held: 1},
		},
		"HAMi: parts of a GPU, not surely of the one in the id": {
			node{
				devices: map[string][]string{gpuName: {gpuA + "-0", gpuA + "-1"}},
				pods:    []pod{holds("ml", "a", gpuName, gpuA+"-1")},
			},
			[]string{
				"-/-/- node-a/" + gpuA + "-0 0 nvidia.com/gpu time_slicing false",
				"ml/a/main node-a/" + gpuA + "-1 0.5 nvidia.com/gpu time_slicing false",
			},
			states{unresolved: 1, free: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t)
			for seed := range uint64(10) { // the kubelet's order is that of a map
				s, tl := b.build(tt.node.answer(seed), view{}, nil)
				require.Equal(t, tt.want, lines(s.metrics(b.cfg, "")))
				require.Equal(t, tt.states, s.states)
				require.Zero(t, tl.refused)
				require.Zero(t, tl.sharesAssumed)
			}
		})
	}
}

// Which devices there are may be unknown; then none is free.
func TestAllocatableFails(t *testing.T) {
	b := newBuilder(t)
	n := node{devices: map[string][]string{gpuName: replicas(gpuA, 4)}, pods: []pod{holds("ml", "a", gpuName, gpuA+"::0", gpuA+"::1")}}
	blind := n.answer(0)
	blind.allocatable = nil

	s, tl := b.build(blind, view{}, nil)
	assert.Equal(t, 1, tl.sharesAssumed)
	assert.Equal(t, []string{
		"ml/a/main " + gpuA + "::0 0.5 nvidia.com/gpu time_slicing true",
		"ml/a/main " + gpuA + "::1 0.5 nvidia.com/gpu time_slicing true",
	}, lines(s.metrics(b.cfg, "")), "at least two there are")

	s, tl = b.build(n.answer(0), view{}, s)
	assert.Zero(t, tl.sharesAssumed)
	assert.Equal(t, states{held: 2, free: 2}, s.states)

	want := []string{
		"ml/a/main " + gpuA + "::0 0.25 nvidia.com/gpu time_slicing true",
		"ml/a/main " + gpuA + "::1 0.25 nvidia.com/gpu time_slicing true",
	}
	s, tl = b.build(blind, view{}, s)
	assert.Zero(t, tl.sharesAssumed)
	assert.Equal(t, want, lines(s.metrics(b.cfg, "")), "what was listed before is remembered")

	n.devices = nil // the plugin calls the device unhealthy
	for range 2 {
		s, tl = b.build(n.answer(0), view{}, s)
		assert.Zero(t, tl.sharesAssumed)
		assert.Equal(t, want, lines(s.metrics(b.cfg, "")))
	}
	n.pods = nil
	s, _ = b.build(n.answer(0), view{}, s)
	assert.Empty(t, s.replicas, "and forgotten with its last holder")

	// A plugin that now shares by two, while a pod still holds the fourth part.
	n = node{devices: map[string][]string{gpuName: replicas(gpuA, 2)}, pods: []pod{holds("ml", "a", gpuName, gpuA+"::0", gpuA+"::3")}}
	s, _ = b.build(n.answer(0), view{}, &snapshot{replicas: map[device]int{{gpuName, gpuA, true}: 4}})
	assert.Equal(t, []string{
		"-/-/- " + gpuA + "::1 0 nvidia.com/gpu time_slicing true",
		"ml/a/main " + gpuA + "::0 0.5 nvidia.com/gpu time_slicing true",
		"ml/a/main " + gpuA + "::3 0.5 nvidia.com/gpu time_slicing true",
	}, lines(s.metrics(b.cfg, "")))

	// All four are still held: nobody has more of the device than there is.
	n.pods = []pod{holds("ml", "a", gpuName, replicas(gpuA, 4)...)}
	s, _ = b.build(n.answer(0), view{}, s)
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
		out := pod{namespace: p.Namespace, name: p.Name}
		for _, c := range p.Containers {
			devices := map[string][]string{}
			for _, d := range c.Devices {
				devices[d.ResourceName] = append(devices[d.ResourceName], d.DeviceIDs...)
			}
			out.containers = append(out.containers, container{name: c.Name, devices: devices})
		}
		n.pods = append(n.pods, out)
	}
	b := newBuilder(t)
	s, _ := b.build(n.answer(0), view{}, nil)
	assert.Equal(t, []string{
		"inference/chat-0/server GPU-0a11ce00-0001-4000-8000-000000000001 1 nvidia.com/gpu none true",
		"inference/chat-0/server node-a/MIG-GPU-0a11ce00-0001-4000-8000-000000000001 1 nvidia.com/gpu none false",
	}, lines(s.metrics(b.cfg, "")))
}
