// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
)

const maxAge = 45 * time.Second

// point adds one point of gpu.allocation of node n1 to md.
func point(md pmetric.Metrics, at int, who owner.Owner, share float64, pairs ...string) {
	rm := md.ResourceMetrics().AppendEmpty()
	attrs := rm.Resource().Attributes()
	attrs.PutStr(names.K8sNodeName, "n1")
	who.Put(attrs)
	p := names.GPUAllocation.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
	p.SetTimestamp(pcommon.Timestamp(at))
	p.SetDoubleValue(share)
	for i := 0; i < len(pairs); i += 2 {
		p.Attributes().PutStr(pairs[i], pairs[i+1])
	}
}

func pod(name string) owner.Owner { return owner.Owner{Namespace: "ml", Pod: name, Container: "main"} }

// However claims are ordered, the answer is the same.
func TestDecideIsOrderless(t *testing.T) {
	all := []claim{
		{owner: pod("a"), share: 0.5, replica: "::10"}, {owner: pod("b"), share: 0.5, replica: "::9"},
		{owner: pod("b"), share: 0.5, replica: "::2"}, {owner: pod("c"), share: 0.5, replica: "::2"}, {replica: "::3"},
	}
	want := &Fact{State: Shared, Replicas: []Replica{{Suffix: "::9", Owner: pod("b")}, {Suffix: "::10", Owner: pod("a")}}}
	for range 50 {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		require.Equal(t, want, decide(append([]claim(nil), all...)))
	}
	require.Equal(t, Shared, decide([]claim{{owner: pod("a"), share: 1}, {owner: pod("b"), share: 0.5, replica: "::0"}}).State,
		"held whole since before it was shared")
	require.Equal(t, Contested, decide([]claim{{owner: pod("a"), share: 0.5}, {owner: pod("b"), share: 0.5}, {owner: pod("c"), share: 0.5}}).State)
}

// A device in MIG mode that is held all the same cannot be.
func TestParentHeldWithItsInstances(t *testing.T) {
	now := time.Unix(100, 0)
	k := New(Config{MaxAge: maxAge, MaxDevices: 100})
	md := pmetric.NewMetrics()
	point(md, 1, pod("a"), 1, names.HwID, "GPU-a")
	point(md, 1, pod("b"), 1, names.HwID, "GPU-a/1")
	point(md, 1, pod("a"), 1, names.HwID, "GPU-b")
	point(md, 1, owner.Owner{}, 0, names.HwID, "GPU-b/1") // could be partitioned
	k.Learn(Allocations(nil, md.ResourceMetrics()), now)
	require.Equal(t, Contested, k.Lookup("GPU-a", now).State)
	require.Equal(t, Owned, k.Lookup("GPU-a/1", now).State)
	require.Equal(t, Owned, k.Lookup("GPU-b", now).State)
}

// A GPU that was replaced is remembered for a while: the one with telemetry is
// meant.
func TestJoinsWithTheDeviceThatHasTelemetry(t *testing.T) {
	now := time.Unix(100, 0)
	k := New(Config{MaxAge: maxAge, MaxDevices: 100})
	node := Node{Name: "n1"}
	k.See(&Device{ID: "GPU-old", Node: node, Index: "0"}, now)
	now = now.Add(maxAge + time.Second)
	k.See(&Device{ID: "GPU-new", Node: node, Index: "0"}, now)
	md := pmetric.NewMetrics()
	point(md, 1, pod("a"), 1, names.HwID, "n1/nvidia0")
	k.Learn(Allocations(nil, md.ResourceMetrics()), now)
	require.Equal(t, Owned, k.Lookup("GPU-new", now).State)
	require.Equal(t, Unknown, k.Lookup("GPU-old", now).State)
	id, ok := k.resolve(Reporter{Node: node}, "n1/nvidia0")
	require.True(t, ok)
	require.Equal(t, "GPU-new", id)
	// Both have telemetry: it is not known which is meant.
	k.See(&Device{ID: "GPU-old", Node: node, Index: "0", Profile: "x"}, now)
	require.Equal(t, Unknown, k.Lookup("GPU-new", now).State)
	require.True(t, k.Unjoined(node, now))
}

// Two clusters may have nodes of one name.
func TestNodesOfTwoClusters(t *testing.T) {
	now := time.Unix(100, 0)
	k := New(Config{MaxAge: maxAge, MaxDevices: 100})
	for _, cluster := range []string{"c1", "c2"} {
		md := pmetric.NewMetrics()
		point(md, 1, pod(cluster), 1, names.HwID, "n1/nvidia0")
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr(names.K8sClusterName, cluster)
		k.Learn(Allocations(nil, md.ResourceMetrics()), now)
		k.See(&Device{ID: "GPU-" + cluster, Node: Node{cluster, "n1"}, Index: "0"}, now)
	}
	for _, cluster := range []string{"c1", "c2"} {
		require.Equal(t, cluster, k.Lookup("GPU-"+cluster, now).Owner.Pod)
	}
}

