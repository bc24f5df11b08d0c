// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

// TestSharedDevices: the kubelet reports which pods hold the parts of two
// time-sliced GPUs, the exporter's page what they do. Each part has what its own
// processes use if the exporter reports that, and otherwise what the whole device
// does, marked as such; the devices themselves are there once, without an owner.
func TestSharedDevices(t *testing.T) {
	const (
		first  = "GPU-e09456f7-a673-e61c-b391-58586b5ad69f"
		second = "GPU-30a52028-532e-cf6a-cc5e-3f7bae81fc2a"
	)
	devices := []string{
		first + "  memory 37373345792", first + "  utilization 1",
		second + "  memory 18685624320", second + "  utilization 0.51",
	}
	// Of two replicas in one pod it is unknown which uses what.
	twice := []string{
		second + "::0 twice-0 utilization 0.51 of the device", second + "::1 twice-0 utilization 0.51 of the device",
	}
	for version, parts := range map[string][]string{
		"4.5": {
			first + "::0 chat-0 utilization 1 of the device",
			first + "::1 train-0 utilization 1 of the device",
			first + "::3 note-0 utilization 1 of the device",
		},
		"4.6": {
			first + "::0 chat-0 memory 18686672896", first + "::0 chat-0 utilization 0.34",
			first + "::1 train-0 memory 16138633216", first + "::1 train-0 utilization 0.66",
			first + "::3 note-0 memory 2548039680", first + "::3 note-0 utilization 0",
		},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			folder, err := os.MkdirTemp("", "k") // a socket's path is short
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
			socket := filepath.Join(folder, "kubelet.sock")
			node := kubelet.New(kubelet.Options{})
			node.SetDevices("nvidia.com/gpu", kubelet.Replicas(kubelet.Devices(first, second), 4))
			for _, held := range []struct{ id, pod, container string }{
				{first + "::0", "chat-0", "vllm"}, {first + "::1", "train-0", "torch"}, {first + "::3", "note-0", "jupyter"},
				{second + "::0", "twice-0", "vllm"}, {second + "::1", "twice-0", "vllm"},
			} {
				pod := kubelet.Pod{Namespace: "ml", Name: held.pod}
				require.NoError(t, node.Force(pod, held.container, "nvidia.com/gpu", kubelet.Devices(held.id)...))
			}
			require.NoError(t, node.Serve(socket))
			t.Cleanup(node.Stop)

			endpoint := replay(t, filepath.Join(root, "receiver/dcgmreceiver/testdata/pages", "shared-"+version+".prom"))
			c := start(t, m{
				"receivers": m{
					"dcgm": m{"endpoints": []string{endpoint}, "collection_interval": "1s"},
					"gpu_allocation": m{
						"socket": socket, "node_name": "gpu-node-s", "auth_type": "none",
						"poll_interval": "1s", "timeout": "1s", "collection_interval": "1s",
					},
				},
				"service": m{"pipelines": m{"metrics": m{"receivers": []string{"dcgm", "gpu_allocation"}}}},
			}, nil, config("standalone.yaml"))

			want := slices.Sorted(slices.Values(slices.Concat(devices, parts, twice)))
			var got []string
			f := eventually(t, c, "the parts of both GPUs", func(f map[string]*dto.MetricFamily) bool {
				got = sharedValues(f)
				return slices.Equal(want, got)
			})
			assert.Equal(t, want, got)
			share := 0.
			for _, held := range find(f["gpu_allocation"], "k8s_namespace_name", "ml") {
				assert.Equal(t, "time_slicing", collector.Label(held, "gpu_sharing"))
				share += collector.Value(held)
			}
			assert.InDelta(t, 5*0.25, share, 1e-9)
		})
	}
}

// sharedValues are memory usage and general utilization, sorted: "hw.id pod what
// value [of the device]".
func sharedValues(f map[string]*dto.MetricFamily) (lines []string) {
	add := func(what string, metrics []*dto.Metric) {
		for _, metric := range metrics {
			line := fmt.Sprintf("%s %s %s %.12g", collector.Label(metric, "hw_id"), collector.Label(metric, "k8s_pod_name"), what, collector.Value(metric))
			if collector.Label(metric, "gpu_value_scope") == "device" {
				line += " of the device"
			}
			lines = append(lines, line)
		}
	}
	add("memory", find(f["hw_gpu_memory_usage_bytes"]))
	add("utilization", find(f["hw_gpu_utilization_ratio"], "hw_gpu_task", "general"))
	slices.Sort(lines)
	return lines
}
