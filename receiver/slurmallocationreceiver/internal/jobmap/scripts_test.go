// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package jobmap

import (
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

// run has Slurm run a script of docs/examples/slurm. It succeeds and prints nothing.
func run(t *testing.T, script, jobs string, env ...string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../../../docs/examples/slurm", script))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Env = append(env, "OTELCOL_GPU_JOBS="+jobs)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Empty(t, string(out))
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

// A Prolog or an Epilog that fails drains the node.
func TestScriptsSucceedWithoutAFolder(t *testing.T) {
	for _, script := range []string{"prolog.sh", "taskprolog.sh", "epilog.sh"} {
		run(t, script, "/proc/none", "SLURM_JOB_ID=1", "SLURM_JOB_GPUS=0", "SLURM_JOB_UID=1")
	}
}
