// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
)

func poolsOf(all ...*resourcev1.ResourceSlice) *dra.Pools {
	keeper := dra.Keeper{Drivers: drivers}
	kept := map[string]dra.Slice{}
	for _, s := range all {
		if is, ok := keeper.Keep(s); ok {
			kept[s.Name] = is
		}
	}
	return dra.NewPools(kept, 1000)
}

func onePool(devices ...resourcev1.Device) *dra.Pools {
	return poolsOf(resourceSlice("a", nvidia, 1, 1, devices...))
}

// readAll is a view in which the claims that a node's kubelet lists were read, but
// for those in unread; the devices of those in looked are only looked at.
func readAll(t *testing.T, n *node, p *dra.Pools, unread, looked map[string]bool) View {
	t.Helper()
	tl := tallyOf(newBuilder(t), n)
	v := View{DRA: true, Pools: p, Fresh: true, Claims: map[dra.ClaimID]dra.Claim{}}
	for _, c := range tl.claimed {
		if unread[c.claim.Name] {
			continue
		}
		if _, ok := v.Claims[c.claim]; !ok {
			v.Claims[c.claim] = dra.Claim{Held: map[dra.Device]bool{}, Looked: map[dra.Device]bool{}}
		}
		if looked[c.claim.Name] {
			v.Claims[c.claim].Looked[c.Device] = true
		} else {
			v.Claims[c.claim].Held[c.Device] = true
		}
	}
	return v
}

func tallyOf(b *Builder, n *node) Tally {
	_, tl := b.Read.list(answer(n, 0).List)
	return tl
}

// draLines are lines with the source and what is known of MIG.
func draLines(s *Snapshot) []string {
	out := []string{}
	for _, a := range s.allocations {
		who := "-"
		if !a.owner.IsZero() {
			who = a.owner.Pod + "/" + a.owner.Container
		}
		line := fmt.Sprintf("%s %s %.3g %s %s %s %v", who, a.hwID, a.share, a.resource, a.source, a.sharing, a.resolved)
		for _, known := range []string{a.MIG, a.Parent, a.Profile, a.Partition} {
			if known != "" {
				line += " " + known
			}
		}
		out = append(out, line)
	}
	return out
}

func shared(name, claim, driver, device, share string) pod {
	return pod{Namespace: "ml", Name: name, Containers: []container{{Name: "main", Claims: []claimedDevice{{Claim: claim, Driver: driver, Device: device, Share: share}}}}}
}

