// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/miglayout"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/jobmap"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/node"
)

var begin = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)

const mig = "MIG-41f3a1a5-5d1a-5a86-b7a5-1d6b4f0b2c11"

func uuid(n int) string { return fmt.Sprintf("GPU-be839661-c0f5-7452-284b-%012d", n) }

// boards have these minors in the order of their addresses; the UUID ends with the minor.
func boards(minors ...int) node.Boards {
	b := node.Boards{Agree: true}
	for i, minor := range minors {
		b.ByPCI = append(b.ByPCI, node.Board{ID: uuid(minor), Minor: minor, PCI: fmt.Sprintf("0000:%02x:00.0", i)})
		b.Agree = b.Agree && i == minor
	}
	return b
}

func job(id string, devices ...jobmap.Device) jobmap.Job {
	return jobmap.Job{ID: id, User: "ada", Account: "physics", Partition: "gpu", Cluster: "hpc", UID: 1, Start: begin, Devices: devices}
}

func at(index int) jobmap.Device { return jobmap.Device{Index: index} }

func (s *Snapshot) lines() []string {
	out := []string{}
	for _, a := range s.allocations {
		line := fmt.Sprintf("%s %s %g", a.owner.TheJob().ID, strings.TrimPrefix(a.hwID, "GPU-be839661-c0f5-7452-284b-0000000000"), a.share)
		if !a.resolved {
			line += " unresolved"
		}
		if a.sharing != "none" {
			line += " " + a.sharing
		}
		out = append(out, strings.TrimSpace(line))
	}
	return out
}

func TestWhichDeviceAJobHas(t *testing.T) {
	withMIG := boards(0, 1)
	withMIG.Parts, withMIG.ByPCI[1].Parts = true, true
	unknown := boards(0, 1)
	unknown.ByPCI[1].ID = ""
	layout := miglayout.New(begin, time.Hour, []miglayout.Instance{{UUID: mig, GPU: uuid(1), GI: 7, Profile: "1g.10gb"}})
	for name, c := range map[string]struct {
		boards  node.Boards
		order   string
		mig     *miglayout.Layout
		devices []jobmap.Device
		want    []string
		tally   Tally
	}{
		"the orders agree":               {boards: boards(0, 1), devices: []jobmap.Device{at(1)}, want: []string{"00 0", "7 01 1"}},
		"they differ":                    {boards: boards(1, 0), devices: []jobmap.Device{at(1)}, want: []string{"7 n1/slurm/1 1 unresolved"}, tally: Tally{Ambiguous: true}},
		"they differ, pci":               {boards: boards(1, 0), order: "pci", devices: []jobmap.Device{at(1)}, want: []string{"01 0", "7 00 1"}},
		"they differ, minor":             {boards: boards(1, 0), order: "minor", devices: []jobmap.Device{at(1)}, want: []string{"00 0", "7 01 1"}},
		"they agree, minor is of no use": {boards: boards(0, 1), order: "minor", devices: []jobmap.Device{at(1)}, want: []string{"00 0", "7 01 1"}},
		"a UUID":                         {boards: boards(1, 0), devices: []jobmap.Device{{Index: 0, UUID: uuid(0)}}, want: []string{"01 0", "7 00 1"}},
		"DCGM's index":                   {boards: boards(1, 0), devices: []jobmap.Device{{Index: 0, ByPCI: true}}, want: []string{"00 0", "7 01 1"}},
		"DCGM's GPU instance":            {boards: withMIG, devices: []jobmap.Device{{Index: 1, ByPCI: true, Instance: "9"}}, want: []string{"00 0", "7 01/9 1"}},
		"beyond the boards":              {boards: boards(0, 1), devices: []jobmap.Device{at(0), at(2)}, want: []string{"7 00 1"}, tally: Tally{BeyondBoards: []string{"7"}}},
		"one twice":                      {boards: boards(0, 1), devices: []jobmap.Device{at(0), at(0)}, want: []string{"01 0", "7 00 1"}, tally: Tally{DeviceTwice: []string{"7"}}},
		"a board without a UUID":         {boards: unknown, devices: []jobmap.Device{at(1)}, want: []string{"7 n1/slurm/1 1 unresolved"}},
		"no boards":                      {devices: []jobmap.Device{at(1)}, want: []string{"7 n1/slurm/1 1 unresolved"}},
		"MIG on the node":                {boards: withMIG, devices: []jobmap.Device{at(0)}, want: []string{"7 n1/slurm/0 1 unresolved"}, tally: Tally{Parts: true}},
		"MIG, the layout is known":       {boards: withMIG, mig: layout, devices: []jobmap.Device{{Index: 2, UUID: mig}}, want: []string{"00 0", "7 01/7 1"}},
		"MIG, it is not":                 {boards: withMIG, devices: []jobmap.Device{{Index: 2, UUID: mig}}, want: []string{"7 n1/" + mig + " 1 unresolved"}},
		"MIG before driver 470":          {boards: withMIG, devices: []jobmap.Device{{Index: 2, UUID: "MIG-" + uuid(1) + "/3/0"}}, want: []string{"00 0", "7 01/3 1"}},
		"ROCm":                           {devices: []jobmap.Device{{Index: 0, UUID: "GPU-1a2b3c4d5e6f7890"}}, want: []string{"7 GPU-1a2b3c4d5e6f7890 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := Builder{Node: "n1", IndexOrder: c.order, AllDevices: true}
			s, tl := b.Build(&jobmap.Reading{Jobs: []jobmap.Job{job("7", c.devices...)}}, &View{Boards: c.boards, MIG: c.mig}, begin)
			assert.Equal(t, c.want, s.lines())
			assert.Equal(t, c.tally, tl)
		})
	}
}

