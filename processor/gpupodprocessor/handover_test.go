// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

const (
	aHeld = "k8s.container.name=main k8s.namespace.name=ml k8s.pod.name=a-0"
	bHeld = "k8s.container.name=main k8s.namespace.name=ml k8s.pod.name=b-0"
)

// A device goes from one pod to another: gpu.allocation at once, the telemetry
// with its next points, so that a sum over devices never misses one.
func TestAllocationChangesHands(t *testing.T) {
	b := start(t, noService)
	b.expect(snapshot(10, "ml/a-0/main 1 hw.id=GPU-a")+telemetry(12, "GPU-a", ""),
		snapshot(10, "ml/a-0/main 1 hw.id=GPU-a")+telemetry(12, "GPU-a", aHeld))
	b.expect(snapshot(20, "ml/b-0/main 1 hw.id=GPU-a"), `
		resource k8s.container.name=main k8s.namespace.name=ml k8s.node.name=n1 k8s.pod.name=b-0
		metric gpu.allocation sum 1
		1 @20 hw.id=GPU-a
		resource k8s.container.name=main k8s.namespace.name=ml k8s.node.name=n1 k8s.pod.name=a-0
		metric gpu.allocation sum 1
		stale @20 hw.id=GPU-a`)
	b.expect(telemetry(27, "GPU-a", ""), telemetry(27, "GPU-a", bHeld)+`
		resource hw.id=GPU-a `+aHeld+`
		metric hw.power gauge W
		stale @27 hw.id=GPU-a`)
	// The pod ends: the device is free.
	b.expect(snapshot(35, "- 0 hw.id=GPU-a")+telemetry(42, "GPU-a", "namespace=ml pod=b-0"), `
		resource k8s.node.name=n1
		metric gpu.allocation sum 1
		0 @35 hw.id=GPU-a
		`+telemetry(42, "GPU-a", "")+`
		resource hw.id=GPU-a `+bHeld+`
		metric hw.power gauge W
		stale @42 hw.id=GPU-a
		resource k8s.container.name=main k8s.namespace.name=ml k8s.node.name=n1 k8s.pod.name=b-0
		metric gpu.allocation sum 1
		stale @35 hw.id=GPU-a`)
}

// A replica goes from one pod to another, and becomes free: its gpu.allocation ends
// at once, that of the others goes on. Listed under two pods it waits for all parts.
func TestReplicaChangesHands(t *testing.T) {
	const shared = " gpu.sharing=time_slicing hw.id=GPU-a::"
	end := func(pod, at string) string {
		return `
			resource k8s.container.name=main k8s.namespace.name=ml k8s.node.name=n1 k8s.pod.name=` + pod + `
			metric gpu.allocation sum 1
			stale @` + at + ` gpu.sharing=time_slicing hw.id=GPU-a::1`
	}
	b := start(t, noService)
	first := snapshot(10, "ml/a-0/main 0.5"+shared+"0", "ml/b-0/main 0.5"+shared+"1")
	b.expect(first, first)
	next := snapshot(20, "ml/a-0/main 0.5"+shared+"0", "ml/c-0/main 0.5"+shared+"1")
	b.expect(next, next+end("b-0", "20"))
	free := snapshot(30, "ml/a-0/main 0.5"+shared+"0", "- 0"+shared+"1")
	b.expect(free, free+end("c-0", "30"))
	held := snapshot(40, "ml/a-0/main 0.5"+shared+"0", "ml/b-0/main 0.5"+shared+"1", "ml/c-0/main 0.5"+shared+"1")
	b.expect(held, held)
}

// The exporter is silent: once an interval has passed since the change, a
// snapshot ends the series of the former owner.
func TestChangesHandsWhileTheExporterIsSilent(t *testing.T) {
	for name, next := range map[string][]string{
		"to another pod":      {"ml/b-0/main 1 hw.id=GPU-a"},
		"to nobody":           {"- 0 hw.id=GPU-a"},
		"out of the snapshot": {"- 0 hw.id=GPU-b"},
		"to several":          {"ml/b-0/main 1 hw.id=GPU-a", "ml/c-0/main 1 hw.id=GPU-a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, noService)
				const end = "resource hw.id=GPU-a " + aHeld + "\nmetric hw.power gauge W\nstale "
				b.feed(parse(snapshot(10, "ml/a-0/main 1 hw.id=GPU-a") + telemetry(12, "GPU-a", "")))
				for at := 20; at < 65; at += 15 {
					time.Sleep(15 * time.Second)
					out := format(b.feed(parse(snapshot(at, next...))))
					if at == 35 {
						require.Contains(t, out, end+"@35")
					} else {
						require.NotContains(t, out, "hw.power", at)
					}
				}
				require.Zero(t, b.p.pipeline.Handovers.Len())
				require.Equal(t, b.p.pipeline.Allocations.Series(ownership.Reporter{Node: ownership.Node{Name: "n1"}}), b.tracked(), "none is of a device")
			})
		})
	}
}

