// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package deviceid

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParent(t *testing.T) {
	for id, want := range map[string]string{
		"":                  "",
		"GPU-a":             "",
		"GPU-a/7":           "GPU-a",
		MIG("GPU-a", "7"):   "GPU-a",
		"GPU-a::0":          "GPU-a",
		"GPU-a/7::1":        "GPU-a/7",
		Replica("GPU-a", 3): "GPU-a",
	} {
		assert.Equal(t, want, Parent(id), id)
	}
}

func TestKnown(t *testing.T) {
	for id, want := range map[string][2]bool{ // HasGPU, Known
		"":                    {},
		gpu:                   {true, true},
		MIG(gpu, "7"):         {true, true},
		Replica("GPU-a", 3):   {true, true},
		mig:                   {false, true},
		"MIG-" + gpu + "/7/0": {false, true},
		"gpu-a":               {},
		"7f1c":                {},
		"nvidia0":             {},
	} {
		assert.Equal(t, want, [2]bool{HasGPU(id), Known(id)}, id)
	}
}

func TestPCIAddress(t *testing.T) {
	for in, want := range map[string]string{
		"00000000:A8:00.0": "0000:a8:00.0",
		"0000:a8:00.0":     "0000:a8:00.0",
		"00010000:01:00.0": "10000:01:00.0",
		"A8:00.0":          "a8:00.0",
		"":                 "",
		"nonsense":         "nonsense",
	} {
		assert.Equal(t, want, PCIAddress(in), in)
	}
}
