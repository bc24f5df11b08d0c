// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func uuid(n int) string { return fmt.Sprintf("GPU-be839661-c0f5-7452-284b-%012d", n) }

func write(t *testing.T, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

func board(t *testing.T, root, pci, id, minor string) {
	t.Helper()
	write(t, "Model: \t\t NVIDIA H100\nIRQ:   \t\t 16\nGPU UUID: \t "+id+"\nVideo BIOS: \t 96\nDevice Minor: \t "+minor+"\n", root, "proc/driver/nvidia/gpus", pci, "information")
}

func TestNVIDIA(t *testing.T) {
	root := filepath.Join(t.TempDir(), "odd[*]name")
	assert.Equal(t, Boards{}, NVIDIA(root))
	board(t, root, "0000:1b:00.0", uuid(0), "0")
	board(t, root, "0000:43:00.0", uuid(1), "1")
	b := NVIDIA(root)
	assert.Equal(t, Boards{ByPCI: []Board{{ID: uuid(0), Minor: 0, PCI: "0000:1b:00.0"}, {ID: uuid(1), Minor: 1, PCI: "0000:43:00.0"}}, Agree: true}, b)

	board(t, root, "0000:05:00.0", "GPU-????????-????-????-????-????????????", "2")
	b = NVIDIA(root)
	assert.False(t, b.Agree)
	assert.Equal(t, Board{Minor: 2, PCI: "0000:05:00.0"}, *b.OfPCI(0))
	assert.Equal(t, uuid(0), b.OfPCI(1).ID)
	assert.Equal(t, uuid(0), b.OfMinor(0).ID)
	assert.Nil(t, b.OfPCI(3))
	assert.Nil(t, b.OfMinor(3))

	write(t, "", root, "proc/driver/nvidia/capabilities/gpu1/mig/gi3/access")
	b = NVIDIA(root)
	assert.True(t, b.Parts && b.OfMinor(1).Parts)
	assert.False(t, b.OfMinor(0).Parts)
}

func TestGroups(t *testing.T) {
	for name, folders := range map[string][]string{
		"v2":                      {"system.slice/slurmstepd.scope/job_7"},
		"v2 with the node's name": {"system.slice/n1_slurmstepd.scope/job_7"},
		"v2 with the SLUID":       {"system.slice/slurmstepd.scope/sEKN1"},
		"v2 with job_<SLUID>":     {"system.slice/slurmstepd.scope/job_sEKN1"},
		"v1":                      {"freezer/slurm/uid_1001/job_7"},
		"v1 with the node's name": {"memory/slurm_n1/uid_1001/job_7"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			g := ReadGroups(root)
			assert.False(t, g.Known)
			for _, f := range folders {
				write(t, "", root, "sys/fs/cgroup", f, "cgroup.procs")
			}
			g = ReadGroups(root)
			assert.True(t, g.Known)
			assert.True(t, g.Has("7", "sEKN1"))
			assert.False(t, g.Has("8", "sEKN2"))
			assert.False(t, g.Has("71", ""))
			_, known := g.Allowed("7", "sEKN1")
			assert.False(t, known)
		})
	}
}

func TestAllowed(t *testing.T) {
	root := t.TempDir()
	write(t, "Character devices:\n195 nvidia-frontend\n236 nvidia-caps\n\nBlock devices:\n", root, "proc/devices")
	write(t, "config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\ngpu1/gi2/access 200\n", root, "proc/driver/nvidia-caps/mig-minors")
	for name, c := range map[string]struct {
		list  string
		want  Allowed
		known bool
	}{
		"boards":          {"c 1:3 rwm\nc 195:1 rwm\nc 195:0 rwm\nc 195:255 rwm\n", Allowed{Minors: []int{1, 0}}, true},
		"an instance":     {"c 195:0 rwm\nc 236:12 rwm\nc 236:13 rwm\n", Allowed{Minors: []int{0}, Instances: []Instance{{0, 1}}}, true},
		"not constrained": {"a *:* rwm\n", Allowed{}, false},
		"all of NVIDIA":   {"c 195:* rwm\n", Allowed{}, false},
		"none":            {"c 1:3 rwm\n", Allowed{}, false},
		"odd":             {"\nc\nc 195: x\n:\n", Allowed{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, c.list, root, "sys/fs/cgroup/devices/slurm/uid_1/job_7/devices.list")
			got, known := ReadGroups(root).Allowed("7", "")
			assert.Equal(t, c.known, known)
			if known {
				assert.Equal(t, c.want, got)
			}
		})
	}
}