// A device is no longer shared, and the exporter is silent: the part's series end
// too, even where the pod that had the part has the whole device now.
func TestPartsEndWhileTheExporterIsSilent(t *testing.T) {
	b, store := start(t, noService), backend{}
	store.write(t, b.feed(parse(snapshot(10, "ml/a-0/main 0.5 gpu.sharing=time_slicing hw.id=GPU-a::0")+inputs(12, "GPU-a", ""))))
	for at := 20; at <= 50; at += 15 {
		store.write(t, b.feed(parse(snapshot(at, "ml/a-0/main 1 hw.id=GPU-a"))))
	}
	for series := range store {
		require.True(t, strings.HasPrefix(series, "gpu.allocation "), series)
	}
	require.Zero(t, b.p.pipeline.Handovers.Len())
}

// A node that vanishes right after a device of it changed hands is forgotten
// with its devices.
func TestForgetsHandoversOfVanishedNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, noService)
		b.feed(parse(snapshot(10, "ml/a-0/main 1 hw.id=GPU-a") + telemetry(12, "GPU-a", "")))
		b.feed(parse(snapshot(20, "- 0 hw.id=GPU-a")))
		require.Equal(t, 1, b.p.pipeline.Handovers.Len())
		time.Sleep(ownership.MaxSilence + time.Minute)
		b.feed(parse(""))
		require.Zero(t, b.p.pipeline.Handovers.Len())
	})
}

// Telemetry that lives is not ended by a snapshot, nor what did not change.
func TestSnapshotEndsNothingThatLives(t *testing.T) {
	b := start(t, noService)
	b.feed(parse(snapshot(10, "ml/a-0/main 1 hw.id=GPU-a") + telemetry(12, "GPU-a", "")))
	b.feed(parse(snapshot(20, "ml/b-0/main 1 hw.id=GPU-a")))
	b.feed(parse(telemetry(27, "GPU-a", "")))
	require.NotContains(t, format(b.feed(parse(snapshot(35, "ml/b-0/main 1 hw.id=GPU-a")))), "stale")
	require.NotContains(t, format(b.feed(parse(snapshot(50, "ml/b-0/main 1 hw.id=GPU-a")))), "stale")
	require.Zero(t, b.p.pipeline.Handovers.Len())
}

// What a snapshot no longer lists ends once its parts had time to arrive; an
// attribute that changes is another series.
func TestAllocationSeriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, noService)
		const end = `
			resource k8s.container.name=main k8s.namespace.name=ml k8s.node.name=n1 k8s.pod.name=a-0
			metric gpu.allocation sum 1
			stale @20 `
		b.feed(parse(snapshot(10, "ml/a-0/main 1 hw.id=GPU-a", "ml/a-0/main 0.5 hw.id=GPU-b::0 gpu.sharing=time_slicing", "ml/b-0/main 1 hw.id=GPU-c x=1")))
		next := snapshot(20, "ml/b-0/main 1 hw.id=GPU-c x=2")
		b.expect(next, next+`
			resource k8s.container.name=main k8s.namespace.name=ml k8s.node.name=n1 k8s.pod.name=b-0
			metric gpu.allocation sum 1
			stale @20 hw.id=GPU-c x=1`)
		b.expect("", "")
		time.Sleep(time.Second)
		b.expect("", end+"hw.id=GPU-a"+`
			metric gpu.allocation sum 1
			stale @20 gpu.sharing=time_slicing hw.id=GPU-b::0`)
		b.expect("", "")
		require.Equal(t, 1, b.tracked())

		// A marker from upstream is for a series that is then not ended again.
		b.feed(parse(snapshot(30, "- 0 hw.id=GPU-c x=2") + `
			resource k8s.container.name=main k8s.namespace.name=ml k8s.node.name=n1 k8s.pod.name=b-0
			metric gpu.allocation sum 1
			stale @30 hw.id=GPU-c x=2`))
		time.Sleep(time.Second)
		b.expect("", "")

		// A node that is gone is forgotten: its series have aged out.
		time.Sleep(ownership.MaxSilence)
		b.expect("", "")
		require.Zero(t, b.p.pipeline.Allocations.Nodes())
		require.Zero(t, b.tracked())
	})
}

// An exporter that is scraped at the time of each snapshot: then the next
// snapshot shows that the one before is complete.
func TestAllocationSeriesEndWithTheNextSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := start(t, noService), backend{}
		feed := func(at int, lines ...string) {
			store.write(t, b.feed(parse(snapshot(at, lines...))))
			time.Sleep(300 * time.Millisecond)
			store.write(t, b.feed(parse(telemetry(at, "GPU-a", ""))))
		}
		const held = "ml/a-0/main 0.5 gpu.sharing=time_slicing hw.id=GPU-a::0"
		feed(10, held, "ml/b-0/main 0.5 gpu.sharing=time_slicing hw.id=GPU-a::1")
		time.Sleep(15 * time.Second)
		feed(25, held, "- 0 gpu.sharing=time_slicing hw.id=GPU-a::1")
		time.Sleep(15 * time.Second)
		feed(40, held, "- 0 gpu.sharing=time_slicing hw.id=GPU-a::1")
		require.Equal(t, 0.5, store.sum("gpu.allocation"))
		require.Equal(t, 2, b.p.pipeline.Allocations.Series(ownership.Reporter{Node: ownership.Node{Name: "n1"}}))
	})
}

