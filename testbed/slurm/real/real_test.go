// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package real runs a real Slurm of one node, with the scripts of docs/examples/slurm and the collector.
package real

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// boards is how many there are. Their minors are not in the order of their addresses: the board
// with minor n is the one at place boards-1-n.
const boards = 4

func boardOf(minor int) string { return fmt.Sprintf("GPU-5a5a5a5a-0000-0000-0000-%012d", minor) }

// cluster is a Slurm of one node with our scripts, and the collector on that node.
type cluster struct {
	t      *testing.T
	folder string
	jobMap string
	env    []string
	col    *collector.Collector
}

// Slurm itself is what is true: the indices that its controller says a job has, of devices that
// gres.conf lists by their minors.
func TestRealSlurm(t *testing.T) {
	c := newCluster(t)
	c.describesItself()

	first := c.batch("-A", "physics", "-J", "train", "--gres=gpu:h100:2", "--uid=nobody")
	tasks := c.batch("-J", "sweep", "--array=3", "--gres=gpu:1")
	c.owns(first, 2, "nobody", "physics", "nobody/train")
	c.owns(tasks, 1, "root", "", "root/sweep")

	// An allocation without a step, as of a salloc that waits.
	idle := c.alloc("-A", "physics", "-J", "idle", "--gres=gpu:1")
	c.owns(idle, 1, "root", "physics", "")

	none := c.batch("-J", "cpu")
	assert.NoFileExists(t, filepath.Join(c.jobMap, none+".json"))

	// The devices of a job that ended are another's at once.
	c.command("scancel", first)
	next := c.batch("-J", `odd "name" \ ümlaut`, "--comment=service.name=chat", "-A", "chemistry", "--gres=gpu:2", "--uid=nobody")
	c.owns(next, 2, "nobody", "chemistry", "chat")
	c.ownsNothing(first)

	// It starts again when its credential has ended (AuthInfo), not before: slurmd would not run Prolog.
	c.command("scontrol", "requeue", tasks)
	c.runs(tasks, 1)
	c.owns(tasks, 1, "root", "", "root/sweep")
	c.eventually("the job runs again, and its restart is known", func() bool {
		families, err := c.col.Metrics(t.Context())
		for _, m := range families["slurm_job_info"].GetMetric() {
			if collector.Label(m, "slurm_job_id") == tasks && collector.Label(m, "slurm_restart_count") == "1" {
				return err == nil && collector.Label(m, "slurm_array_task_id") == "3"
			}
		}
		return false
	})

	// A file that no Epilog removed, of a job that has no control group.
	if c.groups() {
		text, err := os.ReadFile(filepath.Join(c.jobMap, next+".json"))
		require.NoError(t, err)
		c.command("scancel", next)
		c.ownsNothing(next)
		require.NoError(t, os.WriteFile(filepath.Join(c.jobMap, next+".json"), text, 0o644))
		c.eventually("a job without Epilog is over", func() bool {
			log, err := os.ReadFile(c.col.LogPath)
			return err == nil && strings.Contains(string(log), "a job has a file and no control group")
		})
		c.ownsNothing(next)
	}
	assert.NotContains(t, c.command("sinfo", "-h", "-o", "%T"), "drain", "no script failed")
}

