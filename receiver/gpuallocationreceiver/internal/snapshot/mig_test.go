// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/miglayout"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
)

// With the layout that nvml has read, a MIG-<uuid> is a device as any other.
func TestMIGLayout(t *testing.T) {
	const (
		half    = "MIG-bbbbbbbb-1111-0000-0000-000000000000"
		unknown = "MIG-bbbbbbbb-2222-0000-0000-000000000000"
		mig     = "nvidia.com/mig-1g.10gb"
	)
	layout := miglayout.New(t0, 15*time.Second, []miglayout.Instance{
		{UUID: migC, GPU: gpuC, GI: 7, CI: 0}, {UUID: half, GPU: gpuC, GI: 7, CI: 1},
	})
	for name, tt := range map[string]struct {
		node   node
		pools  *dra.Pools
		want   []string
		states States
	}{
		"whole": {
			node:   node{Devices: map[string][]string{mig: {migC}}, Pods: []pod{holds("ml", "a", mig, migC)}},
			want:   []string{"a/main " + gpuC + "/7 1 nvidia.com/mig-1g.10gb pod_resources none true"},
			states: States{Held: 1},
		},
		"replicas": {
			node: node{Devices: map[string][]string{mig: replicas(migC, 2)}, Pods: []pod{holds("ml", "a", mig, migC+"::1")}},
			want: []string{
				"- " + gpuC + "/7::0 0 nvidia.com/mig-1g.10gb pod_resources time_slicing true",
				"a/main " + gpuC + "/7::1 0.5 nvidia.com/mig-1g.10gb pod_resources time_slicing true",
			},
			states: States{Held: 1, Free: 1},
		},
		"compute instances of one instance": {
			node: node{Devices: map[string][]string{mig: {migC, half}}, Pods: []pod{holds("ml", "a", mig, migC), holds("ml", "b", mig, half)}},
			want: []string{
				"a/main " + gpuC + "/7 0.5 nvidia.com/mig-1g.10gb pod_resources none true",
				"b/main " + gpuC + "/7 0.5 nvidia.com/mig-1g.10gb pod_resources none true",
			},
			states: States{Held: 2},
		},
		"not in the layout": {
			node: node{Devices: map[string][]string{mig: {migC, unknown}}, Pods: []pod{holds("ml", "a", mig, unknown)}},
			want: []string{
				"- " + gpuC + "/7 0 nvidia.com/mig-1g.10gb pod_resources none true",
				"a/main node-a/" + unknown + " 1 nvidia.com/mig-1g.10gb pod_resources none false " + unknown,
			},
			states: States{Unresolved: 1, Free: 1},
		},
		"an owner without a name": {
			node:   node{Devices: map[string][]string{mig: {migC}}, Pods: []pod{holds("ml", "", mig, migC)}},
			want:   []string{},
			states: States{},
		},
		"DRA": {
			node:  node{Pods: []pod{claimsOf("ml", "a", "c", "gpu-0-mig-0")}},
			pools: onePool(wholeGPU("gpu-0", gpuC), migDevice("gpu-0-mig-0", migC, gpuC), migDevice("gpu-0-mig-1", unknown, gpuC)),
			want: []string{
				"- node-a/gpu.nvidia.com/node-a/gpu-0-mig-1 0 gpu.nvidia.com dra none false " + unknown + " " + gpuC + " 1g.10gb",
				"a/main " + gpuC + "/7 1 gpu.nvidia.com dra none true",
			},
			states: States{Held: 1, Free: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t)
			v := View{}
			if tt.pools != nil {
				v = readAll(t, &tt.node, tt.pools, nil, nil)
			}
			v.MIG = layout
			for seed := range uint64(5) {
				s, _ := b.Build(answer(&tt.node, seed), v, nil)
				require.Equal(t, tt.want, draLines(s))
				require.Equal(t, tt.states, s.States)
			}
		})
	}
}

// A replica keeps its share where its neighbours are no longer listed, also once the layout is
// no longer known.
func TestMIGLayoutComesAndGoes(t *testing.T) {
	b := newBuilder(t)
	layout := miglayout.New(t0, time.Second, []miglayout.Instance{{UUID: migC, GPU: gpuC, GI: 7}})
	n := node{Devices: map[string][]string{gpuName: replicas(migC, 2)}, Pods: []pod{holds("ml", "a", gpuName, migC+"::0")}}
	var s *Snapshot
	for _, known := range []*miglayout.Layout{nil, layout, nil} {
		s, _ = b.Build(answer(&n, 0), View{MIG: known}, s)
		hwID := gpuC + "/7::0 0.5 nvidia.com/gpu pod_resources time_slicing true"
		if known == nil {
			hwID = "node-a/" + migC + "::0 0.5 nvidia.com/gpu pod_resources time_slicing false " + migC
		}
		assert.Contains(t, draLines(s), "a/main "+hwID)
	}
}
