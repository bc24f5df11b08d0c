// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadatatest"
)

const mig = "MIG-c4529c8d-69c4-b61d-e0bc-7b2460096005"

func noService(c *Config) { c.ServiceName = ServiceNameNone }

// snapshot is what gpu_allocation reports of node n1: each line has an owner
// (NAMESPACE/POD/CONTAINER, or - for free), a share and the point's attributes.
func snapshot(seconds int, lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		f := strings.Fields(line)
		b.WriteString("resource k8s.node.name=n1")
		if h := strings.Split(f[0], "/"); len(h) == 3 {
			fmt.Fprintf(&b, " k8s.namespace.name=%s k8s.pod.name=%s k8s.container.name=%s", h[0], h[1], h[2])
		}
		fmt.Fprintf(&b, "\nmetric gpu.allocation sum 1\n%s @%d %s\n", f[1], seconds, strings.Join(f[2:], " "))
	}
	return b.String()
}

// telemetry is one point of a device with the resource attributes attrs.
func telemetry(seconds int, id, attrs string) string {
	return fmt.Sprintf("resource hw.id=%[2]s %[3]s\nmetric hw.power gauge W\n300 @%[1]d hw.id=%[2]s\n", seconds, id, attrs)
}

// ownersIn is the owner of the live points of the device in a batch, and
// whether there are any.
func ownersIn(b *bench, in string) map[string]string {
	out := map[string]string{}
	for _, rm := range b.feed(parse(in)).ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		if id := str(attrs, names.HwID); id != "" && points.CountLive(rm) > 0 {
			h := owner.Of(attrs)
			out[id] = h.String()
		}
	}
	return out
}