func newCluster(t *testing.T) *cluster {
	slurm, err := filepath.Abs("../../../bin/slurm")
	require.NoError(t, err)
	switch {
	case os.Getuid() != 0:
		t.Skip("a real Slurm: its daemons need root")
	case !exists(filepath.Join(slurm, "usr/sbin/slurmd")):
		t.Skip("a real Slurm: scripts/slurm-binaries did not find it")
	}
	folder := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(folder), 0o755)) // jobs run as another user
	host, err := os.Hostname()
	require.NoError(t, err)
	host, _, _ = strings.Cut(host, ".")
	ports, err := collector.Free(2)
	require.NoError(t, err)
	c := &cluster{t: t, folder: folder, jobMap: filepath.Join(folder, "jobs")}
	libraries := filepath.Join(slurm, "usr/lib/x86_64-linux-gnu")
	if found, _ := filepath.Glob(filepath.Join(slurm, "usr/lib/*/slurm-wlm")); len(found) > 0 {
		libraries = filepath.Dir(found[0])
	}
	plugins := filepath.Join(libraries, "slurm-wlm")
	c.env = append(os.Environ(), "LD_LIBRARY_PATH="+libraries+":"+plugins, "SLURM_CONF="+c.path("etc/slurm.conf"),
		"PATH="+filepath.Join(slurm, "usr/bin")+":"+filepath.Join(slurm, "usr/sbin")+":"+os.Getenv("PATH"))

	c.write("jobs/names/.keep", "")
	c.write("out/.keep", "")
	require.NoError(t, os.Chmod(c.path("out"), 0o777)) // jobs of others write there
	for minor := range boards {
		c.write(fmt.Sprintf("root/proc/driver/nvidia/gpus/0000:%02x:00.0/information", 16+boards-1-minor),
			fmt.Sprintf("GPU UUID: \t %s\nDevice Minor: \t %d\n", boardOf(minor), minor))
		if err := syscall.Mknod(c.path("nvidia"+strconv.Itoa(minor)), syscall.S_IFCHR|0o666, 195<<8|minor); err != nil {
			t.Skip("a real Slurm: no device files can be made: " + err.Error())
		}
	}
	require.NoError(t, os.Symlink("/sys", c.path("root/sys")))
	for _, name := range []string{"prolog", "epilog", "taskprolog"} {
		text, err := os.ReadFile("../../../docs/examples/slurm/" + name + ".sh")
		require.NoError(t, err)
		c.write("scripts/"+name+".sh", string(text))
		c.write("scripts/"+name, "#!/bin/sh\nOTELCOL_GPU_JOBS="+c.jobMap+" exec /bin/sh "+c.path("scripts/"+name+".sh")+"\n")
		require.NoError(t, os.Chmod(c.path("scripts/"+name), 0o755))
	}
	tracking, flags := "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none", "Alloc"
	if c.groups() {
		tracking, flags = "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup", "Alloc,Contain"
	}
	require.NoError(t, os.MkdirAll(c.path("state"), 0o755))
	c.write("etc/slurm.conf", fmt.Sprintf(`ClusterName=hpc
SlurmctldHost=%[1]s(127.0.0.1)
AuthType=auth/none
AuthInfo=cred_expire=15
MessageTimeout=100
CredType=cred/none
SlurmUser=root
SlurmdUser=root
SlurmctldPort=%[2]d
SlurmdPort=%[3]d
StateSaveLocation=%[4]s/state
SlurmdSpoolDir=%[4]s/spool
SlurmctldPidFile=%[4]s/ctld.pid
SlurmdPidFile=%[4]s/slurmd.pid
PluginDir=%[5]s
%[6]s
PrologFlags=%[7]s
Prolog=%[4]s/scripts/prolog
Epilog=%[4]s/scripts/epilog
TaskProlog=%[4]s/scripts/taskprolog
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
GresTypes=gpu
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName=%[1]s NodeAddr=127.0.0.1 CPUs=16 RealMemory=100 Gres=gpu:h100:%[8]d
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`, host, ports[0], ports[1], folder, plugins, tracking, flags, boards))
	c.write("etc/gres.conf", fmt.Sprintf("Name=gpu Type=h100 File=%s/nvidia[0-%d]\n", folder, boards-1))
	c.write("etc/cgroup.conf", "CgroupMountpoint=/sys/fs/cgroup\nConstrainDevices=yes\n")

	before, _ := filepath.Glob("/sys/fs/cgroup/*/slurm_*")
	t.Cleanup(func() { // what slurmd makes, and leaves
		after, _ := filepath.Glob("/sys/fs/cgroup/*/slurm_*")
		for _, group := range after {
			if !slices.Contains(before, group) {
				removeGroup(group)
			}
		}
	})
	c.daemon("slurmctld", "-D", "-i")
	c.daemon("slurmd", "-D", "-d", filepath.Join(slurm, "usr/sbin/slurmstepd"))
	c.eventually("the node is idle", func() bool {
		state, err := c.ask("sinfo", "-h", "-o", "%T")
		return err == nil && strings.HasPrefix(state, "idle")
	})
	t.Cleanup(func() { // before the daemons end: a job would outlive them
		c.command("scancel", "--user=root", "--full")
		c.command("scancel", "--user=nobody", "--full")
		c.eventually("no jobs are left", func() bool {
			jobs, err := c.ask("squeue", "-h")
			return err == nil && jobs == ""
		})
	})
	c.collect()
	return c
}

