// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// ncclWindow judges ranks at once, and not after three minutes.
var ncclWindow = m{"interval": "1s", "window": "10s", "straggler": m{"windows": 1}}

// ranks lets two ranks write Inspector's files into a folder, a line for each of ten operations a
// second, until the test ends. The second one comes 6 ms late each time.
func ranks(t *testing.T, folder string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(folder, 0o755))
	var files []*os.File
	for rank := range 2 {
		f, err := os.Create(filepath.Join(folder, fmt.Sprintf("node-a-pid%d.log", 100+rank)))
		require.NoError(t, err)
		files = append(files, f)
	}
	var stop atomic.Bool
	done := make(chan struct{})
	t.Cleanup(func() { stop.Store(true); <-done })
	go func() {
		defer close(done)
		for n := 1; !stop.Load(); n++ {
			for rank, f := range files {
				took := 10_000 - 6_000*rank
				line, _ := json.Marshal(m{
					"header":    m{"id": "0x7f8c496ae9f661", "rank": rank, "n_ranks": 2, "nnodes": 1, "comm_name": "DP"},
					"metadata":  m{"inspector_output_format_version": "v4.0", "dump_timestamp_us": time.Now().UnixMicro(), "hostname": "node-a", "pid": 100 + rank},
					"coll_perf": m{"coll": "AllReduce", "coll_sn": n, "coll_msg_size_bytes": 1 << 20, "coll_exec_time_us": took, "coll_timing_source": "kernel_gpu"},
				})
				_, _ = f.Write(append(line, '\n'))
			}
			time.Sleep(100 * time.Millisecond)
		}
		for _, f := range files {
			_ = f.Close()
		}
	}()
}

// ncclIsThere checks what a collector has of the two ranks, with these labels, and that the late
// one is named.
func ncclIsThere(t *testing.T, c *collector.Collector, labels ...string) {
	t.Helper()
	families := eventually(t, c, "a window of both ranks", func(f map[string]*dto.MetricFamily) bool {
		_, ok := one(f, "nccl_rank_late_ratio", append([]string{"nccl_rank", "1", "nccl_communicator", "DP"}, labels...)...)
		_, waits := one(f, "nccl_communicator_wait_ratio", labels...)
		for _, rank := range []string{"0", "1"} {
			of := append([]string{"nccl_rank", rank, "nccl_operation", "AllReduce"}, labels...)
			duration, timed := one(f, "nccl_operation_duration_seconds", of...)
			bytes, counted := one(f, "nccl_operation_bytes_total", of...)
			// A page may be read between the two of an interval.
			ok = ok && timed && counted && float64(duration.Histogram.GetSampleCount())*(1<<20) == collector.Value(bytes)
		}
		return ok && waits
	})
	wait, ok := one(families, "nccl_communicator_wait_ratio", labels...)
	require.True(t, ok)
	assert.InEpsilon(t, 6./14, collector.Value(wait), 1e-6)
	for rank, took := range []float64{0.01, 0.004} {
		rank := append([]string{"nccl_rank", fmt.Sprint(rank), "nccl_operation", "AllReduce"}, labels...)
		duration, ok := one(families, "nccl_operation_duration_seconds", rank...)
		require.True(t, ok, "%v", families["nccl_operation_bytes_total"])
		assert.InEpsilon(t, took, duration.Histogram.GetSampleSum()/float64(duration.Histogram.GetSampleCount()), 1e-6)
		bytes, ok := one(families, "nccl_operation_bytes_total", rank...)
		require.True(t, ok, "%v", families["nccl_operation_bytes_total"])
		assert.InEpsilon(t, float64(duration.Histogram.GetSampleCount())*(1<<20), collector.Value(bytes), 1e-6)
	}
	require.Eventually(t, func() bool {
		return len(lines(log(t, c), "of its time in them")) > 0 || strings.Contains(log(t, c), "waits for rank 1 on ")
	}, patience, 200*time.Millisecond)
	assert.NotContains(t, log(t, c), "waits for rank 0")
	assert.Empty(t, lines(log(t, c), "\terror\t"))
}

// A job of Slurm on one machine: its folder says which job it is, and the job map the rest.
func TestNCCLOnOneMachine(t *testing.T) {
	t.Parallel()
	exporter := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, slurmPage) }))
	files, jobs := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(jobs, "4711.json"), []byte(`{"v":1,"job":4711,"uid":1000,"user":"ada","account":"physics","partition":"gpu","cluster":"hpc","gpus":"0"}`), 0o600))
	c := start(t, m{
		"receivers": m{
			"dcgm": m{"collection_interval": "1s"}, "slurm_allocation": m{"collection_interval": "1s", "name_wait": "1s"},
		},
		"connectors": m{"nccl/ranks": m{"interval": "1s"}, "nccl": ncclWindow},
	}, []string{"DCGM_EXPORTER_ENDPOINT=" + exporter + "/metrics", "NODE_NAME=gpu-7", "SLURM_JOB_MAP=" + jobs, "SLURM_INDEX_ORDER=pci", "NCCL_INSPECTOR_FOLDER=" + files},
		config("standalone.yaml"), config("slurm-node.yaml"), config("nccl-standalone.yaml"))
	ranks(t, filepath.Join(files, "4711"))
	ncclIsThere(t, c, "slurm_job_id", "4711")
}

// A pod: its agent knows the pod by the folder and the rest by the API; the ranks meet at the
// gateway.
func TestNCCLFromAnAgent(t *testing.T) {
	t.Parallel()
	api := kubeapi.New("gpu-node-a")
	api.AddPod("ml", "worker-0", m{"labels": m{"app.kubernetes.io/name": "llama-pretrain"}}, "10.0.0.7")
	gateway := start(t, m{"processors": m{"gpu_summary": m{"expected_pods": "seen"}}, "connectors": m{"nccl": ncclWindow}}, nil, config("gateway.yaml"), config("nccl-gateway.yaml"))
	files := t.TempDir()
	start(t, m{
		"receivers":  m{"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")}},
		"connectors": m{"nccl": m{"interval": "1s"}},
	}, append(agentEnv(t, api, fmt.Sprintf("%s:%d", collector.Loopback, gateway.Ports.OTLPGRPC)), "NCCL_INSPECTOR_FOLDER="+files), config("agent.yaml"), config("nccl-agent.yaml"))
	ranks(t, filepath.Join(files, "ml_worker-0"))
	ncclIsThere(t, gateway, "service_name", "llama-pretrain", "k8s_namespace_name", "ml")
}
