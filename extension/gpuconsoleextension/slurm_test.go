// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/queries"
)

func job(account, service, id, user string) tags {
	return tags{queries.SlurmCluster: "hpc", queries.Account: account, queries.Service: service, queries.SlurmJob: id, queries.SlurmUser: user, queries.SlurmPartition: "gpu"}
}

// slurm has one service of two jobs, of which one is on two nodes, and a pod in which Slurm
// runs another job.
func slurm(t *testing.T) *world {
	w := newWorld(t)
	for i, one := range []struct{ node, id, job string }{{"n1", "GPU-1", "4711"}, {"n2", "GPU-2", "4711"}, {"n2", "GPU-3", "4712"}} {
		of := job("train", "ada/llm", one.job, "ada")
		w.gpu(gpu{tags: device(one.node, one.id, i, of), values: map[string]float64{"utilization": 0.5, "used": 10, "total": 80, "power": 300}})
		w.write(queries.Allocation, of.with(tags{queries.Cluster: "c1", queries.Node: one.node, queries.Device: one.id, queries.Source: "slurm_job_map", queries.Sharing: "none"}), 2*time.Minute, 0, constant(1))
		w.write(queries.PodState, tags{queries.Cluster: "c1", queries.SlurmCluster: "hpc", queries.Account: "train", queries.Service: "ada/llm", queries.SlurmJob: one.job, queries.Node: one.node, queries.StateOfPod: "reporting"}, 2*time.Minute, 0, constant(1))
	}
	for metric, v := range map[string]float64{queries.ServiceUtilization: 0.5, queries.ServiceDataAge: 5, queries.ServicePartial: 0, queries.ServiceMissingRatio: 0} {
		w.write(metric, tags{queries.Cluster: "c1", queries.SlurmCluster: "hpc", queries.Account: "train", queries.Service: "ada/llm"}, 2*time.Minute, 0, constant(v))
	}
	for state, n := range map[string]float64{"reporting": 3, "degraded": 0, "missing": 0, "warming": 0, "not_running": 0} {
		w.write(queries.ServicePods, tags{queries.Cluster: "c1", queries.SlurmCluster: "hpc", queries.Account: "train", queries.Service: "ada/llm", queries.StateOfPod: state}, 2*time.Minute, 0, constant(n))
	}
	pod := held("slurm", "slurmd", "slurmd-0")
	inner := tags{queries.SlurmCluster: "hpc", queries.SlurmJob: "9", queries.SlurmUser: "eve"}
	w.gpu(gpu{tags: device("n3", "GPU-9", 0, pod.with(inner)), values: map[string]float64{"utilization": 0.9, "used": 10, "total": 80}})
	at := tags{queries.Cluster: "c1", queries.Node: "n3", queries.Device: "GPU-9", queries.Sharing: "none"}
	w.write(queries.Allocation, at.with(tags{queries.Namespace: "slurm", queries.Pod: "slurmd-0", queries.Container: "main", queries.Source: "pod_resources"}), 2*time.Minute, 0, constant(1))
	w.write(queries.Allocation, at.with(job("train", "eve/x", "9", "eve")).with(tags{queries.Nested: "true", queries.Source: "slurm_job_map"}), 2*time.Minute, 0, constant(1))
	return w
}

func TestServiceOnSlurm(t *testing.T) {
	w := slurm(t)
	c := serveAPI(t, w.store, w.now, nil)
	services := ok[consoleapi.ServicesAnswer](c, "services", values("q", "hpc", "trend", "true"))
	require.Len(t, services.Services, 1)
	s := services.Services[0]
	assert.Equal(t, []string{"hpc", "train", "ada/llm"}, []string{*s.SlurmCluster, s.Namespace, s.Service})
	assert.Equal(t, 3, *s.Pods.InMean)
	assert.NotNil(t, s.Trend[len(s.Trend)-1])

	key := values("cluster", "c1", "slurm_cluster", "hpc", "namespace", "train", "service", "ada/llm")
	assert.Equal(t, s.Values.Utilization, ok[consoleapi.ServiceAnswer](c, "service", key).Service.Values.Utilization)
	pods := ok[consoleapi.PodsAnswer](c, "pods", key)
	require.Len(t, pods.Pods, 3)
	for i, want := range []struct{ pod, id, node, device string }{{"4711 on n1", "4711", "n1", "GPU-1"}, {"4711 on n2", "4711", "n2", "GPU-2"}, {"4712 on n2", "4712", "n2", "GPU-3"}} {
		p := pods.Pods[i]
		assert.Equal(t, want.pod, p.Pod)
		assert.Equal(t, want.node, *p.Node)
		assert.Equal(t, consoleapi.PodReporting, p.State)
		require.NotNil(t, p.Job)
		assert.Equal(t, []string{want.id, "hpc", "ada", "train", "gpu"}, []string{p.Job.ID, p.Job.Cluster, *p.Job.User, *p.Job.Account, *p.Job.Partition})
		require.Len(t, p.Devices, 1)
		assert.Equal(t, want.device, p.Devices[0].ID)
	}
	for _, by := range []string{"service", "pod"} {
		key.Set("by", by)
		key.Set("window", "5m")
		chart := ok[consoleapi.RangeAnswer](c, "range", key).Charts.Utilization
		assert.Len(t, chart.Series, map[string]int{"service": 1, "pod": 3}[by], by)
		assert.NotNil(t, chart.Series[0].Values[len(chart.Series[0].Values)-1], by)
	}
	// The same names on Kubernetes are another service.
	assert.Equal(t, 404, c.get("service", values("cluster", "c1", "namespace", "train", "service", "ada/llm")).status)
}

func TestDevicesOfJobs(t *testing.T) {
	w := slurm(t)
	nodes := ok[consoleapi.NodesAnswer](serveAPI(t, w.store, w.now, nil), "nodes", nil)
	owners := map[string][]consoleapi.Holder{}
	for _, n := range nodes.Nodes {
		for _, d := range n.Devices {
			owners[d.ID] = d.Holders
			assert.Equal(t, consoleapi.DeviceHeld, d.State, d.ID)
		}
	}
	require.Len(t, owners["GPU-1"], 1)
	one := owners["GPU-1"][0]
	assert.Equal(t, []string{"train", "4711 on n1", "4711", "slurm_job_map", "ada/llm"}, []string{one.Namespace, one.Pod, one.Job.ID, one.Source, *one.Service})
	assert.False(t, one.Job.Nested)

	// Slurm in a pod: one owner with both.
	require.Len(t, owners["GPU-9"], 1)
	both := owners["GPU-9"][0]
	assert.Equal(t, []string{"slurm", "slurmd-0", "9", "eve"}, []string{both.Namespace, both.Pod, both.Job.ID, *both.Job.User})
	assert.True(t, both.Job.Nested)
}
