// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// replay runs `gpusim replay FILE` and returns where it answers.
func replay(t *testing.T, file string) (endpoint string) {
	t.Helper()
	cmd := exec.Command(binary(t, "gpusim"), "replay", "--listen", collector.Loopback+":0", file)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		assert.NoError(t, cmd.Wait())
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url := regexp.MustCompile(`http://[0-9.:]+`).FindString(line)
	require.NotEmpty(t, url, line)
	return url + "/metrics"
}

// A page of eight H100, of which one is held by a pod.
func TestReplayH100(t *testing.T) {
	t.Parallel()
	endpoint := replay(t, sample(t, "aicr-h100x8-partial-podlabels.prom"))
	c := start(t, m{"receivers": m{"dcgm": m{"endpoints": []string{endpoint}, "collection_interval": "1s"}}}, nil, config("standalone.yaml"))
	f := eventually(t, c, "eight devices", func(f map[string]*dto.MetricFamily) bool {
		return len(find(f["hw_gpu_utilization_ratio"], "hw_gpu_task", "general")) == 8
	})
	held := find(f["hw_gpu_utilization_ratio"], "hw_id", "GPU-c4529c8d-69c4-b61d-e0bc-7b2460096005")
	require.Len(t, held, 1)
	assert.Equal(t, "vllm-agg-0-vllmdecodeworker-s65j5", collector.Label(held[0], "k8s_pod_name"))
	assert.Equal(t, "dynamo-workload", collector.Label(held[0], "k8s_namespace_name"))
	assert.Equal(t, "main", collector.Label(held[0], "k8s_container_name"))
	assert.Equal(t, "NVIDIA H100 80GB HBM3", collector.Label(held[0], "hw_model"))
	assert.Zero(t, collector.Value(held[0]))
	for _, metric := range find(f["hw_gpu_utilization_ratio"], "k8s_pod_name", "") {
		assert.NotEqual(t, "GPU-c4529c8d-69c4-b61d-e0bc-7b2460096005", collector.Label(metric, "hw_id"))
	}
	power := find(f["hw_power_watts"], "hw_id", "GPU-c4529c8d-69c4-b61d-e0bc-7b2460096005")
	require.Len(t, power, 1)
	assert.InDelta(t, 113.611, collector.Value(power[0]), 1e-9)
	assert.Len(t, find(f["hw_power_watts"]), 8, "board power once a board")
}

// A board in MIG mode, with a page on which four instances repeat the board's power.
func TestReplayA100MIG(t *testing.T) {
	t.Parallel()
	const board = "GPU-473571f2-fb37-ef7e-50fe-9885b74a23cd"
	endpoint := replay(t, sample(t, "runai-a100x-mig-4active.prom"))
	c := start(t, m{"receivers": m{"dcgm": m{"endpoints": []string{endpoint}, "collection_interval": "1s"}}}, nil, config("standalone.yaml"))
	f := eventually(t, c, "four instances", func(f map[string]*dto.MetricFamily) bool {
		return len(find(f["hw_gpu_utilization_ratio"], "hw_parent", board)) == 4
	})
	// The rows report 112.252 and 106.463; without a board row the greater stands.
	power := find(f["hw_power_watts"])
	require.Len(t, power, 1, "board power once")
	assert.Equal(t, board, collector.Label(power[0], "hw_id"))
	assert.InDelta(t, 112.252, collector.Value(power[0]), 1e-9)

	var instances, parent float64
	for _, metric := range find(f["hw_gpu_memory_usage_bytes"]) {
		if collector.Label(metric, "hw_parent") == "" {
			parent += collector.Value(metric)
		} else {
			instances += collector.Value(metric)
		}
	}
	assert.Positive(t, parent)
	assert.Equal(t, instances, parent, "the sum over physical devices is the sum over instances")
	for _, metric := range find(f["hw_gpu_utilization_ratio"], "hw_parent", board) {
		assert.NotEmpty(t, collector.Label(metric, "gpu_mig_profile"))
		assert.Equal(t, board+"/"+collector.Label(metric, "gpu_mig_instance_id"), collector.Label(metric, "hw_id"))
	}
}
