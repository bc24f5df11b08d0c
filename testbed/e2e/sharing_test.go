// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

// TestSchedulerShares: four pods have a quarter of one board from HAMi, which gave some of them
// another board than the kubelet chose. Each pod has its part of the real board and what
// the board does; the board is there once, without an owner, and the other one is free.
func TestSchedulerShares(t *testing.T) {
	t.Parallel()
	const (
		first  = "GPU-e09456f7-a673-e61c-b391-58586b5ad69f"
		second = "GPU-30a52028-532e-cf6a-cc5e-3f7bae81fc2a"
		node   = "gpu-node-s"
	)
	folder, err := os.MkdirTemp("", "k") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	socket := filepath.Join(folder, "kubelet.sock")
	on := kubelet.New(kubelet.Options{})
	parts := func(board string) (ids []string) {
		for i := range 10 {
			ids = append(ids, fmt.Sprint(board, "-", i))
		}
		return ids
	}
	on.SetDevices("nvidia.com/gpu", kubelet.Devices(slices.Concat(parts(first), parts(second))...))
	api := kubeapi.New("")
	api.Put("nodes", "", node, m{"apiVersion": "v1", "kind": "Node", "metadata": m{
		"name": node, "labels": m{"node.kubernetes.io/instance-type": "gpu-a100-sxm_2gpu", "karpenter.sh/capacity-type": "spot"},
		"annotations": m{"hami.io/node-nvidia-register": fmt.Sprintf("%s,10,81920,100,NVIDIA-A100,0,true:%s,10,81920,100,NVIDIA-A100,0,true:", first, second)},
	}})
	want := []string{"- " + second + " 0"}
	for i := range 4 {
		name := fmt.Sprint("quarter-", i)
		id := fmt.Sprint([]string{first, second}[i%2], "-", i)
		require.NoError(t, on.Force(kubelet.Pod{Namespace: "ml", Name: name}, "main", "nvidia.com/gpu", kubelet.Devices(id)...))
		api.Put("pods", "ml", name, m{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": m{"namespace": "ml", "name": name, "annotations": m{"hami.io/vgpu-devices-allocated": first + ",NVIDIA,20480,0:;"}},
			"spec":     m{"nodeName": node, "containers": []m{{"name": "main", "image": "i"}}},
			"status":   m{"phase": "Running"},
		})
		want = append(want, fmt.Sprintf("%s %s::%d 0.25", name, first, i))
	}
	require.NoError(t, on.Serve(socket))
	t.Cleanup(on.Stop)

	endpoint := replay(t, filepath.Join(root, "receiver/dcgmreceiver/testdata/pages", "shared-4.5.prom"))
	c := start(t, m{
		"receivers": m{
			"dcgm": m{"endpoints": []string{endpoint}, "collection_interval": "1s"},
			"gpu_allocation": m{
				"socket": socket, "node_name": node, "auth_type": "kubeConfig", "sharing": []string{"hami"},
				"poll_interval": "1s", "timeout": "1s", "collection_interval": "1s",
			},
		},
		"processors": m{"gpu_summary": quick},
		"connectors": m{"gpu_cost": m{"flush_interval": "10s"}},
		"service":    m{"pipelines": m{"metrics": m{"receivers": []string{"dcgm", "gpu_allocation"}}}},
	}, []string{"KUBECONFIG=" + kubeconfigOf(t, serve(t, api))}, config("standalone.yaml"))

	var f map[string]*dto.MetricFamily
	eventually(t, c, "four quarters and a free board", func(families map[string]*dto.MetricFamily) bool {
		var got []string
		for _, metric := range families["gpu_allocation"].GetMetric() {
			pod := collector.Label(metric, "k8s_pod_name")
			if pod == "" {
				pod = "-"
			}
			got = append(got, fmt.Sprintf("%s %s %v", pod, collector.Label(metric, "hw_id"), collector.Value(metric)))
		}
		slices.Sort(got)
		f = families
		return slices.Equal(want, got) && len(find(families["gpu_service_utilization_ratio"], "k8s_namespace_name", "ml")) == 4 &&
			len(find(families["hw_gpu_memory_usage_bytes"])) == 2 && len(find(families["gpu_node_info"], "k8s_node_name", node)) == 1 &&
			len(find(families["hw_gpu_utilization_ratio"], "hw_gpu_task", "general", "hw_parent", "")) == 2
	})

	physical, utilization := 0., 0.
	for _, metric := range find(f["hw_gpu_utilization_ratio"], "hw_gpu_task", "general") {
		id := collector.Label(metric, "hw_id")
		pod := collector.Label(metric, "k8s_pod_name")
		if collector.Label(metric, "hw_parent") == "" {
			physical++
			assert.Empty(t, pod, "a board that pods share has no owner")
			if id == first {
				utilization = collector.Value(metric)
			}
			continue
		}
		assert.Equal(t, first, strings.Split(id, "::")[0])
		assert.Equal(t, "device", collector.Label(metric, "gpu_value_scope"), "%s of %s", id, pod)
	}
	assert.InDelta(t, 2, physical, 0, "each board once")
	assert.Len(t, find(f["hw_gpu_memory_usage_bytes"]), 2, "sums are those of the boards")
	for i := range 4 {
		service := find(f["gpu_service_utilization_ratio"], "service_name", fmt.Sprint("quarter-", i))
		if assert.Len(t, service, 1) {
			assert.InDelta(t, utilization, collector.Value(service[0]), 1e-9)
		}
	}

	// Four quarters are one GPU-hour: as much as the free board.
	// Until the API has answered, the shares are unknown; then nothing is.
	states, held := map[string]float64{}, map[string]float64{}
	unknown := -1.0
	eventually(t, c, "time of GPUs", func(families map[string]*dto.MetricFamily) bool {
		clear(states)
		clear(held)
		for _, metric := range find(families["gpu_capacity_time_seconds_total"]) {
			states[collector.Label(metric, "gpu_capacity_state")] += collector.Value(metric)
		}
		for _, metric := range find(families["gpu_usage_held_seconds_total"], "k8s_namespace_name", "ml") {
			held[collector.Label(metric, "service_name")] += collector.Value(metric)
		}
		if unknown < 0 && states["held"] > 0 {
			unknown = states["unknown"]
		}
		// A page may be read while the next values arrive: then they are not of one time.
		whole := len(held) == 4 && math.Abs(states["held"]-states["free"]) < 0.01
		for _, seconds := range held {
			whole = whole && math.Abs(states["held"]/4-seconds) < 0.01
		}
		return states["held"] > 3 && whole
	})
	assert.InDelta(t, states["held"], states["free"], 0.01)
	assert.InDelta(t, unknown, states["unknown"], 0)
	if assert.Len(t, held, 4) {
		for service, seconds := range held {
			assert.InDelta(t, states["held"]/4, seconds, 0.01, service)
		}
	}
	info := find(f["gpu_node_info"], "k8s_node_name", node)
	if assert.Len(t, info, 1) {
		assert.Equal(t, "gpu-a100-sxm_2gpu spot", collector.Label(info[0], "host_type")+" "+collector.Label(info[0], "gpu_capacity_type"))
	}
}