func TestDRA(t *testing.T) {
	two := onePool(wholeGPU("gpu-0", gpuA), wholeGPU("gpu-1", gpuB))
	const migA = "MIG-aaaaaaaa-1111-0000-0000-000000000000"
	cut := onePool(migDevice("gpu-0-mig-1g10gb-19-0", migA, gpuA), migDevice("gpu-0-mig-1g10gb-19-1", migC, gpuA))
	counting := func(d resourcev1.Device) resourcev1.Device {
		d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu-0"}}
		return d
	}
	dynamic := onePool(counting(wholeGPU("gpu-0", gpuA)), counting(migDevice("gpu-0-mig-1g10gb-19-0", "", gpuA)),
		counting(migDevice("gpu-0-mig-1g10gb-19-1", "", gpuA)), wholeGPU("gpu-1", gpuB))

	for name, tt := range map[string]struct {
		node           node
		pools          *dra.Pools
		unread, looked string // names of claims
		stale          bool
		want           []string
		states         States
	}{
		"one held, one free": {
			node:  node{Pods: []pod{claimsOf("ml", "train", "c", "gpu-0")}},
			pools: two,
			want: []string{
				"- " + gpuB + " 0 gpu.nvidia.com dra none true",
				"train/main " + gpuA + " 1 gpu.nvidia.com dra none true",
			},
			states: States{Held: 1, Free: 1},
		},
		"the API is away for long: what is free is not known": {
			node: node{Pods: []pod{claimsOf("ml", "train", "c", "gpu-0")}}, pools: two, stale: true,
			want:   []string{"train/main " + gpuA + " 1 gpu.nvidia.com dra none true"},
			states: States{Held: 1},
		},
		"a claim that was not read: its device is neither held nor free": {
			node:  node{Pods: []pod{claimsOf("ml", "train", "c", "gpu-0")}},
			pools: two, unread: "c",
			want:   []string{"- " + gpuB + " 0 gpu.nvidia.com dra none true"},
			states: States{Free: 1, UnresolvedDRA: 1},
		},
		"slices were never listed: whether it is a GPU is not known": {
			node:   node{Pods: []pod{claimsOf("ml", "train", "c", "gpu-0", "gpu-1")}},
			want:   []string{},
			states: States{UnresolvedDRA: 2},
		},
		"an agent that only looks holds nothing": {
			node:  node{Pods: []pod{claimsOf("ml", "monitor", "all", "gpu-0", "gpu-1"), claimsOf("ml", "train", "c", "gpu-1")}},
			pools: two, looked: "all",
			want: []string{
				"- " + gpuA + " 0 gpu.nvidia.com dra none true",
				"train/main " + gpuB + " 1 gpu.nvidia.com dra none true",
			},
			states: States{Held: 1, Free: 1},
		},
		"held for sure, and by another claim that was not read": {
			node:  node{Pods: []pod{claimsOf("ml", "monitor", "all", "gpu-0"), claimsOf("ml", "train", "c", "gpu-0")}},
			pools: onePool(wholeGPU("gpu-0", gpuA)), unread: "all",
			want:   []string{"train/main " + gpuA + " 1 gpu.nvidia.com dra none true"},
			states: States{UnresolvedDRA: 1},
		},
		"MIG: what is known is reported, its sibling is free": {
			node:  node{Pods: []pod{claimsOf("ml", "a", "c", "gpu-0-mig-1g10gb-19-0")}},
			pools: cut,
			want: []string{
				"- node-a/gpu.nvidia.com/node-a/gpu-0-mig-1g10gb-19-1 0 gpu.nvidia.com dra none false " + migC + " " + gpuA + " 1g.10gb",
				"a/main node-a/gpu.nvidia.com/node-a/gpu-0-mig-1g10gb-19-0 1 gpu.nvidia.com dra none false " + migA + " " + gpuA + " 1g.10gb",
			},
			states: States{Unresolved: 1, Free: 1},
		},
		"MIG made on demand: no UUID, and the GPU is not free beside it": {
			node:  node{Pods: []pod{claimsOf("ml", "a", "c", "gpu-0-mig-1g10gb-19-0")}},
			pools: dynamic,
			want: []string{
				"- " + gpuB + " 0 gpu.nvidia.com dra none true",
				"a/main node-a/gpu.nvidia.com/node-a/gpu-0-mig-1g10gb-19-0 1 gpu.nvidia.com dra none false " + gpuA + " 1g.10gb",
			},
			states: States{Unresolved: 1, Free: 1},
		},
		"nothing is held: the GPU is free, and MIG devices that it could be cut into are not there": {
			pools:  dynamic,
			want:   []string{"- " + gpuA + " 0 gpu.nvidia.com dra none true", "- " + gpuB + " 0 gpu.nvidia.com dra none true"},
			states: States{Free: 2},
		},
		"the same device is not free while what it draws on is held": {
			node:  node{Pods: []pod{claimsOf("ml", "a", "c", "part-0")}},
			pools: poolsOf(resourceSlice("a", nvidia, 1, 1, counting(sliceDevice("part-0")), counting(sliceDevice("part-1")), sliceDevice("other"))),
			want: []string{
				"- node-a/gpu.nvidia.com/node-a/other 0 gpu.nvidia.com dra none false",
				"a/main node-a/gpu.nvidia.com/node-a/part-0 1 gpu.nvidia.com dra none false",
			},
			states: States{Unresolved: 1, Free: 1},
		},
		"passed through to a virtual machine: not a GPU that is held, nor one that is free": {
			node:   node{Pods: []pod{claimsOf("ml", "vm", "c", "gpu-vfio-0")}},
			pools:  onePool(wholeGPU("gpu-0", gpuA), sliceDevice("gpu-vfio-0", "type", "vfio", "uuid", gpuA)),
			want:   []string{},
			states: States{},
		},
		"drivers that are none of GPUs": {
			node:   node{Pods: []pod{shared("a", "channel", "compute-domain.nvidia.com", "channel-0", ""), shared("b", "nic", "dra.net", "eth0", "")}},
			pools:  poolsOf(resourceSlice("a", "compute-domain.nvidia.com", 1, 1, sliceDevice("channel-0"))),
			want:   []string{},
			states: States{},
		},
		"Gaudi by its serial number; AMD without sysfs is not resolved": {
			node: node{Pods: []pod{shared("a", "c", "gpu.amd.com", "gpu-1-128", ""), shared("b", "d", "gaudi.intel.com", "0000-00-01-0-0x1020", "")}},
			pools: poolsOf(
				resourceSlice("a", "gpu.amd.com", 1, 1, sliceDevice("gpu-1-128", "type", "amdgpu", "pciAddr", "0000:19:00.0")),
				resourceSlice("b", "gaudi.intel.com", 1, 1, sliceDevice("0000-00-01-0-0x1020", "serial", "AN01"), sliceDevice("0000-00-02-0-0x1020", "serial", "AN02")),
			),
			want: []string{
				"- GAUDI-AN02 0 gaudi.intel.com dra none true",
				"a/main node-a/gpu.amd.com/node-a/gpu-1-128 1 gpu.amd.com dra none false",
				"b/main GAUDI-AN01 1 gaudi.intel.com dra none true",
			},
			states: States{Held: 1, Unresolved: 1, Free: 1},
		},
		"held, and in no slice": {
			node:   node{Pods: []pod{claimsOf("ml", "a", "c", "gpu-9")}},
			pools:  onePool(wholeGPU("gpu-0", gpuA)),
			want:   []string{"- " + gpuA + " 0 gpu.nvidia.com dra none true", "a/main node-a/gpu.nvidia.com/node-a/gpu-9 1 gpu.nvidia.com dra none false"},
			states: States{Unresolved: 1, Free: 1},
		},
		"a pool of which a slice is missing: nothing in it is free": {
			node:   node{Pods: []pod{claimsOf("ml", "a", "c", "gpu-0")}},
			pools:  poolsOf(resourceSlice("a", nvidia, 2, 2, wholeGPU("gpu-0", gpuA), wholeGPU("gpu-1", gpuB))),
			want:   []string{"a/main " + gpuA + " 1 gpu.nvidia.com dra none true"},
			states: States{Held: 1},
		},
		"one claim of several pods is shared": {
			node:  node{Pods: []pod{claimsOf("ml", "a", "c", "gpu-0"), claimsOf("ml", "b", "c", "gpu-0")}},
			pools: onePool(wholeGPU("gpu-0", gpuA)),
			want: []string{
				"a/main " + gpuA + "::0 0.5 gpu.nvidia.com dra time_slicing true",
				"b/main " + gpuA + "::1 0.5 gpu.nvidia.com dra time_slicing true",
			},
			states: States{Held: 1},
		},
		"one claim of two containers of one pod is the pod's": {
			node:   node{Pods: []pod{{Namespace: "ml", Name: "a", Containers: []container{{Name: "main", Claims: []claimedDevice{{Claim: "c", Driver: nvidia, Device: "gpu-0", Share: ""}}}, {Name: "sidecar", Claims: []claimedDevice{{Claim: "c", Driver: nvidia, Device: "gpu-0", Share: ""}}}}}}},
			pools:  onePool(wholeGPU("gpu-0", gpuA)),
			want:   []string{"a/ " + gpuA + " 1 gpu.nvidia.com dra none true"},
			states: States{Held: 1},
		},
		"shares of one device": {
			node: node{Pods: []pod{
				shared("a", "c", nvidia, "gpu-0", "s1"), shared("b", "d", nvidia, "gpu-0", "s2"), shared("c", "e", nvidia, "gpu-0", "s3"),
				shared("d", "f", nvidia, "gpu-1", "s4"),
			}},
			pools: two,
			want: []string{
				"a/main " + gpuA + "::0 0.333 gpu.nvidia.com dra time_slicing true",
				"b/main " + gpuA + "::1 0.333 gpu.nvidia.com dra time_slicing true",
				"c/main " + gpuA + "::2 0.333 gpu.nvidia.com dra time_slicing true",
				"d/main " + gpuB + "::0 1 gpu.nvidia.com dra time_slicing true",
			},
			states: States{Held: 2},
		},
		"shares, one of a claim that was not read": {
			node:  node{Pods: []pod{shared("a", "c", nvidia, "gpu-0", "s1"), shared("b", "d", nvidia, "gpu-0", "s2")}},
			pools: onePool(wholeGPU("gpu-0", gpuA)), unread: "d",
			want:   []string{"a/main " + gpuA + "::0 0.5 gpu.nvidia.com dra time_slicing true"},
			states: States{UnresolvedDRA: 1},
		},
		"two claims for the whole of one device": {
			node:  node{Pods: []pod{claimsOf("ml", "finished", "c", "gpu-0"), claimsOf("ml", "next", "d", "gpu-0")}},
			pools: onePool(wholeGPU("gpu-0", gpuA)),
			want: []string{
				"finished/main " + gpuA + " 1 gpu.nvidia.com dra none true",
				"next/main " + gpuA + " 1 gpu.nvidia.com dra none true",
			},
			states: States{Contested: 1},
		},
		"DRA and device plugin on one node: each GPU appears once": {
			node: node{
				Devices: map[string][]string{gpuName: {gpuA, gpuB, gpuC}},
				Pods:    []pod{claimsOf("ml", "dra", "c", "gpu-0"), holds("ml", "plugin", gpuName, gpuB)},
			},
			pools: onePool(wholeGPU("gpu-0", gpuA), wholeGPU("gpu-1", gpuB), wholeGPU("gpu-2", gpuC)),
			want: []string{
				"- " + gpuC + " 0 nvidia.com/gpu pod_resources none true",
				"dra/main " + gpuA + " 1 gpu.nvidia.com dra none true",
				"plugin/main " + gpuB + " 1 nvidia.com/gpu pod_resources none true",
			},
			states: States{Held: 2, Free: 1},
		},
		"a slice knows the MIG device of the device plugin": {
			node:   node{Devices: map[string][]string{gpuName: {migC}}, Pods: []pod{holds("ml", "a", gpuName, migC)}},
			pools:  onePool(migDevice("gpu-0-mig-1g10gb-19-1", migC, gpuA)),
			want:   []string{"a/main node-a/" + migC + " 1 nvidia.com/gpu pod_resources none false " + migC + " " + gpuA + " 1g.10gb"},
			states: States{Unresolved: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t)
			v := readAll(t, &tt.node, tt.pools, map[string]bool{tt.unread: true}, map[string]bool{tt.looked: true})
			v.Fresh = !tt.stale
			for seed := range uint64(10) {
				s, tl := b.Build(answer(&tt.node, seed), v, nil)
				require.Equal(t, tt.want, draLines(s))
				require.Equal(t, tt.states, s.States)
				require.Zero(t, tl.Refused)
			}
		})
	}
}