// Readers go on while writers replace what they read.
func TestConcurrentUse(t *testing.T) {
	k := New(Config{MaxAge: maxAge, MaxDevices: 1000, PodDevices: true})
	now := time.Unix(100, 0)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				md := pmetric.NewMetrics()
				point(md, i, pod("a"), 1, names.HwID, "GPU-a")
				point(md, i, pod("b"), 1, names.HwID, "n1/nvidia0")
				k.Learn(Allocations(nil, md.ResourceMetrics()), now)
				k.See(&Device{ID: fmt.Sprint("GPU-", w), Node: Node{Name: "n1"}, Index: fmt.Sprint(w)}, now)
				k.Sweep(now.Add(time.Duration(i) * time.Minute))
			}
		})
		wg.Go(func() {
			for range 1000 {
				if f := k.Lookup("GPU-a", now); f.State == Owned && f.Owner != pod("a") {
					t.Error("a holder of another device")
				}
				if d := k.DevicesOf(&Pod{Namespace: "ml", Name: "a"}, now.Add(Together)); d != nil && !slices.Equal(d.IDs, []string{"GPU-a"}) {
					t.Error("devices of another pod")
				}
				k.resolve(Reporter{Node: Node{Name: "n1"}}, "n1/nvidia0")
				k.Age(now)
				k.Devices(Reporter{Node: Node{Name: "n1"}}, func(string, bool) {})
			}
		})
	}
	wg.Wait()
}

// While a snapshot is read, its node's pods have the devices of the one before.
func TestDevicesOfWhileASnapshotIsRead(t *testing.T) {
	k, now, a := New(Config{MaxAge: maxAge, MaxDevices: 10, PodDevices: true}), time.Unix(100, 0), &Pod{Namespace: "ml", Name: "a"}
	batch := func(at int, id string) []Allocation {
		md := pmetric.NewMetrics()
		point(md, at, pod("a"), 1, names.HwID, id)
		return Allocations(nil, md.ResourceMetrics())
	}
	k.Learn(batch(10, "GPU-a"), now)
	now = now.Add(15 * time.Second)
	require.Equal(t, []string{"GPU-a"}, k.DevicesOf(a, now).IDs)
	n := k.learn(&batch(25, "GPU-b")[0], now, &Learned{})
	require.Equal(t, []string{"GPU-a"}, k.DevicesOf(a, now).IDs)
	k.publish(n, now)
	now = now.Add(Together)
	require.Equal(t, &Devices{IDs: []string{"GPU-b"}, Since: 25}, k.DevicesOf(a, now))
}

// No allocation and no telemetry is kept for ever, and the counts are right.
func TestForgetsEverything(t *testing.T) {
	k := New(Config{MaxAge: maxAge, MaxDevices: 1000})
	now := time.Unix(100, 0)
	for i := range 20 {
		md := pmetric.NewMetrics()
		point(md, i, pod("a"), 1, names.HwID, fmt.Sprint("GPU-", i%7))
		point(md, i, pod("a"), 0.5, names.HwID, fmt.Sprint("GPU-s::", i%7))
		point(md, i, pod("b"), 1, names.HwID, fmt.Sprint("n1/nvidia", i%5))
		k.Learn(Allocations(nil, md.ResourceMetrics()), now)
		k.See(&Device{ID: fmt.Sprint("GPU-g", i%3), Node: Node{Name: "n1"}, Index: fmt.Sprint(i % 5)}, now)
		k.See(&Device{ID: fmt.Sprint("GPU-p/", i%3), Node: Node{Name: "n1"}}, now)
		now = now.Add(10 * time.Second)
	}
	require.Equal(t, 3, k.devices)
	require.Equal(t, 3+3+1, k.seen.count)
	k.Sweep(now.Add(time.Hour))
	require.Zero(t, k.devices)
	require.Zero(t, k.seen.count)
	require.Empty(t, k.seen.byNode)
	require.Empty(t, k.unresolved)
	count := 0
	k.holding.each(func(string, []*node) { count++ })
	k.nodes.each(func(string, *node) { count++ })
	k.seen.each(func(string, *sighting) { count++ })
	require.Zero(t, count)
}