// Who holds a device, according to gpu.allocation and the exporter's labels.
func TestOwnerFromAllocation(t *testing.T) {
	const a = "hw.id=GPU-a "
	const labels = "namespace=ml pod=label-0 container=main"
	for _, tt := range []struct {
		name     string
		snapshot []string
		id       string // GPU-a
		attrs    string
		also     string // telemetry of another device
		want     string
	}{
		{name: "held", snapshot: []string{"ml/chat-0/main 1 " + a}, want: "ml/chat-0/main"},
		{name: "held through a claim", snapshot: []string{"ml/chat-0/main 1 gpu.attribution.source=dra " + a}, want: "ml/chat-0/main"},
		{name: "the allocation beats the labels", snapshot: []string{"ml/chat-0/main 1 " + a}, attrs: labels, want: "ml/chat-0/main"},
		{name: "a free device loses a stale label", snapshot: []string{"- 0 " + a}, attrs: labels, want: ""},
		{name: "an identity that is there stays", snapshot: []string{"ml/chat-0/main 1 " + a},
			attrs: "k8s.namespace.name=ml k8s.pod.name=there-0", want: "ml/there-0"},
		{name: "no snapshot: the labels decide", snapshot: []string{"ml/chat-0/main 1 hw.id=GPU-b"}, attrs: labels, want: "ml/label-0/main"},
		{name: "contested: nobody, not even by the labels",
			snapshot: []string{"ml/chat-0/main 1 " + a, "ml/chat-1/main 1 " + a}, attrs: labels, want: ""},
		{name: "two containers of one pod: the pod",
			snapshot: []string{"ml/chat-0/main 1 " + a, "ml/chat-0/side 1 " + a}, want: "ml/chat-0"},
		{name: "a claim of two pods is shared",
			snapshot: []string{"ml/chat-0/main 1 gpu.attribution.source=dra " + a, "ml/chat-1/main 1 gpu.attribution.source=dra " + a}, attrs: labels, want: ""},
		{name: "shared: no holder", snapshot: []string{"ml/chat-0/main 0.5 gpu.sharing=time_slicing hw.id=GPU-a::0", "- 0 gpu.sharing=time_slicing hw.id=GPU-a::1"},
			attrs: labels, want: ""},
		{name: "all replicas are free", snapshot: []string{"- 0 hw.id=GPU-a::0", "- 0 hw.id=GPU-a::1"}, attrs: labels, want: ""},
		{name: "compute instances of one MIG instance", id: "GPU-a/3",
			snapshot: []string{"ml/chat-0/main 0.5 hw.id=GPU-a/3", "ml/chat-1/main 0.5 hw.id=GPU-a/3"}, attrs: labels, want: ""},
		{name: "a MIG instance", id: "GPU-a/3", snapshot: []string{"ml/chat-0/main 1 hw.id=GPU-a/3"}, attrs: "hw.parent=GPU-a", want: "ml/chat-0/main"},
		{name: "the GPU of a MIG instance has no holder", snapshot: []string{"ml/chat-0/main 1 hw.id=GPU-a/3", "- 0 " + a}, attrs: labels, want: ""},
		{name: "held under two names of a resource", snapshot: []string{
			"ml/chat-0/main 1 k8s.resource.name=nvidia.com/gpu " + a, "- 0 k8s.resource.name=gpu.nvidia.com " + a}, want: "ml/chat-0/main"},

		{name: "MIG by its own id", id: "GPU-a/3", snapshot: []string{"ml/chat-0/main 1 hw.id=n1/" + mig},
			attrs: "hw.parent=GPU-a gpu.mig.uuid=" + mig + " " + labels, want: "ml/chat-0/main"},
		{name: "MIG by an id that the kubelet did not have", id: "GPU-a/3", snapshot: []string{"ml/chat-0/main 1 hw.id=n1/drv/pool/dev gpu.mig.uuid=" + mig},
			attrs: "hw.parent=GPU-a gpu.mig.uuid=" + mig, want: "ml/chat-0/main"},
		{name: "MIG that telemetry does not name: labels", id: "GPU-a/3", snapshot: []string{"ml/chat-0/main 1 hw.id=n1/" + mig},
			attrs: "hw.parent=GPU-a " + labels, want: "ml/label-0/main"},
		{name: "the only instance of a profile", id: "GPU-a/3",
			snapshot: []string{"ml/chat-0/main 1 hw.id=n1/x hw.parent=GPU-a gpu.mig.profile=3g.20gb", "- 0 hw.id=n1/y hw.parent=GPU-a gpu.mig.profile=1g.5gb"},
			attrs:    "hw.parent=GPU-a gpu.mig.profile=3g.20gb", want: "ml/chat-0/main"},
		{name: "the only instance of a profile in another form", id: "GPU-a/3",
			snapshot: []string{"ml/chat-0/main 1 hw.id=n1/x hw.parent=GPU-a gpu.mig.profile=1g.10gb.me"},
			attrs:    "hw.parent=GPU-a gpu.mig.profile=1g.10gb+me", want: "ml/chat-0/main"},
		{name: "one of two instances of a profile", id: "GPU-a/3",
			snapshot: []string{"ml/chat-0/main 1 hw.id=n1/x hw.parent=GPU-a gpu.mig.profile=3g.20gb", "- 0 hw.id=n1/y hw.parent=GPU-a gpu.mig.profile=3g.20gb"},
			attrs:    "hw.parent=GPU-a gpu.mig.profile=3g.20gb", want: ""},
		{name: "GKE", snapshot: []string{"ml/chat-0/main 1 hw.id=n1/nvidia4"}, attrs: "k8s.node.name=n1 gpu.index=4", want: "ml/chat-0/main"},
		{name: "GKE, MIG", id: "GPU-a/3", snapshot: []string{"ml/chat-0/main 1 hw.id=n1/nvidia4/gi3", "ml/chat-1/main 1 hw.id=n1/nvidia4/gi5"},
			attrs: "hw.parent=GPU-a k8s.node.name=n1 gpu.index=4 gpu.mig.instance_id=3", want: "ml/chat-0/main"},
		{name: "GKE, shared", snapshot: []string{"ml/chat-0/main 0.5 gpu.sharing=time_slicing hw.id=n1/nvidia4/vgpu0"},
			attrs: "k8s.node.name=n1 gpu.index=4", want: ""},
		{name: "GKE, another node", snapshot: []string{"ml/chat-0/main 1 hw.id=n1/nvidia4"}, attrs: "k8s.node.name=n2 gpu.index=4", want: ""},
		{name: "GKE, a label that agrees", snapshot: []string{"ml/chat-0/main 1 hw.id=n1/nvidia4"},
			attrs: "k8s.node.name=n1 gpu.index=4 namespace=ml pod=chat-0", want: "ml/chat-0/main"},
		{name: "GKE, a label that contradicts", snapshot: []string{"ml/chat-0/main 1 hw.id=n1/nvidia4"},
			attrs: "k8s.node.name=n1 gpu.index=4 " + labels, want: "ml/label-0/main"},
		{name: "GKE, the holder's label is on another device", snapshot: []string{"ml/chat-0/main 1 hw.id=n1/nvidia4", "- 0 hw.id=n1/nvidia5"},
			attrs: "k8s.node.name=n1 gpu.index=4", also: telemetry(10, "GPU-z", "k8s.node.name=n1 gpu.index=5 namespace=ml pod=chat-0"), want: ""},
		{name: "GKE, the holder has another device too", snapshot: []string{"ml/chat-0/main 1 hw.id=n1/nvidia4", "ml/chat-0/main 1 hw.id=n1/nvidia5"},
			attrs: "k8s.node.name=n1 gpu.index=4", also: telemetry(10, "GPU-z", "k8s.node.name=n1 gpu.index=5 namespace=ml pod=chat-0"), want: "ml/chat-0/main"},
		{name: "an id of nobody", snapshot: []string{"ml/chat-0/main 1 hw.id=n1/card0-3"}, attrs: "k8s.node.name=n1 " + labels, want: "ml/label-0/main"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id := tt.id
			if id == "" {
				id = "GPU-a"
			}
			allocations, samples := snapshot(10, tt.snapshot...), telemetry(10, id, tt.attrs)+tt.also
			for order, in := range map[string]string{"allocation first": allocations + samples, "telemetry first": samples + allocations} {
				require.Equal(t, tt.want, ownersIn(start(t, noService), in)[id], order)
			}
			b := start(t, noService)
			b.feed(parse(samples))
			b.feed(parse(allocations))
			require.Equal(t, map[string]string{id: tt.want}, ownersIn(b, telemetry(20, id, tt.attrs)), "in batches of their own")
		})
	}
}