// A part of a device keeps its number while others come and go.
func TestPartsKeepTheirNumbers(t *testing.T) {
	b := newBuilder(t)
	p := onePool(wholeGPU("gpu-0", gpuA))
	var s *Snapshot
	step := func(pods ...string) []string {
		n := node{}
		for _, name := range pods {
			n.Pods = append(n.Pods, shared(name, "claim-"+name, nvidia, "gpu-0", "share-"+name))
		}
		s, _ = b.Build(answer(&n, 0), readAll(t, &n, p, nil, nil), s)
		return draLines(s)
	}
	part := func(pod string, n int, share string) string {
		return fmt.Sprintf("%s/main %s::%d %s gpu.nvidia.com dra time_slicing true", pod, gpuA, n, share)
	}
	assert.Equal(t, []string{part("b", 0, "1")}, step("b"))
	assert.Equal(t, []string{part("a", 1, "0.5"), part("b", 0, "0.5")}, step("a", "b"))
	assert.Equal(t, []string{part("a", 1, "1")}, step("a"))
	assert.Equal(t, []string{part("a", 1, "0.5"), part("c", 0, "0.5")}, step("c", "a"))
	assert.Equal(t, []string{"- " + gpuA + " 0 gpu.nvidia.com dra none true"}, step())
	assert.Empty(t, s.slots)
}

