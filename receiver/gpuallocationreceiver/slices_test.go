// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
)

func TestPools(t *testing.T) {
	at := func(slices ...*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice { return slices }
	for name, tt := range map[string]struct {
		slices   []*resourcev1.ResourceSlice
		uuids    map[string]string // of what can be resolved
		complete []string
	}{
		"none": {nil, map[string]string{}, nil},
		"two slices of two": {
			at(resourceSlice("a", nvidia, 1, 2, wholeGPU("gpu-0", gpuA)), resourceSlice("b", nvidia, 1, 2, wholeGPU("gpu-1", gpuB))),
			map[string]string{"gpu-0": gpuA, "gpu-1": gpuB}, []string{"gpu-0", "gpu-1"},
		},
		"one slice of two": {
			at(resourceSlice("a", nvidia, 1, 2, wholeGPU("gpu-0", gpuA))),
			map[string]string{"gpu-0": gpuA}, nil,
		},
		"an older generation does not count, however complete": {
			at(resourceSlice("a", nvidia, 7, 2, wholeGPU("gpu-0", gpuC)), resourceSlice("b", nvidia, 6, 1, wholeGPU("gpu-0", gpuA), wholeGPU("gpu-1", gpuB))),
			map[string]string{"gpu-0": gpuC}, nil,
		},
		"another driver's pool of the same name is another pool": {
			at(resourceSlice("a", nvidia, 1, 1, wholeGPU("gpu-0", gpuA)), resourceSlice("b", "gpu.amd.com", 9, 2, sliceDevice("gpu-1-128"))),
			map[string]string{"gpu-0": gpuA, "gpu-1-128": ""}, []string{"gpu-0"},
		},
		"the same device twice: neither is believed": {
			at(resourceSlice("a", nvidia, 1, 2, wholeGPU("gpu-0", gpuA)), resourceSlice("b", nvidia, 1, 2, wholeGPU("gpu-0", gpuB), wholeGPU("gpu-1", gpuC))),
			map[string]string{"gpu-0": "", "gpu-1": gpuC}, []string{"gpu-1"},
		},
		"attributes with the driver's name, without type, of another type": {
			at(resourceSlice("a", nvidia, 1, 1,
				sliceDevice("qualified", "gpu.nvidia.com/uuid", gpuA, "gpu.nvidia.com/type", "gpu"), sliceDevice("no-type", "uuid", gpuB),
				sliceDevice("nothing"), sliceDevice("odd", "uuid", "GPU-x"), sliceDevice("forged", "uuid", gpuC+"\n"), sliceDevice("gpu-vfio-0", "type", "vfio", "uuid", gpuC))),
			map[string]string{"qualified": gpuA, "no-type": gpuB, "nothing": "", "odd": "", "forged": "", "gpu-vfio-0": ""},
			[]string{"forged", "gpu-vfio-0", "no-type", "nothing", "odd", "qualified"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := poolsOf(tt.slices...)
			uuids := map[string]string{}
			for id, d := range p.devices {
				uuids[id.device] = d.gpu()
			}
			assert.Equal(t, tt.uuids, uuids)
			var complete []string
			for _, id := range p.ordered {
				complete = append(complete, id.device)
			}
			slices.Sort(complete)
			assert.Equal(t, tt.complete, complete)
		})
	}
}

func TestPoolsHaveALimit(t *testing.T) {
	keeper := sliceKeeper{map[string]bool{nvidia: true}}
	kept := map[string]keptSlice{}
	kept["a"], _ = keeper.keep(resourceSlice("a", nvidia, 1, 1, wholeGPU("gpu-0", gpuA), wholeGPU("gpu-1", gpuB), wholeGPU("gpu-2", gpuC)))
	p := newPools(kept, 2)
	assert.Len(t, p.devices, 2)
	assert.Equal(t, 1, p.refused)

	b := newBuilder(t)
	n := node{}
	_, tl := b.build(n.answer(0), view{pools: p, fresh: true}, nil)
	assert.Equal(t, 1, tl.refused[devicesLimit])
}

func TestKeepsWhatIsNeeded(t *testing.T) {
	keeper := sliceKeeper{map[string]bool{nvidia: true}}
	for _, obj := range []any{resourceSlice("a", "dra.net", 1, 1, sliceDevice("eth0")), "no slice"} {
		_, ok := keeper.keep(obj)
		assert.False(t, ok)
	}
	kept, ok := keeper.keep(resourceSlice("a", nvidia, 3, 2, migDevice("m", migC, gpuA)))
	assert.True(t, ok)
	assert.Equal(t, keptSlice{
		pool: pool{nvidia, "node-a"}, generation: 3, count: 2,
		devices: []keptDevice{{name: "m", attributes: attributes{kind: "mig", uuid: migC, parent: gpuA, profile: "1g.10gb"}}},
	}, kept)
	kept, _ = keeper.keep(resourceSlice("a", nvidia, 1, 1, sliceDevice("x", "uuid", strings.Repeat("x", maxID+1))))
	assert.Empty(t, kept.devices[0].uuid)
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

	n := node{pods: []pod{claimsOf("ml", "train", "c", "gpu-0")}}
	a := n.answer(0)
	for _, p := range a.list.PodResources {
		for _, c := range p.Containers {
			for _, d := range c.DynamicResources {
				d.ClaimResources[0].PoolName = name
			}
		}
	}
	b := newBuilder(t, func(c *Config) { c.NodeName = name })
	_, tl := b.read.list(a.list)
	d := tl.claimed[0].device
	v := view{dra: true, fresh: true, pools: poolsOf(first), claims: map[claimID]claim{tl.claimed[0].claim: {held: map[poolDevice]bool{d: true}}}}
	s, _ := b.build(a, v, nil)
	assert.Equal(t, []string{"train/main GPU-0a11ce00-0001-4000-8000-000000000001 1 gpu.nvidia.com dra none true"}, draLines(s))
	n.pods = nil
	s, _ = b.build(n.answer(0), v, nil)
	assert.Equal(t, []string{"- GPU-0a11ce00-0001-4000-8000-000000000001 0 gpu.nvidia.com dra none true"}, draLines(s))
}
