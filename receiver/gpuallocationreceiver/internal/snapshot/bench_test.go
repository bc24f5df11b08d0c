// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"testing"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/kubelet"
	resourcev1 "k8s.io/api/resource/v1"
)

const manyDevices = 10_000

// manyPlugin has 10,000 devices of the device plugin, nine of ten of them held.
func manyPlugin() node {
	n := node{Devices: map[string][]string{}}
	for i := range manyDevices {
		id := fmt.Sprintf("GPU-%08x-0000-0000-0000-000000000000", i)
		n.Devices[gpuName] = append(n.Devices[gpuName], id)
		if i%10 != 0 {
			n.Pods = append(n.Pods, holds("ml", fmt.Sprintf("pod-%05d", i), gpuName, id))
		}
	}
	return n
}

// manyDRA has 10,000 devices in slices of 128, nine of ten of them held by claims.
func manyDRA() (node, *dra.Pools) {
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
			n.Pods = append(n.Pods, claimsOf("ml", fmt.Sprintf("pod-%05d", i), fmt.Sprintf("claim-%05d", i), name))
		}
	}
	keeper := dra.Keeper{Drivers: map[string]bool{nvidia: true}}
	kept := map[string]dra.Slice{}
	for _, s := range all {
		if is, ok := keeper.Keep(s); ok {
			kept[s.Name] = is
		}
	}
	return n, dra.NewPools(kept, 50_000)
}

// claimsRead is a view in which every claim was read.
func claimsRead(b *Builder, a kubelet.Answer, p *dra.Pools) View {
	v := View{DRA: true, Pools: p, Fresh: true, Claims: map[dra.ClaimID]dra.Claim{}}
	_, tl := b.Read.list(a.List)
	for _, c := range tl.claimed {
		v.Claims[c.claim] = dra.Claim{Held: map[dra.Device]bool{c.Device: true}}
	}
	return v
}

// One poll: from the kubelet's answer to a snapshot, and one emission.
func BenchmarkTenThousandDevices(b *testing.B) {
	build := newBuilder(b)
	withClaims, p := manyDRA()
	for name, tt := range map[string]struct {
		node  node
		pools *dra.Pools
	}{"plugin": {manyPlugin(), nil}, "dra": {withClaims, p}} {
		a := answer(&tt.node, 1)
		v := claimsRead(build, a, tt.pools)
		perDevice := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/manyDevices, "ns/device")
		}
		b.Run("snapshot/"+name, func(b *testing.B) {
			b.ReportAllocs()
			var old *Snapshot
			for b.Loop() {
				old, _ = build.Build(a, v, old)
			}
			if got := old.States.Held + old.States.Free; got != manyDevices {
				b.Fatalf("%d devices", got)
			}
			perDevice(b)
		})
		s, _ := build.Build(a, v, nil)
		b.Run("metrics/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Metrics(&Origin{Node: build.Node})
			}
			perDevice(b)
		})
	}
}
