// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package real

import (
	"os"
	"strings"

	"github.com/stretchr/testify/assert"
)

// describesItself checks that the processes of a job, and those of a step in it, have the
// attributes that TaskProlog prints, behind which is what the user has set.
func (c *cluster) describesItself() {
	env := c.env
	c.env = append(append([]string{}, env...), "OTEL_RESOURCE_ATTRIBUTES=service.name=pretrain,slurm.job.id=77")
	print := "printenv OTEL_RESOURCE_ATTRIBUTES"
	job := c.command("sbatch", "--parsable", "-n1", "-o", c.path("out/attributes"), "-D", "/", "-J", "a,b é", "--gres=gpu:1", "--wrap", print+"; srun "+print)
	c.env = env
	want := "slurm.job.id=" + job + ",slurm.cluster.name=hpc,slurm.job.name=%61%2c%62%20%c3%a9,service.name=pretrain"
	var lines []string
	c.eventually("the job describes itself", func() bool {
		text, err := os.ReadFile(c.path("out/attributes"))
		lines = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		return err == nil && strings.HasSuffix(string(text), "\n") && len(lines) >= 2
	})
	assert.Equal(c.t, []string{want, want}, lines)
}
