// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDevicesByName(t *testing.T) {
	for want, d := range map[string]Device{
		"GPU 3 on gpu-b (GPU-a)":  {ID: DeviceID{"c1", "GPU-a"}, Facts: Facts{Index: 3, Node: "gpu-b", Host: "host-b"}},
		"GPU 0 on host-b (GPU-a)": {ID: DeviceID{"", "GPU-a"}, Facts: Facts{Index: 0, Host: "host-b"}},
		"GPU 0 (GPU-a)":           {ID: DeviceID{"", "GPU-a"}, Facts: Facts{Index: 0}},
		"GPU-a on gpu-b":          {ID: DeviceID{"", "GPU-a"}, Facts: Facts{Index: -1, Node: "gpu-b"}},
		"GPU odd":                 {ID: DeviceID{"", "odd"}, Facts: Facts{Index: -1}},
		"MIG instance 9 of GPU 3 on gpu-b (GPU-a/9)": {ID: DeviceID{"", "GPU-a/9"}, Facts: Facts{Index: 3, Node: "gpu-b", Parent: "GPU-a"}},
		"MIG instance GPU-a/9 on gpu-b":              {ID: DeviceID{"", "GPU-a/9"}, Facts: Facts{Index: -1, Node: "gpu-b", Parent: "GPU-a"}},
	} {
		require.Equal(t, want, d.String())
	}
}