func TestSharedAndFree(t *testing.T) {
	b := Builder{Node: "n1", AllDevices: true}
	r := &jobmap.Reading{Jobs: []jobmap.Job{job("7", at(0)), job("8", at(0), at(1))}}
	v := &View{Boards: boards(0, 1, 2)}
	s, _ := b.Build(r, v, begin)
	assert.Equal(t, []string{"02 0", "7 00 0.5 slurm_shared", "8 00 0.5 slurm_shared", "8 01 1"}, s.lines())
	assert.Equal(t, States{Held: 2, Free: 1, Live: 2}, s.States)

	r.Incomplete = true
	s, _ = b.Build(r, v, begin)
	assert.Len(t, s.lines(), 3, "a file that is left out may have the device")
	r.Incomplete = false
	r.Jobs[1].Cluster = ""
	s, tl := b.Build(r, v, begin)
	assert.Equal(t, []string{"7 00 1"}, s.lines())
	assert.Equal(t, []string{"8"}, tl.NoCluster)
	b.AllDevices = false
	s, _ = b.Build(&jobmap.Reading{}, v, begin)
	assert.Empty(t, s.lines())
	md := s.Metrics(nil, &Origin{Node: "n1"})
	assert.Equal(t, 1, md.DataPointCount(), "that there is none")
}

func write(t *testing.T, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

func TestAFileOfAJobThatIsOver(t *testing.T) {
	root := t.TempDir()
	group := filepath.Join(root, "sys/fs/cgroup/system.slice/slurmstepd.scope/job_7")
	write(t, "", group, "cgroup.procs")
	b := Builder{Node: "n1", StaleAfter: 2 * time.Minute}
	build := func(after time.Duration, j jobmap.Job) (int, []string) {
		s, tl := b.Build(&jobmap.Reading{Jobs: []jobmap.Job{j}}, &View{Boards: boards(0), Groups: node.ReadGroups(root)}, begin.Add(after))
		return s.States.Live, tl.Stale
	}
	live, stale := build(0, job("7", at(0)))
	assert.Equal(t, 1, live)
	assert.Empty(t, stale)
	require.NoError(t, os.RemoveAll(group))
	live, _ = build(time.Minute, job("7", at(0)))
	assert.Equal(t, 1, live)
	live, stale = build(3*time.Minute, job("7", at(0)))
	assert.Equal(t, 0, live)
	assert.Equal(t, []string{"7"}, stale)
	_, stale = build(4*time.Minute, job("7", at(0)))
	assert.Empty(t, stale, "once")
	again := job("7", at(0))
	again.Start = begin.Add(5 * time.Minute)
	live, _ = build(5*time.Minute, again)
	assert.Equal(t, 1, live, "it was requeued")
}

// A job whose control group could not be found in any case is not over.
func TestControlGroupsThatAreNotFound(t *testing.T) {
	for name, tt := range map[string]struct {
		there, sluid string
		over         bool
	}{
		"none of slurmd":                 {"user.slice/x/cgroup.procs", "", false},
		"slurmd's, elsewhere":            {"a/b/slurmstepd.scope/job_7/cgroup.procs", "", false},
		"SLUIDs, and the file has none":  {"system.slice/slurmstepd.scope/sEKN00000008/cgroup.procs", "", false},
		"SLUIDs, and the file has one":   {"system.slice/slurmstepd.scope/sEKN00000008/cgroup.procs", "sEKN00000007", true},
		"of other jobs":                  {"system.slice/slurmstepd.scope/job_8/cgroup.procs", "", true},
		"slurmd's, without any":          {"system.slice/slurmstepd.scope/system/cgroup.procs", "", true},
		"slurmd's, of cgroup v1":         {"freezer/slurm/tasks", "", true},
		"the job's, named after the job": {"system.slice/slurmstepd.scope/job_7/cgroup.procs", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, "", root, "sys/fs/cgroup", tt.there)
			b := Builder{Node: "n1", AllDevices: true, StaleAfter: 2 * time.Minute}
			j := job("7", at(0))
			j.SLUID = tt.sluid
			var s *Snapshot
			for after := range 4 {
				s, _ = b.Build(&jobmap.Reading{Jobs: []jobmap.Job{j}}, &View{Boards: boards(0), Groups: node.ReadGroups(root)}, begin.Add(time.Duration(after)*time.Minute))
			}
			assert.Equal(t, tt.over, s.States.Live == 0)
			assert.Equal(t, tt.over, s.States.Free == 1)
		})
	}
}