// The parts of a snapshot arrive within a second. What it does not list is
// trusted until then; what is late is not; what is not repeated is unknown.
func TestSnapshotsFollowEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, noService)
		const a, bb = "ml/a-0/main 1 hw.id=GPU-a", "ml/b-0/main 1 hw.id=GPU-b"
		who := func(seconds int) map[string]string {
			return ownersIn(b, telemetry(seconds, "GPU-a", "namespace=ml pod=label-0")+telemetry(seconds, "GPU-b", ""))
		}
		b.feed(parse(snapshot(10, a)))
		b.feed(parse(snapshot(10, bb)))
		require.Equal(t, map[string]string{"GPU-a": "ml/a-0/main", "GPU-b": "ml/b-0/main"}, who(10))

		// The next one has GPU-b alone, so far.
		b.feed(parse(snapshot(20, "ml/c-0/main 1 hw.id=GPU-b")))
		require.Equal(t, map[string]string{"GPU-a": "ml/a-0/main", "GPU-b": "ml/c-0/main"}, who(20))
		b.feed(parse(snapshot(15, bb))) // late
		require.Equal(t, map[string]string{"GPU-a": "ml/a-0/main", "GPU-b": "ml/c-0/main"}, who(21))

		// It is complete, and GPU-a is not in it: the label is all there is.
		time.Sleep(time.Second)
		require.Equal(t, map[string]string{"GPU-a": "ml/label-0", "GPU-b": "ml/c-0/main"}, who(22))

		// gpu_allocation is silent: unknown, although the label of GPU-b is there.
		time.Sleep(45 * time.Second)
		require.Equal(t, map[string]string{"GPU-a": "ml/label-0", "GPU-b": ""},
			ownersIn(b, telemetry(67, "GPU-a", "namespace=ml pod=label-0")+telemetry(67, "GPU-b", "namespace=ml pod=label-1")))

		// A clock was set back. Nothing younger is known, so this is news.
		b.feed(parse(snapshot(5, bb)))
		require.Equal(t, map[string]string{"GPU-a": "ml/label-0", "GPU-b": "ml/b-0/main"}, who(70))
		metadatatest.AssertEqualGpuPodAllocationPointsRefused(t, b.tel, []metricdata.DataPoint[int64]{
			{Value: 1, Attributes: attribute.NewSet(attribute.String("reason", "late"))},
		}, metricdatatest.IgnoreTimestamp())

		time.Sleep(3 * time.Second)
		metadatatest.AssertEqualGpuPodAllocationAge(t, b.tel,
			[]metricdata.DataPoint[float64]{{Value: 3}}, metricdatatest.IgnoreTimestamp())
	})
}

// What nothing reports any more is forgotten; what only gpu_allocation is silent
// about stays unknown.
func TestForgetsSilentNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, noService)
		b.feed(parse(snapshot(10, "ml/a-0/main 1 hw.id=GPU-a")))
		for i := range 12 {
			require.Equal(t, i == 0, ownersIn(b, telemetry(10+60*i, "GPU-a", "namespace=ml pod=label-0"))["GPU-a"] != "")
			time.Sleep(time.Minute + time.Second)
		}
		_, known := b.p.pipeline.Join.Memory.Age(time.Now())
		require.True(t, known)
		time.Sleep(11 * time.Minute)
		b.feed(parse(""))
		_, known = b.p.pipeline.Join.Memory.Age(time.Now())
		require.False(t, known)
		require.Equal(t, "ml/label-0", ownersIn(b, telemetry(2000, "GPU-a", "namespace=ml pod=label-0"))["GPU-a"])
	})
}