// FuzzLearn: no points and no telemetry panic or make an answer that is half a
// owner; the owner of a device is one that was reported for it, and each device of a pod
// is one of which the pod is an owner.
func FuzzLearn(f *testing.F) {
	f.Add("n1", "ml", "a", "GPU-a", "", "", 1.0, "GPU-a", uint8(0))
	f.Add("n1", "ml", "a", "n1/nvidia0/gi3/vgpu1", "", "", 0.5, "GPU-a/3", uint8(1))
	f.Add("n1", "ml", "a", "n1/MIG-c4529c8d-69c4-b61d-e0bc-7b2460096005::3", "GPU-a", "1g.5gb", 0.25, "GPU-a/3", uint8(2))
	f.Add("n1", "ml", "a", "n1/MIG-c4529c8d-69c4-b61d-e0zc-7b2460096005::3", "GPU-a", "1g.5gb", 0.25, "a:b/3", uint8(2))
	f.Add("", "", "a", "::", "::", "", math.NaN(), "", uint8(3))
	f.Add("n1", "größe", "\xff", "GPU-a::1", "GPU-a::1", "", -1.0, "GPU-a::1", uint8(7))
	f.Fuzz(func(t *testing.T, node, namespace, name, id, parent, profile string, share float64, seenID string, bits uint8) {
		k := New(Config{MaxAge: maxAge, MaxDevices: 4, PodDevices: true})
		now := time.Unix(100, 0)
		device := Device{ID: seenID, Node: Node{Name: node}, Index: "0", Instance: "3", Parent: parent, Profile: profile}
		if bits&1 != 0 {
			device.MIGUUID = strings.TrimPrefix(id, node+"/")
		}
		for at := range 3 {
			md := pmetric.NewMetrics()
			point(md, at, owner.Owner{Namespace: namespace, Pod: name}, share, names.HwID, id, names.HwParent, parent, names.GPUMIGProfile, profile)
			point(md, at, pod("other"), share, names.HwID, id+"::0")
			md.ResourceMetrics().At(0).Resource().Attributes().PutStr(names.K8sNodeName, node)
			if bits&2 != 0 {
				k.See(&device, now)
			}
			k.Learn(Allocations(nil, md.ResourceMetrics()), now)
			k.See(&device, now)
			for _, x := range []string{id, seenID, parent, id + "::0", device.MIGUUID} {
				got := k.Lookup(x, now)
				require.Equal(t, got.State == Owned, got.Owner.Pod != "", "%+v", got)
				require.Equal(t, got.Owner.Pod == "", got.Owner.Namespace == "", "%+v", got)
				require.Contains(t, []string{"", name, "other"}, got.Owner.Pod)
			}
			for _, p := range []Pod{{Namespace: namespace, Name: name}, {Namespace: "ml", Name: "other"}} {
				d := k.DevicesOf(&p, now.Add(Together))
				if d == nil {
					continue
				}
				require.True(t, slices.IsSorted(d.IDs))
				for _, id := range d.IDs {
					f := k.Lookup(id, now.Add(Together))
					require.True(t, f.State == Shared || f.State == Owned && f.Owner.Pod == p.Name, "%s: %+v", id, f)
				}
			}
			now = now.Add(30 * time.Second)
		}
		k.Sweep(now.Add(time.Hour))
		require.Zero(t, k.devices)
		require.Zero(t, k.seen.count)
	})
}

// BenchmarkLookup is the answer about one of 100,000 devices.
func BenchmarkLookup(b *testing.B) {
	k, ids, now := fleet(100_000)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		if k.Lookup(ids[i%len(ids)], now).State != Owned {
			b.Fatal("not held")
		}
		i++
	}
}

// fleet is n held devices on nodes of eight.
func fleet(n int) (*Memory, []string, time.Time) {
	k, now := New(Config{MaxAge: maxAge, MaxDevices: n}), time.Unix(100, 0)
	ids := make([]string, 0, n)
	for len(ids) < n {
		md := pmetric.NewMetrics()
		for range 8 {
			id := fmt.Sprintf("GPU-%08x-69c4-b61d-e0bc-7b2460096005", len(ids))
			point(md, 1, pod("chat-"+id), 1, names.HwID, id)
			ids = append(ids, id)
		}
		for _, rm := range md.ResourceMetrics().All() {
			rm.Resource().Attributes().PutStr(names.K8sNodeName, fmt.Sprint("node-", len(ids)/8))
		}
		k.Learn(Allocations(nil, md.ResourceMetrics()), now)
		for _, id := range ids[len(ids)-8:] {
			k.See(&Device{ID: id, Node: Node{Name: fmt.Sprint("node-", len(ids)/8)}, Index: "0"}, now)
		}
	}
	return k, ids, now
}
