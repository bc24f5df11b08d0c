// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	resourcev1 "k8s.io/api/resource/v1"
)

func poolsOf(all ...*resourcev1.ResourceSlice) *Pools {
	keeper := Keeper{Drivers: map[string]bool{nvidia: true, "gpu.amd.com": true}}
	kept := map[string]Slice{}
	for _, s := range all {
		if is, ok := keeper.Keep(s); ok {
			kept[s.Name] = is
		}
	}
	return NewPools(kept, 1000)
}

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
			for id, d := range p.Devices {
				uuids[id.Device] = d.GPU()
			}
			assert.Equal(t, tt.uuids, uuids)
			var complete []string
			for _, id := range p.Ordered {
				complete = append(complete, id.Device)
			}
			slices.Sort(complete)
			assert.Equal(t, tt.complete, complete)
		})
	}
}

func TestPoolsHaveALimit(t *testing.T) {
	keeper := Keeper{Drivers: map[string]bool{nvidia: true}}
	kept := map[string]Slice{}
	kept["a"], _ = keeper.Keep(resourceSlice("a", nvidia, 1, 1, wholeGPU("gpu-0", gpuA), wholeGPU("gpu-1", gpuB), wholeGPU("gpu-2", gpuC)))
	p := NewPools(kept, 2)
	assert.Len(t, p.Devices, 2)
	assert.Equal(t, 1, p.Refused)
}

func TestKeepsWhatIsNeeded(t *testing.T) {
	keeper := Keeper{Drivers: map[string]bool{nvidia: true}}
	for _, obj := range []any{resourceSlice("a", "dra.net", 1, 1, sliceDevice("eth0")), "no slice"} {
		_, ok := keeper.Keep(obj)
		assert.False(t, ok)
	}
	kept, ok := keeper.Keep(resourceSlice("a", nvidia, 3, 2, migDevice("m", migC, gpuA)))
	assert.True(t, ok)
	assert.Equal(t, Slice{
		pool: Pool{nvidia, "node-a"}, generation: 3, count: 2,
		devices: []Described{{Name: "m", Attributes: Attributes{Kind: "mig", UUID: migC, Parent: gpuA, Profile: "1g.10gb"}}},
	}, kept)
	kept, _ = keeper.Keep(resourceSlice("a", nvidia, 1, 1, sliceDevice("x", "uuid", strings.Repeat("x", MaxID+1))))
	assert.Empty(t, kept.devices[0].UUID)
}
