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

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// besideAnExporter are the batches of one interval on a node where nvml has what the exporter
// lacks: that of the exporter, whose labels name the pod, and that of nvml.
func besideAnExporter(at int, pod string) (exporter, nvml string) {
	exporter = fmt.Sprintf(`
		resource server.address=n1 server.port=9400
		metric gpu.exporter.up sum 1
		1 @%[1]d
		resource hw.id=GPU-a gpu.index=0 k8s.node.name=n1 %[2]s
		scope dcgm
		metric hw.power gauge W
		300 @%[1]d hw.id=GPU-a`, at, pod)
	nvml = fmt.Sprintf(`
		resource server.address=nvml k8s.node.name=n1
		metric gpu.exporter.up sum 1
		1 @%[1]d
		resource hw.id=GPU-a gpu.index=0 gpu.minor=3 k8s.node.name=n1
		scope nvml
		metric gpu.xid.last gauge 1
		0 @%[1]d hw.id=GPU-a`, at)
	return exporter, nvml
}

// nvml beside an exporter that names pods: its series have the same owner, and neither ends
// those of the other.
func TestNVMLBesideAnExporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		for i := range 4 {
			pod := []string{"p", "p", "q", "q"}[i]
			exporter, nvml := besideAnExporter(10*i+10, "namespace=n container=c pod="+pod)
			out := format(b.feed(parse(exporter)))
			require.Equal(t, i == 2, strings.Contains(out, "stale"), "only where the pod changes")
			time.Sleep(time.Second)
			out = format(b.feed(parse(nvml)))
			require.Contains(t, out, "k8s.pod.name="+pod)
			require.NotContains(t, out, "stale")
			time.Sleep(9 * time.Second)
		}
		require.Empty(t, b.logs.All(), "none of them is a duplicate")
	})
}

// What nvml's processes show of the owners of a shared device, and the exporter's page does
// not, makes memory of the replicas.
func TestMemoryOfReplicasFromNVML(t *testing.T) {
	b := start(t, noService)
	b.feed(parse(shareOfTwo(10, "GPU-a")))
	for _, at := range []int{12, 27} {
		require.Equal(t, format(parse(inputs(at, "GPU-a", "gpu.index=0")+
			part(at, "GPU-a::0", "GPU-a", "", "gpu.index=0 "+aHeld)+part(at, "GPU-a::2", "GPU-a", "", "gpu.index=0 "+bHeld))),
			format(b.feed(parse(inputs(at, "GPU-a", "gpu.index=0")))))
		nvml := fmt.Sprintf("resource hw.id=GPU-a hw.type=gpu gpu.minor=3\nscope nvml\nmetric hw.gpu.memory.limit sum By\n96 @%[1]d hw.id=GPU-a\n", at+1)
		md := parse(nvml)
		entry := md.ResourceMetrics().At(0).Resource().Attributes().PutEmptySlice(names.ExporterHolders).AppendEmpty().SetEmptyMap()
		putAll(entry, strings.Fields(bListed))
		entry.PutInt(names.GPUMemoryUsage.Name, 50)
		entry.PutDouble(names.GPUUtilization.Name, .25)
		require.Equal(t, format(parse(nvml+fmt.Sprintf("resource hw.id=GPU-a::2 hw.parent=GPU-a hw.type=gpu gpu.minor=3 %s\nscope nvml\nmetric hw.gpu.memory.usage sum By\n50 @%d hw.id=GPU-a::2", bHeld, at+1))),
			strings.ReplaceAll(formatInts(t, b.feed(md)), "description lost\n", ""), "and no series ends; the description is ours, not the test's")
	}
}
