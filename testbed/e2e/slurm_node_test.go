// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// One machine with a job map, by config/slurm-node.yaml: the job is on the telemetry of its GPU as
// long as its file is there.
func TestSlurmNodeWithAJobMap(t *testing.T) {
	t.Parallel()
	page := strings.ReplaceAll(slurmPage, `,hpc_job="4711"`, "")
	exporter := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, page) }))
	jobs := filepath.Join(t.TempDir(), "jobs")
	require.NoError(t, os.Mkdir(jobs, 0o755))
	c := start(t, m{"receivers": m{"dcgm": m{"collection_interval": "1s"}}, "processors": m{"gpu_summary": quick}}, []string{
		"DCGM_EXPORTER_ENDPOINT=" + exporter + "/metrics", "SLURM_JOB_MAP=" + jobs, "NODE_NAME=gpu-7", "CLUSTER_NAME=hpc", "SLURM_SERVICE=user_partition",
	}, config("standalone.yaml"), config("slurm-node.yaml"))
	of := func(f map[string]*dto.MetricFamily, job string) int {
		return len(find(f["hw_gpu_utilization_ratio"], "hw_id", "GPU-11111111-1111-1111-1111-111111111111", "slurm_job_id", job))
	}
	eventually(t, c, "the device without a job", func(f map[string]*dto.MetricFamily) bool { return of(f, "") > 0 })

	file := filepath.Join(jobs, "4711.json")
	require.NoError(t, os.WriteFile(file+".new", []byte(`{"v":1,"job":4711,"uid":1001,"user":"ada","account":"physics","partition":"gpu","cluster":"hpc","gpus":"0","visible":"GPU-11111111-1111-1111-1111-111111111111"}`), 0o644))
	require.NoError(t, os.Rename(file+".new", file))
	families := eventually(t, c, "its job", func(f map[string]*dto.MetricFamily) bool {
		return of(f, "4711") > 0 && of(f, "") == 0 && len(find(f["slurm_job_info"], "slurm_job_id", "4711")) > 0
	})
	assert.NotEmpty(t, find(families["hw_gpu_utilization_ratio"], "slurm_job_id", "4711", "slurm_job_user", "ada", "slurm_cluster_name", "hpc", "service_namespace", "physics", "service_name", "ada/gpu"))

	require.NoError(t, os.Remove(file))
	eventually(t, c, "no job any more", func(f map[string]*dto.MetricFamily) bool { return of(f, "4711") == 0 && of(f, "") > 0 })
}
