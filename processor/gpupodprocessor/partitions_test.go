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
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
)

const amdBoard = "GPU-e3a9c1d200000001"

// xcps is a snapshot of node n1: the first partition of a board is resolved and free, each of
// the others, n1/amdgpu_xcp_0 and so on, has the owner of its place, "-" for none.
func xcps(seconds int, owners ...string) string {
	lines := []string{"- 0 k8s.resource.name=amd.com/gpu gpu.allocation.resolved=true hw.id=" + amdBoard + "/0"}
	for i, o := range owners {
		share := 1
		if o == "-" {
			share = 0
		}
		lines = append(lines, fmt.Sprintf("%s %d k8s.resource.name=amd.com/gpu gpu.allocation.resolved=false hw.id=n1/amdgpu_xcp_%d", o, share, i))
	}
	return snapshot(seconds, lines...)
}

// partitions is telemetry of partitions 1 and so on of the board, with these owners in the
// exporter's labels.
func partitions(seconds int, labels ...string) string {
	var b strings.Builder
	for i, label := range labels {
		attrs := "k8s.node.name=n1 hw.parent=" + amdBoard
		if f := strings.Split(label, "/"); len(f) > 1 {
			attrs += " namespace=" + f[0] + " pod=" + f[1]
			if len(f) > 2 {
				attrs += " container=" + f[2]
			}
		}
		b.WriteString(telemetry(seconds, fmt.Sprintf("%s/%d", amdBoard, i+1), attrs))
	}
	return b.String()
}

// Which partition an unresolved id means is not known: the exporter's labels decide, as far as
// they agree with how many the kubelet has given to each container.
func TestPartitionsByLabels(t *testing.T) {
	for name, tt := range map[string]struct{ kubelet, labels, want []string }{
		"they agree, in any order": {
			[]string{"ml/a/main", "ml/b/main", "ml/a/main"}, []string{"ml/a/main", "ml/a/main", "ml/b/main"}, []string{"ml/a/main", "ml/a/main", "ml/b/main"},
		},
		"the exporter does not name all yet": {
			[]string{"ml/a/main", "ml/a/main", "-"}, []string{"ml/a/main", "-", "-"}, []string{"ml/a/main", "", ""},
		},
		"a label of a pod that ended": {
			[]string{"ml/a/main", "-", "-"}, []string{"ml/a/main", "ml/gone/main", "-"}, []string{"ml/a/main", "", ""},
		},
		"one partition too many: which is not known": {
			[]string{"ml/a/main", "ml/b/main", "-"}, []string{"ml/a/main", "ml/a/main", "ml/b/main"}, []string{"", "", "ml/b/main"},
		},
		"the last container is named for all of the pod": {
			[]string{"ml/a/one", "ml/a/two", "-"}, []string{"ml/a/two", "ml/a/two", "-"}, []string{"ml/a", "ml/a", ""},
		},
		"labels without container": {
			[]string{"ml/a/one", "ml/a/two", "-"}, []string{"ml/a", "ml/a", "-"}, []string{"ml/a", "ml/a", ""},
		},
		"labels without container, too many": {
			[]string{"ml/a/one", "-", "-"}, []string{"ml/a", "ml/a", "-"}, []string{"", "", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, noService)
				b.feed(parse(xcps(100, tt.kubelet...) + partitions(100, tt.labels...)))
				time.Sleep(15 * time.Second) // all parts of the snapshot are there
				got := ownersIn(b, partitions(115, tt.labels...))
				for i, want := range tt.want {
					require.Equal(t, want, strings.Trim(got[fmt.Sprintf("%s/%d", amdBoard, i+1)], "-/"), "partition %d", i+1)
				}
			})
		})
	}
}

