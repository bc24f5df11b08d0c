// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package real

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
)

func (c *cluster) command(name string, arguments ...string) string {
	out, err := c.ask(name, arguments...)
	require.NoError(c.t, err, "%s %v: %s", name, arguments, out)
	return out
}

// ask is command where an error is an answer: a controller that starts has none.
func (c *cluster) ask(name string, arguments ...string) (string, error) {
	out, err := c.prepare(name, arguments...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// batch submits a job that waits to be cancelled, and returns its id when it runs.
func (c *cluster) batch(arguments ...string) string {
	job := c.command("sbatch", append(append([]string{"--parsable", "-n1", "-o", c.path("out/%j"), "-D", "/"}, arguments...),
		"--wrap", "echo run ${SLURM_RESTART_COUNT:-0}; exec sleep 300")...)
	c.runs(job, 0)
	return job
}

// alloc makes an allocation without a step.
func (c *cluster) alloc(arguments ...string) string {
	out := c.command("salloc", append([]string{"--no-shell", "-n1"}, arguments...)...)
	_, rest, _ := strings.Cut(out, "job allocation ")
	require.NotEmpty(c.t, strings.Fields(rest), out)
	return strings.Fields(rest)[0]
}

// runs waits until the script of a job has begun, for the nth time after the first. Until then
// the job is RUNNING for the controller, has its devices, and may have run Prolog, but must not be
// requeued: slurmd would refuse the script that comes then as one "already killed", and the
// controller would end the job.
func (c *cluster) runs(job string, restarts int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("job %s runs, restarted %d times", job, restarts), func() bool {
		text, err := os.ReadFile(c.path("out/" + job))
		return err == nil && string(text) == fmt.Sprintf("run %d\n", restarts)
	})
}

// have are the boards that a job has, by Slurm's controller: GRES=gpu:h100:2(IDX:0-1).
func (c *cluster) have(job string) map[string]bool {
	_, list, _ := strings.Cut(c.command("scontrol", "show", "job", "-d", job), "(IDX:")
	list, _, _ = strings.Cut(list, ")")
	all := map[string]bool{}
	for one := range strings.SplitSeq(list, ",") {
		first, last, many := strings.Cut(one, "-")
		if !many {
			last = first
		}
		from, err := strconv.Atoi(first)
		require.NoError(c.t, err, list)
		to, err := strconv.Atoi(last)
		require.NoError(c.t, err, list)
		for minor := from; minor <= to; minor++ {
			all[boardOf(minor)] = true
		}
	}
	return all
}
