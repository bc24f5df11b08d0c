// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package deviceid

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCutReplica(t *testing.T) {
	for _, tt := range []struct{ id, device, replica string }{
		{"GPU-a", "GPU-a", ""},
		{"GPU-a::0", "GPU-a", "::0"},
		{"GPU-a/3::12", "GPU-a/3", "::12"},
		{"GPU-a::x", "GPU-a::x", ""},
		{"GPU-a::", "GPU-a::", ""},
		{"::1", "::1", ""},
		{"", "", ""},
	} {
		device, replica := CutReplica(tt.id)
		assert.Equal(t, [2]string{tt.device, tt.replica}, [2]string{device, replica}, tt.id)
	}
}

func TestParseUnresolved(t *testing.T) {
	const mig = "MIG-c4529c8d-69c4-b61d-e0bc-7b2460096005"
	for _, tt := range []struct {
		id   string
		want Hint
	}{
		{"n1/" + mig, Hint{Device: "n1/" + mig, MIGUUID: mig}},
		{"n1/" + mig + "::3", Hint{Device: "n1/" + mig, MIGUUID: mig, Replica: "::3"}},
		{"n1/nvidia0", Hint{Device: "n1/nvidia0", Index: "0"}},
		{"n1/nvidia12/gi5", Hint{Device: "n1/nvidia12/gi5", Index: "12", Instance: "5"}},
		{"n1/nvidia0/vgpu3", Hint{Device: "n1/nvidia0", Index: "0", Replica: "::3"}},
		{"n1/nvidia0/gi1/vgpu3", Hint{Device: "n1/nvidia0/gi1", Index: "0", Instance: "1", Replica: "::3"}},
		{SlurmIndex("n1", 7), Hint{Device: "n1/slurm/7", Slurm: "7"}},
		{"n1/slurm/x", Hint{Device: "n1/slurm/x"}},
		{"n1/slurm/7::1", Hint{Device: "n1/slurm/7", Slurm: "7", Replica: "::1"}},
		{"n1/nvidia0/gi", Hint{Device: "n1/nvidia0/gi"}},
		{"n1/nvidia0/ci3", Hint{Device: "n1/nvidia0/ci3"}},
		{"n1/MIG-x", Hint{Device: "n1/MIG-x"}},
		{"n1/card0-3", Hint{Device: "n1/card0-3"}},
		{"n2/nvidia0", Hint{Device: "n2/nvidia0"}},
		{"nvidia0", Hint{Device: "nvidia0"}},
		{"", Hint{}},
	} {
		assert.Equal(t, tt.want, ParseUnresolved("n1", tt.id), tt.id)
	}
	assert.Equal(t, Hint{Device: "/nvidia0"}, ParseUnresolved("", "/nvidia0"), "a node without name has no indices")
}

// FuzzParseUnresolved: no text panics, a device never has its replica in it, and
// the id of a device without replica is the device.
func FuzzParseUnresolved(f *testing.F) {
	for _, id := range []string{"n/MIG-c4529c8d-69c4-b61d-e0bc-7b2460096005::3", "n/nvidia0/gi1/vgpu3", "n/", "::", "n/nvidia/gi/vgpu", "n/nvidia0::1", "n/slurm/3"} {
		f.Add("n", id)
	}
	f.Fuzz(func(t *testing.T, node, id string) {
		h := ParseUnresolved(node, id)
		require.True(t, strings.HasPrefix(id, h.Device))
		require.Equal(t, h.Replica == "", id == h.Device)
		if h.MIGUUID != "" || h.Index != "" || h.Slurm != "" {
			require.True(t, strings.HasPrefix(h.Device, node+"/"))
		}
		device, replica := CutReplica(id)
		require.Equal(t, id, device+replica)
	})
}
