// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func inputs(at int, id, attrs string) string {
	return fmt.Sprintf(`
		resource hw.id=%[2]s hw.type=gpu %[3]s
		scope dcgm
		metric hw.gpu.utilization gauge 1
		0.5 @%[1]d hw.gpu.task=general hw.id=%[2]s
		0.1 @%[1]d hw.gpu.task=encoder hw.id=%[2]s
		metric gpu.pipe.active gauge 1
		0.25 @%[1]d gpu.pipe=tensor hw.id=%[2]s
		0.1 @%[1]d gpu.pipe=fp64 hw.id=%[2]s
		metric gpu.sm.active gauge 1
		0.75 @%[1]d hw.id=%[2]s
		metric hw.power gauge W
		300 @%[1]d hw.id=%[2]s
		metric hw.gpu.memory.usage sum By
		80 @%[1]d hw.id=%[2]s
`, at, id, attrs)
}

func part(at int, id, parent, value, attrs string) string {
	values := []string{"0.5", "0.25", "0.75"}
	if value != "" {
		values = []string{value, value, value}
	}
	return fmt.Sprintf(`
		resource hw.id=%[2]s hw.parent=%[3]s hw.type=gpu %[4]s
		scope dcgm
		metric hw.gpu.utilization gauge 1
		%[5]s @%[1]d gpu.value.scope=device hw.gpu.task=general hw.id=%[2]s
		metric gpu.pipe.active gauge 1
		%[6]s @%[1]d gpu.pipe=tensor gpu.value.scope=device hw.id=%[2]s
		metric gpu.sm.active gauge 1
		%[7]s @%[1]d gpu.value.scope=device hw.id=%[2]s
`, at, id, parent, attrs, values[0], values[1], values[2])
}

func partEnd(at int, id, parent, attrs string) string {
	return fmt.Sprintf(`
		resource hw.id=%[2]s hw.parent=%[3]s hw.type=gpu %[4]s
		scope dcgm
		metric hw.gpu.utilization gauge 1
		stale @%[1]d gpu.value.scope=device hw.gpu.task=general hw.id=%[2]s
		metric gpu.pipe.active gauge 1
		stale @%[1]d gpu.pipe=tensor gpu.value.scope=device hw.id=%[2]s
		metric gpu.sm.active gauge 1
		stale @%[1]d gpu.value.scope=device hw.id=%[2]s
`, at, id, parent, attrs)
}

// A shared device has its own series without owner, and a resource with the
// inputs of the summary for each part that is held.
func TestReplicas(t *testing.T) {
	for _, id := range []string{"GPU-a", "GPU-a/3"} {
		t.Run(id, func(t *testing.T) {
			b := start(t, noService)
			b.feed(parse(snapshot(10, "ml/a-0/main 0.25 gpu.sharing=time_slicing hw.id="+id+"::0",
				"ml/b-0/main 0.25 gpu.sharing=time_slicing hw.id="+id+"::2", "- 0 gpu.sharing=time_slicing hw.id="+id+"::1")))
			b.expect(inputs(12, id, "namespace=ml pod=a-0 vgpu=0"), inputs(12, id, "")+
				part(12, id+"::0", id, "", aHeld)+part(12, id+"::2", id, "", bHeld))

			// One part is given back, the other to another pod.
			b.feed(parse(snapshot(20, "- 0 gpu.sharing=time_slicing hw.id="+id+"::0", "ml/a-0/main 0.25 gpu.sharing=time_slicing hw.id="+id+"::2")))
			b.expect(inputs(27, id, ""), inputs(27, id, "")+part(27, id+"::2", id, "", aHeld)+
				partEnd(27, id+"::2", id, bHeld)+partEnd(27, id+"::0", id, aHeld))

			// Sharing ends: one container has it all.
			b.feed(parse(snapshot(35, "ml/b-0/main 1 hw.id="+id)))
			out := format(b.feed(parse(inputs(42, id, ""))))
			require.Contains(t, out, format(parse(partEnd(42, id+"::2", id, aHeld))))
			require.Contains(t, out, format(parse(inputs(42, id, bHeld))))
			require.Equal(t, 3+7, strings.Count(out, "stale"))
		})
	}
}

// Parts that a scheduler granted are parts like replicas, of any size; the device has the
// power and the memory of all, once. An owner of the whole board has the board itself.
func TestGrantedParts(t *testing.T) {
	b := start(t, noService)
	granted := " gpu.sharing=hami gpu.attribution.source=annotation gpu.allocation.share="
	b.feed(parse(snapshot(10, "ml/a-0/main 0.3"+granted+"0.3 hw.id=GPU-a::0", "ml/b-0/main 0.45"+granted+"0.45 hw.id=GPU-a::4")))
	b.expect(inputs(12, "GPU-a", ""), inputs(12, "GPU-a", "")+
		part(12, "GPU-a::0", "GPU-a", "", aHeld)+part(12, "GPU-a::4", "GPU-a", "", bHeld))

	b.feed(parse(snapshot(20, "ml/b-0/main 1"+granted+"1 hw.id=GPU-a")))
	out := format(b.feed(parse(inputs(27, "GPU-a", ""))))
	require.Contains(t, out, format(parse(inputs(27, "GPU-a", bHeld))))
	require.Contains(t, out, format(parse(partEnd(27, "GPU-a::0", "GPU-a", aHeld))))
}

// A part that two pods claim has no owner, and is left out.
func TestContestedReplica(t *testing.T) {
	b := start(t, noService)
	b.feed(parse(snapshot(10, "ml/a-0/main 0.5 hw.id=GPU-a::0", "ml/c-0/main 0.5 hw.id=GPU-a::0", "ml/b-0/main 0.5 hw.id=GPU-a::1")))
	b.expect(inputs(12, "GPU-a", ""), inputs(12, "GPU-a", "")+part(12, "GPU-a::1", "GPU-a", "", bHeld))
}

