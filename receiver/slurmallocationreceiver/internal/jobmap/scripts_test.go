// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package jobmap

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run has Slurm run a script of docs/examples/slurm. It succeeds, and prints nothing unless it is
// TaskProlog: that prints what Slurm sets for the task.
func run(t *testing.T, script, jobs string, env ...string) {
	t.Helper()
	out := output(t, script, jobs, env...)
	if script == "taskprolog.sh" {
		assert.Regexp(t, `^export OTEL_RESOURCE_ATTRIBUTES=[!-~]+\n$`, out)
		return
	}
	assert.Empty(t, out)
}

func output(t *testing.T, script, jobs string, env ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../../../docs/examples/slurm", script))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Env = append(env, "OTELCOL_GPU_JOBS="+jobs)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

func TestScripts(t *testing.T) {
	uid := int64(os.Getuid())
	common := []string{"SLURM_JOB_ID=4711", "SLURM_JOB_UID=" + strconv.FormatInt(uid, 10), "SLURM_JOB_USER=ada", "SLURM_JOB_ACCOUNT=physics", "SLURM_JOB_PARTITION=gpu", "SLURM_CLUSTER_NAME=hpc"}
	job := func(devices ...Device) Job {
		return Job{ID: "4711", UID: uid, User: "ada", Account: "physics", Partition: "gpu", Cluster: "hpc", Restarts: "0", Devices: devices}
	}
	odd := job(Device{Index: 0})
	odd.User, odd.Account, odd.Comment, odd.QOS = `a"d\a`, "Künste", "service.name=x y", "$(reboot)`reboot`"
	requeued := job(Device{Index: 0})
	requeued.Restarts, requeued.SLUID = "3", "sEKN1"
	for name, c := range map[string]struct {
		env  []string
		want []Job
	}{
		"22.05":             {[]string{"SLURM_JOB_GPUS=0,1", "CUDA_VISIBLE_DEVICES=0,1", "GPU_DEVICE_ORDINAL=0,1"}, []Job{job(Device{Index: 0}, Device{Index: 1})}},
		"25.11":             {[]string{"SLURM_JOB_GPUS=3", "CUDA_VISIBLE_DEVICES=" + gpu}, []Job{job(Device{Index: 3, UUID: gpu})}},
		"26.05, requeued":   {[]string{"SLURM_JOB_GPUS=0", "SLURM_JOB_SLUID=sEKN1", "SLURM_JOB_RESTART_COUNT=3"}, []Job{requeued}},
		"MIG":               {[]string{"SLURM_JOB_GPUS=5", "CUDA_VISIBLE_DEVICES=" + mig}, []Job{job(Device{Index: 5, UUID: mig})}},
		"shards":            {[]string{"SLURM_JOB_GPUS=2", "CUDA_VISIBLE_DEVICES=2", "SLURM_SHARDS_ON_NODE=3"}, []Job{job(Device{Index: 2})}},
		"AMD":               {[]string{"SLURM_JOB_GPUS=0", "ROCR_VISIBLE_DEVICES=GPU-1a2b3c4d5e6f7890"}, []Job{job(Device{Index: 0, UUID: "GPU-1a2b3c4d5e6f7890"})}},
		"without GPUs":      {nil, nil},
		"no job":            {[]string{"SLURM_JOB_ID=", "SLURM_JOB_GPUS=0"}, nil},
		"another kind":      {[]string{"SLURM_JOB_ID=../x", "SLURM_JOB_GPUS=0"}, nil},
		"odd names":         {[]string{"SLURM_JOB_GPUS=0", `SLURM_JOB_USER=a"d\a`, "SLURM_JOB_ACCOUNT=Künste", "SLURM_JOB_COMMENT=service.name=x\ny", "SLURM_JOB_QOS=$(reboot)`reboot`"}, []Job{odd}},
		"a very long text":  {[]string{"SLURM_JOB_GPUS=0", "SLURM_JOB_COMMENT=" + strings.Repeat("x", 5000)}, []Job{job(Device{Index: 0})}},
		"a restart is none": {[]string{"SLURM_JOB_GPUS=0", "SLURM_RESTART_COUNT=x"}, []Job{job(Device{Index: 0})}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &Folder{Path: filepath.Join(t.TempDir(), "jobs"), Format: Formats["otelcol-gpu"], MaxFiles: 10, MaxFileSize: 64 << 10}
			env := append(append([]string{}, common...), c.env...)
			run(t, "prolog.sh", f.Path, env...)
			if _, err := os.Stat(f.Path); os.IsNotExist(err) {
				assert.Empty(t, c.want)
				return
			}
			r, err := f.Read(time.Now())
			require.NoError(t, err)
			assert.Empty(t, r.Findings)
			for i := range r.Jobs {
				r.Jobs[i].Start = time.Time{}
			}
			assert.ElementsMatch(t, c.want, r.Jobs)
			if len(c.want) == 0 {
				return
			}
			task := append(env, "SLURM_JOB_NAME=tr\nain", "SLURM_ARRAY_JOB_ID=4700", "SLURM_ARRAY_TASK_ID=7")
			run(t, "taskprolog.sh", f.Path, task...)
			run(t, "taskprolog.sh", f.Path, append(task, "SLURM_JOB_NAME=another")...)
			r, err = f.Read(time.Now())
			require.NoError(t, err)
			assert.Equal(t, []string{"tr ain", "4700", "7"}, []string{r.Jobs[0].Name, r.Jobs[0].ArrayJobID, r.Jobs[0].ArrayTaskID})

			run(t, "epilog.sh", f.Path, env...)
			left, err := filepath.Glob(filepath.Join(f.Path, "*", "*"))
			require.NoError(t, err)
			assert.Empty(t, left)
			r, err = f.Read(time.Now())
			require.NoError(t, err)
			assert.Empty(t, r.Jobs)
		})
	}
}