// The labels of the node determine the sharing of replicas.
func TestMPS(t *testing.T) {
	n := node{Devices: map[string][]string{gpuName: replicas(gpuA, 2), "nvidia.com/mig-1g.5gb": {migC}}, Pods: []pod{holds("ml", "a", gpuName, gpuA+"::0")}}
	b := newBuilder(t)
	for _, tt := range []struct {
		node *Node
		want string
	}{{nil, names.SharingTimeSlicing}, {&Node{}, names.SharingTimeSlicing}, {&Node{mps: true}, names.SharingMPS}} {
		s, _ := b.Build(answer(&n, 0), View{Node: tt.node}, nil)
		assert.Equal(t, []string{
			"- " + gpuA + "::1 0 nvidia.com/gpu pod_resources " + tt.want + " true",
			"- node-a/" + migC + " 0 nvidia.com/mig-1g.5gb pod_resources none false " + migC,
			"a/main " + gpuA + "::0 0.5 nvidia.com/gpu pod_resources " + tt.want + " true",
		}, draLines(s))
	}
}

func TestRefusedClaims(t *testing.T) {
	b := newBuilder(t, func(c *Builder) { c.MaxContainers, c.MaxDevices = 2, 3 })
	p := onePool(wholeGPU("gpu-0", gpuA), wholeGPU("gpu-1", gpuB), wholeGPU("gpu-2", gpuC))
	build := func(n node) (*Snapshot, Tally) { return b.Build(answer(&n, 0), readAll(t, &n, p, nil, nil), nil) }

	s, tl := build(node{Pods: []pod{claimsOf("ml", "a", "c", "", "x\u202ey", "gpu-0"), claimsOf("ml", "", "d", "gpu-1")}})
	assert.Equal(t, 2, tl.Refused[BadID])
	assert.Equal(t, 1, tl.Refused[BadOwner])
	assert.Equal(t, []string{"- " + gpuC + " 0 gpu.nvidia.com dra none true", "a/main " + gpuA + " 1 gpu.nvidia.com dra none true"}, draLines(s),
		"whoever holds gpu-1 has no name, but it is not free")

	s, tl = build(node{Pods: []pod{claimsOf("ml", "a", "a", "gpu-0"), claimsOf("ml", "b", "b", "gpu-1"), claimsOf("ml", "c", "c", "gpu-2")}})
	assert.Equal(t, 1, tl.Refused[ContainersLimit])
	assert.Equal(t, States{Held: 2}, s.States)

	n := node{Devices: map[string][]string{gpuName: {gpuA, gpuB}}, Pods: []pod{holds("ml", "a", gpuName, gpuA, gpuB), claimsOf("ml", "b", "b", "gpu-2", "gpu-3")}}
	s, tl = build(n)
	assert.Equal(t, 1, tl.Refused[DevicesLimit])
	assert.Equal(t, States{Held: 3}, s.States)
}

// A claim created again under the same name is another claim; the order in which the
// kubelet lists, and its repetitions, do not make one.
func TestClaimIdentity(t *testing.T) {
	b := newBuilder(t)
	id := func(seed uint64, devices ...string) dra.ClaimID {
		n := node{Pods: []pod{claimsOf("ml", "a", "c", devices...)}}
		_, tl := b.Read.list(answer(&n, seed).List)
		return tl.claimed[0].claim
	}
	assert.Equal(t, id(0, "gpu-0", "gpu-1"), id(1, "gpu-1", "gpu-0", "gpu-0"))
	assert.NotEqual(t, id(0, "gpu-0"), id(0, "gpu-1"))
	assert.NotEqual(t, id(0, "gpu-0"), id(0, "gpu-0", "gpu-1"))
}
