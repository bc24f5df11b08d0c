// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubelet"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// What is left out is counted, and is never taken for free.
func TestRefused(t *testing.T) {
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = fmt.Sprintf("card%02d-0", i)
	}
	const intel = "gpu.intel.com/xe"
	many := node{Devices: map[string][]string{intel: ids}}
	for i, id := range ids[:10] {
		many.Pods = append(many.Pods, holds("ml", fmt.Sprintf("pod-%d", i), intel, id))
	}
	limit := func(containers, devices int) func(*Builder) {
		return func(c *Builder) { c.MaxContainers, c.MaxDevices = containers, devices }
	}
	for name, tt := range map[string]struct {
		node    node
		change  func(*Builder)
		refused map[Reason]int
		states  States
	}{
		"just within the limits": {many, limit(10, 20), nil, States{Unresolved: 10, Free: 10}},
		"containers":             {many, limit(9, 20), map[Reason]int{ContainersLimit: 1}, States{Unresolved: 9}},
		"devices":                {many, limit(10, 7), map[Reason]int{DevicesLimit: 3}, States{Unresolved: 7}},
		"free devices":           {many, limit(10, 12), map[Reason]int{DevicesLimit: 8}, States{Unresolved: 10, Free: 2}},
		"ids": {
			node{
				Devices: map[string][]string{gpuName: {"", gpuA}},
				Pods:    []pod{holds("ml", "a", gpuName, "", "x\u202ey", "new\nline", strings.Repeat("x", dra.MaxID+1), gpuA)},
			},
			limit(10, 10), map[Reason]int{BadID: 5}, States{Held: 1},
		},
		"holders": {
			node{
				Devices: map[string][]string{gpuName: {gpuA, gpuB}},
				Pods:    []pod{holds("ml", "", gpuName, gpuA), holds("ml", strings.Repeat("x", maxName+1), gpuName, gpuA)},
			},
			limit(10, 10), map[Reason]int{BadOwner: 2}, States{Free: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t, tt.change)
			var first []string
			for seed := range uint64(10) {
				s, tl := b.Build(answer(&tt.node, seed), View{}, nil)
				for r := range numReasons {
					require.Equal(t, tt.refused[r], tl.Refused[r], reasonNames[r])
				}
				require.Equal(t, tt.states, s.States)
				got := lines(s.Metrics(&Origin{Node: b.Node}))
				if seed == 0 {
					first = got
				}
				require.Equal(t, first, got, "what is cut off does not change from answer to answer")
			}
		})
	}
}

// sharedByAll are pods of every scheduler, each with a part of a board in percent.
func sharedByAll(part int, ambiguous bool) *Shared {
	minors := sharing.Boards{"0": {ID: gpuA}}
	if ambiguous {
		clear(minors)
	}
	s := &Shared{
		Reader: &sharing.Reader{Reservations: []string{"f"}}, Memory: 100, Listed: true, Fresh: true,
		Pods: map[types.NamespacedName]sharing.Pod{}, Boards: map[string]sharing.Boards{"koordinator": minors},
	}
	for i, name := range sharing.Names() {
		scheduler := sharing.Named(name)
		s.Reader.Schedulers = append(s.Reader.Schedulers, scheduler)
		board := []string{gpuA, gpuB, "0", "g"}[i]
		s.Pods[types.NamespacedName{Namespace: "ml", Name: string("abde"[i])}] = sharing.Pod{
			Scheduler: scheduler, Grants: []sharing.Grant{{Container: "main", Board: board, Share: float64(part) / 100}},
		}
	}
	s.Pods[types.NamespacedName{Namespace: "f", Name: "s"}] = sharing.Pod{Scheduler: sharing.Named("kai"), Group: "g"}
	return s
}

// FuzzBuild: no answer makes build panic or return something impossible.
func FuzzBuild(f *testing.F) {
	seed := node{
		Devices: map[string][]string{gpuName: append(replicas(gpuA, 3), gpuB, "MIG-"+gpuB+"/1/0", "nvidia0/vgpu1"), "amd.com/gpu": {"0"}},
		Pods: []pod{
			claimsOf("ml", "d", "c", "gpu-0", "gpu-9"), claimsOf("ml", "e", "c", "gpu-0"), shared("f", "s", nvidia, "gpu-1", "1"),
			holds("ml", "a", gpuName, gpuA+"::0", gpuB), holds("ml", "b", gpuName, gpuB, "MIG-"+gpuB+"/1/1"), holds("", "c", gpuName, gpuA+"::1"),
		},
	}
	a := answer(&seed, 0)
	list, err := proto.Marshal(a.List)
	require.NoError(f, err)
	allocatable, err := proto.Marshal(a.Allocatable)
	require.NoError(f, err)
	f.Add(list, allocatable, uint8(3), uint8(20), uint8(0), uint8(0))
	f.Add(list, []byte{}, uint8(1), uint8(2), uint8(20), uint8(1))
	f.Fuzz(func(t *testing.T, list, allocatable []byte, containers, devices, part, ambiguous uint8) {
		a := kubelet.Answer{At: t0, List: &podresources.ListPodResourcesResponse{}, Allocatable: &podresources.AllocatableResourcesResponse{}}
		if proto.Unmarshal(list, a.List) != nil || proto.Unmarshal(allocatable, a.Allocatable) != nil {
			return
		}
		b := newBuilder(t, func(c *Builder) {
			c.MaxContainers, c.MaxDevices = int(containers)+1, int(devices)+1
			var err error
			c.Read.Resources, err = resourcenames.New(append(resourcenames.Default(), "a/*"))
			require.NoError(t, err)
		})
		v := claimsRead(b, a, onePool(wholeGPU("gpu-0", gpuA), wholeGPU("gpu-1", gpuC), migDevice("gpu-2", migC, gpuC)))
		if part > 0 { // schedulers share boards, too
			v.Shared = sharedByAll(int(part), ambiguous%2 == 1)
		}
		s, tl := b.Build(a, v, nil)
		assert.LessOrEqual(t, len(s.allocations), b.MaxDevices)
		most := b.MaxContainers + 1
		if v.Shared != nil {
			most += len(v.Shared.Pods) // those without a device that the kubelet lists
		}
		assert.LessOrEqual(t, s.Metrics(&Origin{Node: b.Node}).ResourceMetrics().Len(), most)
		free := map[[2]string]bool{}
		unique := map[allocation]bool{}
		for _, x := range s.allocations { // the free ones come first
			key := [2]string{x.resource, x.hwID}
			identity := allocation{owner: x.owner, resource: x.resource, hwID: x.hwID}
			assert.False(t, unique[identity], "twice: %+v", x)
			unique[identity] = true
			if x.owner.IsZero() {
				assert.Zero(t, x.share)
				assert.False(t, tl.incomplete)
				free[key] = true
				continue
			}
			assert.Greater(t, x.share, 0.0)
			assert.LessOrEqual(t, x.share, 1.0)
			assert.False(t, free[key], "free and held: %+v", x)
		}
	})
}
