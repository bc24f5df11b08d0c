// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
)

// Devices of pools beyond the limit are counted with those of the kubelet.
func TestLimitOfPools(t *testing.T) {
	kept, _ := dra.Keeper{Drivers: drivers}.Keep(resourceSlice("a", nvidia, 1, 1, wholeGPU("gpu-0", gpuA), wholeGPU("gpu-1", gpuB), wholeGPU("gpu-2", gpuC)))
	_, tl := newBuilder(t).Build(answer(&node{}, 0), View{Pools: dra.NewPools(map[string]dra.Slice{"a": kept}, 2), Fresh: true}, nil)
	assert.Equal(t, 1, tl.Refused[DevicesLimit])
}

// Slices in the form of those of a real cluster.
func TestSampleSlices(t *testing.T) {
	text, err := os.ReadFile("testdata/resourceslices.json")
	require.NoError(t, err)
	var list resourcev1.ResourceSliceList
	require.NoError(t, json.Unmarshal(text, &list))
	require.Len(t, list.Items, 2)
	first := &list.Items[0]
	name := *first.Spec.NodeName

	n := node{Pods: []pod{claimsOf("ml", "train", "c", "gpu-0")}}
	a := answer(&n, 0)
	for _, p := range a.List.PodResources {
		for _, c := range p.Containers {
			for _, d := range c.DynamicResources {
				d.ClaimResources[0].PoolName = name
			}
		}
	}
	b := newBuilder(t, func(b *Builder) { b.Node = name })
	_, tl := b.Read.list(a.List)
	d := tl.claimed[0].Device
	v := View{DRA: true, Fresh: true, Pools: poolsOf(first), Claims: map[dra.ClaimID]dra.Claim{tl.claimed[0].claim: {Held: map[dra.Device]bool{d: true}}}}
	s, _ := b.Build(a, v, nil)
	assert.Equal(t, []string{"train/main GPU-0a11ce00-0001-4000-8000-000000000001 1 gpu.nvidia.com dra none true"}, draLines(s))
	n.Pods = nil
	s, _ = b.Build(answer(&n, 0), v, nil)
	assert.Equal(t, []string{"- GPU-0a11ce00-0001-4000-8000-000000000001 0 gpu.nvidia.com dra none true"}, draLines(s))
}