// collect starts the collector.
func (c *cluster) collect() {
	var page strings.Builder
	page.WriteString("# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n")
	for minor := range boards {
		place := boards - 1 - minor
		fmt.Fprintf(&page, "DCGM_FI_DEV_GPU_UTIL{gpu=\"%d\",UUID=%q,device=\"nvidia%d\",modelName=\"H100\",Hostname=\"gpu-7\"} 50\n", place, boardOf(minor), place)
	}
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, page.String()) }))
	c.t.Cleanup(exporter.Close)
	ports, err := collector.FreePorts()
	require.NoError(c.t, err)
	moved, err := json.Marshal(ports.Overlay())
	require.NoError(c.t, err)
	verify := "none"
	if c.groups() {
		verify = "cgroup"
	}
	faster := fmt.Sprintf("yaml:{receivers: {dcgm: {collection_interval: 1s}, slurm_allocation: {root_path: %s, stale_after: 5s, collection_interval: 1s, poll_interval: 1s}}}", c.path("root"))
	binary, err := filepath.Abs("../../../bin/otelcol-gpu")
	require.NoError(c.t, err)
	require.FileExists(c.t, binary, "run make build")
	c.col, err = collector.Start(collector.Options{
		Binary: binary, Configs: []string{"../../../config/standalone.yaml", "../../../config/slurm-node.yaml", "yaml:" + string(moved), faster},
		Env: []string{
			"DCGM_EXPORTER_ENDPOINT=" + exporter.URL, "NODE_NAME=gpu-7", "SLURM_JOB_MAP=" + c.jobMap, "SLURM_INDEX_ORDER=minor",
			"SLURM_ALL_DEVICES=true", "SLURM_VERIFY=" + verify,
		},
		LogPath: c.path("collector.log"), Ports: ports,
	})
	require.NoError(c.t, err)
	c.t.Cleanup(func() {
		assert.NoError(c.t, c.col.Stop())
		if c.t.Failed() {
			log, _ := os.ReadFile(c.col.LogPath)
			c.t.Log(string(log))
			files, _ := filepath.Glob(c.jobMap + "/names/*")
			more, _ := filepath.Glob(c.jobMap + "/*.json")
			for _, file := range append(files, more...) {
				text, _ := os.ReadFile(file)
				c.t.Logf("%s: %q", file, text)
			}
		}
	})
	require.NoError(c.t, c.col.WaitReady(c.t.Context()))
}

func (c *cluster) path(name string) string { return filepath.Join(c.folder, name) }

func (c *cluster) write(name, text string) {
	require.NoError(c.t, os.MkdirAll(filepath.Dir(c.path(name)), 0o755))
	require.NoError(c.t, os.WriteFile(c.path(name), []byte(text), 0o644))
}

// groups reports whether Slurm can constrain devices here: with cgroup v2 it needs systemd.
func (c *cluster) groups() bool { return exists("/sys/fs/cgroup/devices/devices.list") }

// removeGroup removes a control group and those in it.
func removeGroup(path string) {
	inner, _ := os.ReadDir(path)
	for _, e := range inner {
		if e.IsDir() {
			removeGroup(filepath.Join(path, e.Name()))
		}
	}
	_ = os.Remove(path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (c *cluster) prepare(name string, arguments ...string) *exec.Cmd {
	path, err := exec.LookPath(filepath.Join("../../../bin/slurm/usr/bin", name))
	if err != nil {
		path, err = exec.LookPath(filepath.Join("../../../bin/slurm/usr/sbin", name))
	}
	require.NoError(c.t, err)
	path, err = filepath.Abs(path)
	require.NoError(c.t, err)
	// Not the test's context: it ends before what the test cleans up.
	cmd := exec.CommandContext(context.WithoutCancel(c.t.Context()), path, arguments...)
	cmd.Env, cmd.Dir = c.env, c.folder
	cmd.Args[0] = name // Slurm's daemons look at it
	return cmd
}

func (c *cluster) daemon(name string, arguments ...string) {
	cmd := c.prepare(name, arguments...)
	log, err := os.Create(c.path(name + ".log"))
	require.NoError(c.t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(c.t, cmd.Start())
	c.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && c.t.Failed() {
			c.t.Log(string(text))
		}
	})
}

// boardsWith are the boards that have a job on their telemetry, with all of these labels.
func boardsWith(families map[string]*dto.MetricFamily, labels map[string]string) map[string]bool {
	all := map[string]bool{}
	for _, m := range families["hw_gpu_utilization_ratio"].GetMetric() {
		matches := true
		for name, value := range labels {
			matches = matches && collector.Label(m, name) == value
		}
		if matches {
			all[collector.Label(m, "hw_id")] = true
		}
	}
	return all
}

func (c *cluster) owns(job string, devices int, user, account, service string) {
	c.t.Helper()
	want := c.have(job)
	require.Len(c.t, want, devices)
	labels := map[string]string{"slurm_cluster_name": "hpc", "slurm_job_id": job, "slurm_job_user": user, "slurm_job_account": account, "slurm_partition": "batch", "service_name": service}
	c.eventually(fmt.Sprintf("job %s has its boards %v, and no others, as %v", job, want, labels), func() bool {
		families, err := c.col.Metrics(c.t.Context())
		return err == nil && maps.Equal(want, boardsWith(families, labels)) && maps.Equal(want, boardsWith(families, map[string]string{"slurm_job_id": job}))
	})
}

func (c *cluster) ownsNothing(job string) {
	c.t.Helper()
	c.eventually("job "+job+" has no board, and all boards are there", func() bool {
		families, err := c.col.Metrics(c.t.Context())
		return err == nil && len(boardsWith(families, nil)) == boards && len(boardsWith(families, map[string]string{"slurm_job_id": job})) == 0
	})
}

// patience is how long the slowest machine may take for anything here.
const patience = 3 * time.Minute

func (c *cluster) eventually(what string, ok func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			require.Fail(c.t, fmt.Sprintf("not within %v: %s", patience, what))
		}
		time.Sleep(100 * time.Millisecond)
	}
}