// Without k8s_attributes each part has the service that the exporter's labels of
// its pod name.
func TestServiceOfReplicas(t *testing.T) {
	b := start(t)
	b.feed(parse(snapshot(10, "ml/a-0/main 0.5 hw.id=GPU-a::0", "ml/b-0/main 0.5 hw.id=GPU-a::1")))
	md := parse(inputs(12, "GPU-a", ""))
	row := md.ResourceMetrics().At(0).Resource().Attributes().PutEmptySlice("dcgm.holders").AppendEmpty().SetEmptyMap()
	putAll(row, []string{"namespace=ml", "pod=a-0", "container=main", "pod_uid=u1", "pod_label_app=chat", "vgpu=0"})
	require.Equal(t, format(parse(inputs(12, "GPU-a", "")+
		part(12, "GPU-a::0", "GPU-a", "", aHeld+" k8s.pod.uid=u1 service.name=chat")+
		part(12, "GPU-a::1", "GPU-a", "", bHeld+" service.name=b-0"))), format(b.feed(md)))
}

// Devices that share nothing have no parts, and neither have pages and resources
// without the inputs.
func TestNoReplicas(t *testing.T) {
	b := start(t, noService)
	b.feed(parse(snapshot(10, "ml/a-0/main 0.5 hw.id=GPU-a/1", "ml/b-0/main 0.5 hw.id=GPU-a/1", "ml/a-0/main 1 hw.id=GPU-b", "ml/a-0/main 0.5 hw.id=GPU-c::0")))
	b.expect(inputs(12, "GPU-a/1", ""), inputs(12, "GPU-a/1", ""))
	b.expect(inputs(12, "GPU-b", ""), inputs(12, "GPU-b", aHeld))
	b.expect(telemetry(12, "GPU-c", ""), telemetry(12, "GPU-c", ""))
}

// A page scraped by another component: the owner by gpu.allocation wins there too.
func TestScrapedPagesByAllocation(t *testing.T) {
	b := start(t)
	b.feed(parse(snapshot(10, "ml/a-0/main 1 hw.id=GPU-a", "- 0 hw.id=GPU-b", "ml/a-0/main 1 hw.id=n1/nvidia2/gi5",
		"ml/a-0/main 0.5 gpu.sharing=time_slicing hw.id=GPU-d::0", "ml/b-0/main 0.5 gpu.sharing=time_slicing hw.id=GPU-d::1", "ml/b-0/main 1 hw.id=GPU-e")))
	const a = aHeld + " service.name=chat k8s.pod.uid=u1"
	b.expect(`
		resource service.name=dcgm k8s.node.name=n1
		metric DCGM_FI_DEV_GPU_UTIL gauge %
		1 @12 UUID=GPU-a gpu=0 pod=a-0 namespace=ml container=side pod_uid=u1 pod_label_app=chat
		2 @12 UUID=GPU-b gpu=1 pod=stale-0 namespace=ml
		3 @12 UUID=GPU-c gpu=2 GPU_I_ID=5
		4 @12 UUID=GPU-d gpu=3 vgpu=0 pod=a-0 namespace=ml
		4 @12 UUID=GPU-d gpu=3 vgpu=1 pod=b-0 namespace=ml
		metric gpu.sm.active gauge 1
		0.5 @12 UUID=GPU-e gpu=4 pod=a-0 namespace=ml
		0.25 @12 UUID=GPU-d gpu=3`, `
		resource hw.id=GPU-a hw.type=gpu k8s.node.name=n1 `+a+`
		metric DCGM_FI_DEV_GPU_UTIL gauge %
		1 @12 UUID=GPU-a gpu=0 hw.id=GPU-a
		resource hw.id=GPU-b hw.type=gpu k8s.node.name=n1
		metric DCGM_FI_DEV_GPU_UTIL gauge %
		2 @12 UUID=GPU-b gpu=1 hw.id=GPU-b
		resource hw.id=GPU-c/5 hw.parent=GPU-c hw.type=gpu k8s.node.name=n1 `+aHeld+` service.name=a-0
		metric DCGM_FI_DEV_GPU_UTIL gauge %
		3 @12 GPU_I_ID=5 UUID=GPU-c gpu=2 hw.id=GPU-c/5
		resource hw.id=GPU-d hw.type=gpu k8s.node.name=n1
		metric DCGM_FI_DEV_GPU_UTIL gauge %
		4 @12 UUID=GPU-d gpu=3 hw.id=GPU-d
		metric gpu.sm.active gauge 1
		0.25 @12 UUID=GPU-d gpu=3 hw.id=GPU-d
		resource hw.id=GPU-e hw.type=gpu k8s.node.name=n1 `+bHeld+` service.name=b-0
		metric gpu.sm.active gauge 1
		0.5 @12 UUID=GPU-e gpu=4 hw.id=GPU-e
		resource hw.id=GPU-d::0 hw.parent=GPU-d hw.type=gpu k8s.node.name=n1 `+aHeld+` service.name=a-0
		metric gpu.sm.active gauge 1
		0.25 @12 UUID=GPU-d gpu=3 gpu.value.scope=device hw.id=GPU-d::0
		resource hw.id=GPU-d::1 hw.parent=GPU-d hw.type=gpu k8s.node.name=n1 `+bHeld+` service.name=b-0
		metric gpu.sm.active gauge 1
		0.25 @12 UUID=GPU-d gpu=3 gpu.value.scope=device hw.id=GPU-d::1`)
}
