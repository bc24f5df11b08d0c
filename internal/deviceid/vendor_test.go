// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package deviceid

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMakeOf(t *testing.T) {
	for id, want := range map[string]Make{
		"":                               Unknown,
		"GPU-":                           Unknown,
		"GPU-0123":                       Unknown,
		"GPU-0123456789abcdeg":           Unknown,
		"disk-1":                         Unknown,
		gpu:                              NVIDIA,
		MIG(gpu, "7"):                    NVIDIA,
		Replica(MIG(gpu, "7"), 1):        NVIDIA,
		mig:                              NVIDIA,
		"GPU-c3ff88426fc31c9e":           AMD,
		"GPU-c3ff88426fc31c9e/3":         AMD,
		"GPU-c3ff88426fc31c9e/gpu4":      AMD,
		"GPU-c3ff88426fc31c9e::2":        AMD,
		"GPU-serial-PCB0123-4567-89ab-c": AMD,
		"GAUDI-AN12345678":               Gaudi,
		"PCI-node-1@0000:4d:00.0":        IntelGPU,
		"PCI-node-1@0000:4d:00.0/1":      IntelGPU,
		"PCI-node-1@0000:4d:00.0::3":     IntelGPU,
	} {
		assert.Equal(t, want, MakeOf(id), id)
	}
}