// Sites have another /bin/sh: each shell that is installed here runs the scripts alike. shellcheck
// finds nothing, where it is installed.
func TestScriptsInEveryShell(t *testing.T) {
	want := ""
	for _, shell := range []string{"sh", "dash", "bash --posix", "busybox sh", "ksh", "zsh --emulate sh"} {
		words := strings.Fields(shell)
		if _, err := exec.LookPath(words[0]); err != nil {
			continue
		}
		jobs := filepath.Join(t.TempDir(), "jobs")
		env := []string{
			"OTELCOL_GPU_JOBS=" + jobs, "SLURM_JOB_ID=4711", "SLURM_JOB_UID=" + strconv.Itoa(os.Getuid()), "SLURM_JOB_USER=a\"d", "SLURM_JOB_GPUS=0,1",
			"SLURM_JOB_NAME=a,b é", "SLURM_ARRAY_TASK_ID=7", "OTEL_RESOURCE_ATTRIBUTES=service.name=x,slurm.job.id=1,team=*",
		}
		got := ""
		for _, script := range []string{"prolog.sh", "taskprolog.sh", "epilog.sh"} {
			cmd := exec.CommandContext(t.Context(), words[0], append(words[1:], "../../../../docs/examples/slurm/"+script)...)
			cmd.Env = env
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s %s: %s", shell, script, out)
			got += string(out)
			if text, err := os.ReadFile(filepath.Join(jobs, "4711.json")); err == nil {
				got += string(text)
			}
		}
		if want == "" {
			want = got
		}
		assert.Contains(t, got, `"gpus":"0,1"`)
		assert.Equal(t, want, got, shell)
	}
	if _, err := exec.LookPath("shellcheck"); err == nil {
		scripts, err := filepath.Glob("../../../../docs/examples/slurm/*.sh")
		require.NoError(t, err)
		out, err := exec.CommandContext(t.Context(), "shellcheck", scripts...).CombinedOutput()
		assert.NoError(t, err, string(out))
	}
}

// A Prolog or an Epilog that fails drains the node.
func TestScriptsSucceedWithoutAFolder(t *testing.T) {
	for _, script := range []string{"prolog.sh", "taskprolog.sh", "epilog.sh"} {
		run(t, script, "/proc/none", "SLURM_JOB_ID=1", "SLURM_JOB_GPUS=0", "SLURM_JOB_UID=1")
	}
}

// TaskProlog has every process of a job send which job it is of, and keeps what the user has set.
// Slurm reads the line as it stands: no character of a name may end it.
func TestTaskPrologDescribesTheJob(t *testing.T) {
	t.Parallel()
	task := []string{"SLURM_JOB_ID=4711", "SLURM_CLUSTER_NAME=hpc", "SLURM_JOB_NAME=train"}
	for name, c := range map[string]struct {
		env  []string
		want string // after slurm.job.id=4711,slurm.cluster.name=hpc
	}{
		"plain":              {nil, ",slurm.job.name=train"},
		"of an array":        {[]string{"SLURM_ARRAY_JOB_ID=4700", "SLURM_ARRAY_TASK_ID=7"}, ",slurm.job.name=train,slurm.array.job_id=4700,slurm.array.task_id=7"},
		"no name":            {[]string{"SLURM_JOB_NAME="}, ""},
		"a name too long":    {[]string{"SLURM_JOB_NAME=" + strings.Repeat("x", 1025)}, ""},
		"the user's":         {[]string{"OTEL_RESOURCE_ATTRIBUTES=service.name=llama%2C3,training.run.id=a b"}, ",slurm.job.name=train,service.name=llama%2C3,training.run.id=a b"},
		"of another job":     {[]string{"OTEL_RESOURCE_ATTRIBUTES=slurm.job.id=1,slurm.job.name=other,x=*, slurm.array.task_id=2,,"}, ",slurm.job.name=train,x=*"},
		"in a step of a job": {[]string{"OTEL_RESOURCE_ATTRIBUTES=slurm.job.id=4711,slurm.cluster.name=hpc,slurm.job.name=train,a=b"}, ",slurm.job.name=train,a=b"},
		"lines":              {[]string{"OTEL_RESOURCE_ATTRIBUTES=a=b\nprint x\nexport LD_PRELOAD=y"}, ",slurm.job.name=train,a=b print x export LD_PRELOAD=y"},
		"names end nothing":  {[]string{"SLURM_JOB_NAME=a,b=c\nexport X=1"}, ",slurm.job.name=" + encoded("a,b=c\nexport X=1")},
		"no shell":           {[]string{"SLURM_JOB_NAME=$(reboot)`reboot`%\\ é"}, ",slurm.job.name=" + encoded("$(reboot)`reboot`%\\ é")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := output(t, "taskprolog.sh", t.TempDir(), append(append([]string{}, task...), c.env...)...)
			assert.Equal(t, "export OTEL_RESOURCE_ATTRIBUTES=slurm.job.id=4711,slurm.cluster.name=hpc"+c.want+"\n", got)
		})
	}
	assert.Empty(t, output(t, "taskprolog.sh", t.TempDir(), "SLURM_JOB_ID=x y"))
}

// encoded is the text with each byte percent-encoded.
func encoded(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "%%%02x", c)
	}
	return b.String()
}
