// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"fmt"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
)

const manyDevices = 10_000

// manyPlugin has 10,000 devices of the device plugin, nine of ten of them held.
func manyPlugin() node {
	n := node{devices: map[string][]string{}}
	for i := range manyDevices {
		id := fmt.Sprintf("GPU-%08x-0000-0000-0000-000000000000", i)
		n.devices[gpuName] = append(n.devices[gpuName], id)
		if i%10 != 0 {
			n.pods = append(n.pods, holds("ml", fmt.Sprintf("pod-%05d", i), gpuName, id))
		}
	}
	return n
}

// manyDRA has 10,000 devices in slices of 128, nine of ten of them held by claims.
func manyDRA() (node, *pools) {
	n := node{}
	count := int64(manyDevices+127) / 128
	var all []*resourcev1.ResourceSlice
	for i := range manyDevices {
		name := fmt.Sprintf("gpu-%d", i)
		if i%128 == 0 {
			all = append(all, resourceSlice(fmt.Sprintf("slice-%d", i), nvidia, 1, count))
		}
		last := all[len(all)-1]
		last.Spec.Devices = append(last.Spec.Devices, wholeGPU(name, fmt.Sprintf("GPU-%08x-0000-0000-0000-000000000000", i)))
		if i%10 != 0 {
			n.pods = append(n.pods, claimsOf("ml", fmt.Sprintf("pod-%05d", i), fmt.Sprintf("claim-%05d", i), name))
		}
	}
	keeper := sliceKeeper{map[string]bool{nvidia: true}}
	kept := map[string]keptSlice{}
	for _, s := range all {
		if is, ok := keeper.keep(s); ok {
			kept[s.Name] = is
		}
	}
	return n, newPools(kept, 50_000)
}

// claimsRead is a view in which every claim was read.
func claimsRead(b *builder, a answer, p *pools) view {
	v := view{dra: true, pools: p, fresh: true, claims: map[claimID]claim{}}
	_, tl := b.read.list(a.list)
	for _, c := range tl.claimed {
		v.claims[c.claim] = claim{held: map[poolDevice]bool{c.device: true}}
	}
	return v
}

// One poll: from the kubelet's answer to a snapshot, and one emission.
func BenchmarkTenThousandDevices(b *testing.B) {
	build := newBuilder(b)
	dra, p := manyDRA()
	for name, tt := range map[string]struct {
		node  node
		pools *pools
	}{"plugin": {manyPlugin(), nil}, "dra": {dra, p}} {
		a := tt.node.answer(1)
		v := claimsRead(build, a, tt.pools)
		perDevice := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/manyDevices, "ns/device")
		}
		b.Run("snapshot/"+name, func(b *testing.B) {
			b.ReportAllocs()
			var old *snapshot
			for b.Loop() {
				old, _ = build.build(a, v, old)
			}
			if got := old.states.held + old.states.free; got != manyDevices {
				b.Fatalf("%d devices", got)
			}
			perDevice(b)
		})
		s, _ := build.build(a, v, nil)
		b.Run("metrics/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.metrics(build.cfg, "")
			}
			perDevice(b)
		})
	}
}