// The parts of one snapshot, each with some of the devices, end nothing of each
// other; two containers on one device neither.
func TestPartsOfASnapshot(t *testing.T) {
	b := start(t, noService)
	parts := [][]string{
		{"ml/a-0/main 0.5 hw.id=GPU-a/1"}, {"ml/b-0/main 0.5 hw.id=GPU-a/1"}, {"ml/c-0/main 1 hw.id=GPU-b"}, {"- 0 hw.id=GPU-c"},
	}
	for _, at := range []int{10, 20, 30} {
		for i := range parts {
			part := snapshot(at, parts[(i+at/10)%len(parts)]...)
			b.expect(part, part)
		}
	}
	require.Equal(t, 4, b.tracked())
}

// An id that telemetry resolves is rewritten, and the series under the former
// one ends.
func TestResolvesAllocations(t *testing.T) {
	b := start(t, noService)
	snapshotAt := func(at int) string {
		return snapshot(at, "ml/a-0/main 1 hw.id=n1/"+mig+" gpu.allocation.resolved=false gpu.mig.uuid="+mig,
			"ml/b-0/main 0.5 hw.id=n1/nvidia4/vgpu1 gpu.allocation.resolved=false gpu.sharing=time_slicing",
			"- 0 hw.id=n1/other gpu.allocation.resolved=false")
	}
	b.expect(snapshotAt(10), snapshotAt(10))
	b.feed(parse(telemetry(12, "GPU-a/3", "hw.parent=GPU-a gpu.mig.uuid="+mig) + telemetry(12, "GPU-b", "gpu.index=4 k8s.node.name=n1")))
	b.expect(snapshotAt(20), snapshot(20, "ml/a-0/main 1 hw.id=GPU-a/3 gpu.allocation.resolved=true gpu.mig.uuid="+mig,
		"ml/b-0/main 0.5 hw.id=GPU-b::1 gpu.allocation.resolved=true gpu.sharing=time_slicing",
		"- 0 hw.id=n1/other gpu.allocation.resolved=false")+`
		resource k8s.container.name=main k8s.namespace.name=ml k8s.node.name=n1 k8s.pod.name=a-0
		metric gpu.allocation sum 1
		stale @20 gpu.allocation.resolved=false gpu.mig.uuid=`+mig+` hw.id=n1/`+mig+`
		resource k8s.container.name=main k8s.namespace.name=ml k8s.node.name=n1 k8s.pod.name=b-0
		metric gpu.allocation sum 1
		stale @20 gpu.allocation.resolved=false gpu.sharing=time_slicing hw.id=n1/nvidia4/vgpu1`)
}

// The last device of a node is gone, as where its device plugin stops: what was
// reported of it ends at once, and not only when it is too old.
func TestNodeWithNothingLeft(t *testing.T) {
	const nothing = `
		resource k8s.node.name=n1
		metric gpu.allocation sum 1
		stale @20 k8s.node.name=n1`
	for _, exporter := range []string{"alive", "silent"} {
		t.Run(exporter, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, noService)
				b.feed(parse(nothing)) // of an unknown node
				require.Zero(t, b.p.pipeline.Allocations.Nodes())
				b.feed(parse(snapshot(10, "ml/a-0/main 1 hw.id=GPU-a", "- 0 hw.id=GPU-b") + telemetry(12, "GPU-a", "")))
				b.expect(nothing, nothing+`
					resource k8s.container.name=main k8s.namespace.name=ml k8s.node.name=n1 k8s.pod.name=a-0
					metric gpu.allocation sum 1
					stale @20 hw.id=GPU-a
					resource k8s.node.name=n1
					metric gpu.allocation sum 1
					stale @20 hw.id=GPU-b`)
				time.Sleep(ownership.Together)
				const end = "resource hw.id=GPU-a " + aHeld + "\nmetric hw.power gauge W\nstale @27 hw.id=GPU-a"
				if exporter == "alive" {
					b.expect(telemetry(27, "GPU-a", ""), telemetry(27, "GPU-a", "")+end)
				} else {
					b.expect(strings.ReplaceAll(nothing, "@20", "@32"), strings.ReplaceAll(nothing, "@20", "@32")+"\n"+strings.ReplaceAll(end, "@27", "@32"))
				}
				require.Equal(t, map[string]string{"GPU-a": ""}, ownersIn(b, telemetry(42, "GPU-a", "")))
				b.feed(parse(snapshot(15, "ml/a-0/main 1 hw.id=GPU-a"))) // late
				require.Equal(t, map[string]string{"GPU-a": ""}, ownersIn(b, telemetry(57, "GPU-a", "")))
				b.feed(parse(snapshot(60, "ml/b-0/main 1 hw.id=GPU-a")))
				require.Equal(t, map[string]string{"GPU-a": "ml/b-0/main"}, ownersIn(b, telemetry(72, "GPU-a", "")))
			})
		})
	}
}