// Where the kubelet's answer is too old, or about none of AMD's devices, it contradicts nothing.
func TestPartitionsAreNotDoubted(t *testing.T) {
	const stale = "ml/gone/main"
	for name, kubelet := range map[string]string{
		"no snapshot":   "",
		"NVIDIA's":      snapshot(100, "ml/a/main 1 k8s.resource.name=nvidia.com/gpu gpu.allocation.resolved=false hw.id=n1/MIG-c4529c8d-69c4-b61d-e0bc-7b2460096005"),
		"all resolved":  snapshot(100, "- 0 k8s.resource.name=amd.com/gpu gpu.allocation.resolved=true hw.id="+amdBoard+"/7"),
		"another node":  strings.ReplaceAll(xcps(100, "-"), "n1", "n2"),
		"it names them": xcps(100, stale),
		"the label is on the board too": snapshot(100, stale+" 1 k8s.resource.name=amd.com/gpu gpu.allocation.resolved=false hw.id=n1/amdgpu_xcp_0") +
			telemetry(100, amdBoard, "k8s.node.name=n1 namespace=ml pod=gone container=main"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, noService)
				b.feed(parse(kubelet + partitions(100, stale)))
				time.Sleep(15 * time.Second)
				require.Equal(t, stale, ownersIn(b, partitions(115, stale))[amdBoard+"/1"])
			})
		})
	}
	t.Run("expired", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, noService)
			b.feed(parse(xcps(100, "-") + partitions(100, stale)))
			time.Sleep(15 * time.Second)
			require.Empty(t, strings.Trim(ownersIn(b, partitions(115, stale))[amdBoard+"/1"], "-/"))
			time.Sleep(time.Minute)
			require.Equal(t, map[string]string{amdBoard + "/1": stale}, ownersIn(b, partitions(175, stale)))
		})
	})
}

// The board of partitions that are held has no owner, whatever the exporter prints on its rows.
func TestPartitionedBoardHasNoOwner(t *testing.T) {
	b := start(t, noService)
	b.feed(parse(snapshot(100, "ml/a/main 1 k8s.resource.name=amd.com/gpu gpu.allocation.resolved=true hw.id="+amdBoard+"/0")))
	got := ownersIn(b, telemetry(100, amdBoard, "k8s.node.name=n1 namespace=ml pod=a container=main")+telemetry(100, amdBoard+"/0", "k8s.node.name=n1 hw.parent="+amdBoard))
	require.Empty(t, strings.Trim(got[amdBoard], "-/"))
	require.Equal(t, "ml/a/main", got[amdBoard+"/0"])
}

// A tile has no owner, which its GPU has, and it is not counted as without attribution.
func TestTilesOfAWholeGPU(t *testing.T) {
	const gpu = "PCI-n1@0000:3a:00.0"
	for name, listed := range map[string]string{
		"owned":  "ml/a/main 1 k8s.resource.name=gpu.intel.com/xe gpu.allocation.resolved=true hw.id=" + gpu,
		"free":   "- 0 k8s.resource.name=gpu.intel.com/xe gpu.allocation.resolved=true hw.id=" + gpu,
		"shared": "ml/a/main 0.5 k8s.resource.name=gpu.intel.com/xe gpu.allocation.resolved=true gpu.sharing=time_slicing hw.id=" + gpu + "::1",
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, noService)
			b.feed(parse(snapshot(100, listed)))
			got := ownersIn(b, telemetry(100, gpu+"/0", "k8s.node.name=n1 hw.parent="+gpu))
			require.Empty(t, strings.Trim(got[gpu+"/0"], "-/"))
			_, devices := b.p.counts()
			require.Equal(t, 1, devices[identity.SourceBoard])
		})
	}
}

// Without gpu.allocation, the exporter's labels are on the GPU. That it has tiles is no reason to
// ignore them, as it is for a GPU in MIG mode.
func TestTilesWithoutAllocation(t *testing.T) {
	const gpu = "PCI-n1@0000:3a:00.0"
	b := start(t, noService)
	page := telemetry(100, gpu, "namespace=ml pod=a container=main") + telemetry(100, gpu+"/0", "hw.parent="+gpu)
	require.Equal(t, map[string]string{gpu: "ml/a/main", gpu + "/0": ""}, ownersIn(b, page))
}

// The list of owners of a shared device has one name in dcgm, and another in the other receivers.
func TestListOfOwners(t *testing.T) {
	for _, key := range []string{names.ExporterHolders, names.DeviceHolders} {
		b := start(t, noService)
		md := parse(telemetry(100, amdBoard, "namespace=ml pod=a"))
		md.ResourceMetrics().At(0).Resource().Attributes().PutEmptySlice(key).AppendEmpty().SetEmptyMap().PutStr("pod", "a")
		for _, rm := range b.feed(md).ResourceMetrics().All() {
			require.Equal(t, map[string]any{names.HwID: amdBoard}, rm.Resource().Attributes().AsRaw(), key)
		}
	}
}
