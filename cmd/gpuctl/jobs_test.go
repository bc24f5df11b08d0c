// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

// Jobs stand beside pods, with their users.
func TestJobs(t *testing.T) {
	c := fleet()
	job := consoleapi.Job{Cluster: "hpc", ID: "4711", User: ref("ada"), Account: ref("train")}
	c.services = append(c.services, consoleapi.Service{SlurmCluster: ref("hpc"), Namespace: "train", Service: "ada/llm"})
	c.pods["ada/llm"] = []consoleapi.Pod{{Pod: "4711 on n1", Node: ref("n1"), State: consoleapi.PodReporting, Job: &job}}
	nested := job
	nested.Nested = true
	c.nodes[0].Devices[0].Holders = []consoleapi.Holder{{Namespace: "train", Pod: "4711 on gpu-1", Job: &job}, {Namespace: "ml", Pod: "slurmd-0", Job: &nested}}
	url := begin(t, c)
	_, out, _ := ask("services", "--endpoint", url)
	assert.Contains(t, strings.Join(strings.Fields(out), " "), "hpc train ada/llm")
	code, out, errOut := ask("ps", "--cluster", "hpc", "--endpoint", url)
	require.Equal(t, exitOK, code, errOut)
	got := lines(out)
	assert.Equal(t, "NAMESPACE SERVICE POD/JOB USER STATE NODE GPUS", strings.Join(strings.Fields(got[0])[:7], " "))
	assert.Equal(t, "train ada/llm 4711 ada reporting n1", strings.Join(strings.Fields(got[1])[:6], " "))
	assert.Contains(t, strings.Join(c.asked, "\n"), "slurm_cluster=hpc")
	_, out, _ = ask("nodes", "--devices", "--endpoint", url)
	assert.Contains(t, out, "train/job 4711 of ada,ml/slurmd-0 (job 4711 of ada)")
}