func TestVerifiedByTheControlGroup(t *testing.T) {
	root := t.TempDir()
	write(t, "236 nvidia-caps\n", root, "proc/devices")
	write(t, "gpu1/gi3/access 12\n", root, "proc/driver/nvidia-caps/mig-minors")
	list := filepath.Join(root, "sys/fs/cgroup/devices/slurm/uid_1/job_7/devices.list")
	b := Builder{Node: "n1", StaleAfter: time.Minute}
	build := func(boards node.Boards, devices ...jobmap.Device) (*Snapshot, Tally) {
		return b.Build(&jobmap.Reading{Jobs: []jobmap.Job{job("7", devices...)}}, &View{Boards: boards, Groups: node.ReadGroups(root)}, begin)
	}
	write(t, "c 195:1 rwm\n", list)
	s, tl := build(boards(0, 1), at(1))
	assert.Equal(t, []string{"7 01 1"}, s.lines())
	assert.Empty(t, tl.Disagree)
	for i := range 2 {
		s, tl = build(boards(0, 1), at(0))
		assert.Equal(t, []string{"7 n1/slurm/0 1 unresolved"}, s.lines())
		assert.Len(t, tl.Disagree, 1-i, "once")
	}
	parts := boards(0, 1)
	parts.Parts = true
	write(t, "c 195:1 rwm\nc 236:12 rwm\n", list)
	s, _ = build(parts, at(4))
	assert.Equal(t, []string{"7 01/3 1"}, s.lines())
}

func TestService(t *testing.T) {
	named := func(after time.Duration) jobmap.Job {
		j := job("7")
		j.Name, j.NamedAt = "train", begin.Add(after)
		return j
	}
	comment, unnamed := job("7"), job("7")
	comment.Comment, unnamed.User = "prio, service.name=resnet; x", ""
	for name, c := range map[string]struct {
		service string
		job     jobmap.Job
		after   time.Duration
		want    string
	}{
		"the name":                     {"user_job", named(time.Second), 2 * time.Second, "ada/train"},
		"not yet":                      {"user_job", job("7"), 90 * time.Second, ""},
		"it does not come":             {"user_job", job("7"), 91 * time.Second, "ada/gpu"},
		"it came late, after a start":  {"user_job", named(91 * time.Second), time.Hour, "ada/gpu"},
		"it was there, after a start":  {"user_job", named(time.Second), time.Hour, "ada/train"},
		"the comment":                  {"user_job", comment, 0, "resnet"},
		"the comment wins":             {"job", comment, 0, "resnet"},
		"the job":                      {"job", job("7"), 0, "7"},
		"the partition":                {"partition", job("7"), 0, "gpu"},
		"user and partition":           {"user_partition", job("7"), 0, "ada/gpu"},
		"a file from the future":       {"user_job", job("7"), -time.Hour, "ada/gpu"},
		"a map without users has none": {"user_job", unnamed, time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := Identity{Users: true, Service: c.service, Names: true, NameWait: 90 * time.Second}
			o := i.job(&c.job, &memory{}, begin.Add(c.after))
			assert.Equal(t, c.want, o.Service)
			assert.Equal(t, c.want != "", o.Namespace == "physics")
		})
	}
	i := Identity{Service: "partition"}
	j := job("7")
	o := i.job(&j, &memory{}, begin)
	assert.Equal(t, "", o.User)
	assert.Equal(t, "gpu", o.Service)

	i = Identity{Users: true, Service: "user_job", Names: true, NameWait: 90 * time.Second}
	m := &memory{}
	i.job(&j, m, begin.Add(91*time.Second))
	late := named(time.Second)
	assert.Equal(t, "ada/gpu", i.job(&late, m, begin.Add(2*time.Minute)).Service, "decided once")
}