// Two nodes that claim one device: a machine got a new name. Until the old one
// is too old to be trusted, the owner is unknown.
func TestDeviceOnTwoNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, noService)
		b.feed(parse(snapshot(10, "ml/a-0/main 1 hw.id=GPU-a")))
		other := strings.ReplaceAll(snapshot(20, "ml/b-0/main 1 hw.id=GPU-a"), "n1", "n2")
		b.feed(parse(other))
		require.Equal(t, map[string]string{"GPU-a": ""}, ownersIn(b, telemetry(20, "GPU-a", "")))
		time.Sleep(46 * time.Second)
		b.feed(parse(strings.ReplaceAll(other, "@20", "@60")))
		require.Equal(t, map[string]string{"GPU-a": "ml/b-0/main"}, ownersIn(b, telemetry(60, "GPU-a", "")))
	})
}

// What cannot be true is ignored and does not affect the rest.
func TestRefusesBadAllocations(t *testing.T) {
	b := start(t, noService)
	in := snapshot(10,
		"ml/a-0/main -1 hw.id=GPU-a", "ml/a-0/main NaN hw.id=GPU-a", "ml/a-0/main 2 hw.id=GPU-a", "ml/a-0/main 0 hw.id=GPU-a",
		"- 1 hw.id=GPU-a", "ml/a-0/main 1", "/a-0/main 1 hw.id=GPU-a", "ml//main 1 hw.id=GPU-a",
		"ml/größe-模型/main 1 hw.id=GPU-b", "ml/a-0/main stale hw.id=GPU-a") +
		strings.ReplaceAll(snapshot(10, "ml/a-0/main 1 hw.id=GPU-a"), "k8s.node.name=n1", "")
	require.Equal(t, map[string]string{"GPU-a": "ml/label-0", "GPU-b": "ml/größe-模型/main"},
		ownersIn(b, in+telemetry(10, "GPU-a", "namespace=ml pod=label-0")+telemetry(10, "GPU-b", "")))
	metadatatest.AssertEqualGpuPodAllocationPointsRefused(t, b.tel, []metricdata.DataPoint[int64]{
		{Value: 9, Attributes: attribute.NewSet(attribute.String("reason", "invalid"))},
	}, metricdatatest.IgnoreTimestamp())
	require.Equal(t, 1, b.logs.FilterMessageSnippet("gpu.allocation points").Len())
}

func TestDeviceLimit(t *testing.T) {
	b := start(t, noService, func(c *Config) { c.MaxDevices = 2 })
	in := snapshot(10, "ml/a-0/main 1 hw.id=GPU-a", "ml/b-0/main 1 hw.id=GPU-b", "ml/c-0/main 1 hw.id=GPU-c")
	require.Equal(t, map[string]string{"GPU-a": "ml/a-0/main", "GPU-b": "ml/b-0/main", "GPU-c": ""},
		ownersIn(b, in+telemetry(10, "GPU-a", "")+telemetry(10, "GPU-b", "")+telemetry(10, "GPU-c", "")))
	metadatatest.AssertEqualGpuPodDevicesRefused(t, b.tel,
		[]metricdata.DataPoint[int64]{{Value: 2}}, metricdatatest.IgnoreTimestamp())
	require.Equal(t, 1, b.logs.FilterMessageSnippet("max_devices").Len())
	// A newer snapshot takes the place of the older, not room beside it.
	require.Equal(t, map[string]string{"GPU-c": "ml/c-0/main"},
		ownersIn(b, snapshot(20, "ml/c-0/main 1 hw.id=GPU-c")+telemetry(20, "GPU-c", "")))
}

// Thousands of owners of one device cost no more than the limit.
func TestManyOwners(t *testing.T) {
	b := start(t, noService)
	var lines []string
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf("ml/p-%d/main 1 hw.id=GPU-a", i))
	}
	require.Equal(t, map[string]string{"GPU-a": ""}, ownersIn(b, snapshot(10, lines...)+telemetry(10, "GPU-a", "namespace=ml pod=label-0")))
	require.Equal(t, 1, b.p.pipeline.Tracker.Devices()[identity.SourceContested])
}
