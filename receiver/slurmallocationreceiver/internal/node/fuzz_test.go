// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What drivers and kernels write is read as it is; what they never wrote costs a board or a group.
func FuzzNode(f *testing.F) {
	f.Add("Model: \t NVIDIA H100\nGPU UUID: \t GPU-be839661-c0f5-7452-284b-000000000001\nDevice Minor: \t 0\n", "c 195:0 rw\nc 239:12 r\n", "239 nvidia-caps\n", "gpu0/gi1/access 12\n")
	f.Add("GPU UUID: GPU-????????-????-????-????-????????????\nDevice Minor: -1\n", "a *:* rwm\n", "", "gpu9/gi/access x\n")
	f.Fuzz(func(t *testing.T, information, devices, majors, minors string) {
		root := t.TempDir()
		write(t, information, root, "proc/driver/nvidia/gpus/0000:1b:00.0/information")
		write(t, majors, root, "proc/devices")
		write(t, minors, root, "proc/driver/nvidia-caps/mig-minors")
		write(t, devices, root, "sys/fs/cgroup/devices/slurm/uid_1001/job_7/devices.list")
		b := NVIDIA(root)
		require.Len(t, b.ByPCI, 1)
		require.GreaterOrEqual(t, b.ByPCI[0].Minor, -1)
		require.Equal(t, b.Agree, b.ByPCI[0].Minor == 0)
		g := ReadGroups(root)
		require.True(t, g.Has("7", ""))
		allowed, known := g.Allowed("7", "")
		require.Equal(t, known, len(allowed.Minors) > 0)
		for _, minor := range allowed.Minors {
			require.True(t, minor >= 0 && minor < 254)
		}
		for _, i := range allowed.Instances {
			require.True(t, i.Minor >= 0 && i.GI >= 0)
		}
	})
}
