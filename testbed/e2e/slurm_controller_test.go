// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What slurmctld and rivosinc's exporter serve, as far as the tests need it.
var slurmPages = map[string]string{
	"/metrics/nodes": `# TYPE slurm_node_gpus gauge
slurm_node_gpus{node="gpu-7"} 8
# TYPE slurm_node_gpus_alloc gauge
slurm_node_gpus_alloc{node="gpu-7"} 3
# TYPE slurm_nodes_powering_up gauge
slurm_nodes_powering_up 4
# TYPE slurm_nodes_drain gauge
slurm_nodes_drain 1
# EOF
`,
	"/metrics/partitions": `# TYPE slurm_partition_jobs_pending gauge
slurm_partition_jobs_pending{partition="gpu"} 12
# TYPE slurm_partition_jobs_timeout gauge
slurm_partition_jobs_timeout{partition="gpu"} 2
# EOF
`,
	"/metrics/scheduler": `# TYPE slurm_schedule_cycle_last gauge
slurm_schedule_cycle_last 1234
# TYPE slurm_user_jobs_running gauge
slurm_user_jobs_running{username="ada"} 1
# EOF
`,
	"/metrics": `# TYPE slurm_node_count_per_state gauge
slurm_node_count_per_state{state="idle"} 5
# TYPE slurm_user_job_state_total gauge
slurm_user_job_state_total{user="ada",state="RUNNING"} 1
`,
}

// Slurm's pages beside standalone.yaml: what is kept has the cluster's name, nothing of users
// is kept, and what a controller on standby redirects to is not asked.
func TestSlurmController(t *testing.T) {
	t.Parallel()
	var standby atomic.Bool
	var redirected, tokens atomic.Int64
	page := strings.TrimPrefix(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch text, ok := slurmPages[r.URL.Path]; {
		case r.URL.Path == "/other":
			redirected.Add(1)
		case standby.Load():
			http.Redirect(w, r, "/other", http.StatusSeeOther)
		case ok:
			if r.Header.Get("Authorization") != "" {
				tokens.Add(1)
			}
			if r.URL.Path != "/metrics" {
				w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
			}
			_, _ = fmt.Fprint(w, text)
		default:
			http.NotFound(w, r)
		}
	})), "http://")
	c := start(t, m{"receivers": m{"dcgm": m{"endpoints": []string{"http://" + page + "/none"}}}},
		[]string{"SLURMCTLD_METRICS=" + page, "SLURM_EXPORTER=" + page, "SLURM_CLUSTER_NAME=hpc", "SLURM_INTERVAL=1s", "SLURM_TIMEOUT=1s"},
		config("standalone.yaml"), config("slurm-controller.yaml"))

	families := eventually(t, c, "Slurm's pages", func(f map[string]*dto.MetricFamily) bool {
		return len(find(f["slurm_node_gpus_alloc"], "slurm_cluster_name", "hpc", "node", "gpu-7")) == 1 &&
			len(find(f["slurm_partition_jobs_pending"], "partition", "gpu")) == 1 &&
			len(find(f["slurm_schedule_cycle_last"], "slurm_cluster_name", "hpc")) == 1 &&
			len(find(f["slurm_node_count_per_state"], "slurm_cluster_name", "hpc", "state", "idle")) == 1 && f["slurm_nodes_drain"] != nil
	})
	for _, left := range []string{"slurm_nodes_powering_up", "slurm_partition_jobs_timeout", "slurm_user_jobs_running", "slurm_user_job_state_total"} {
		assert.NotContains(t, families, left)
	}
	assert.Zero(t, tokens.Load(), "no token is configured")

	standby.Store(true)
	require.Eventually(t, func() bool { return len(lines(log(t, c), "Failed to scrape")) > 0 }, patience, 100*time.Millisecond)
	assert.Zero(t, redirected.Load())
}

// Without an address nothing is asked, and nothing else is different.
func TestSlurmControllerOff(t *testing.T) {
	t.Parallel()
	c := start(t, m{"receivers": m{"dcgm": m{"endpoints": []string{"http://localhost:1/metrics"}, "collection_interval": "1s"}}}, nil,
		config("standalone.yaml"), config("slurm-controller.yaml"))
	families := eventually(t, c, "a scrape", func(f map[string]*dto.MetricFamily) bool { return len(find(f["gpu_exporter_up"])) == 1 })
	for name := range families {
		assert.False(t, strings.HasPrefix(name, "slurm_"), name)
	}
	assert.Empty(t, lines(log(t, c), "Failed to scrape"))
}
