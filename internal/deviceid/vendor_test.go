// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package deviceid

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMakeOf(t *testing.T) {
	others := regexp.MustCompile("^(?:" + OthersPattern + ")$") // as Prometheus matches
	for id, want := range map[string]Make{
		"":                               MakeUnknown,
		"GPU-":                           MakeUnknown,
		"GPU-0123":                       MakeUnknown,
		"GPU-0123456789abcdeg":           MakeUnknown,
		"disk-1":                         MakeUnknown,
		gpu:                              MakeNVIDIA,
		MIG(gpu, "7"):                    MakeNVIDIA,
		Replica(MIG(gpu, "7"), 1):        MakeNVIDIA,
		mig:                              MakeNVIDIA,
		"GPU-c3ff88426fc31c9e":           MakeAMD,
		"GPU-c3ff88426fc31c9e/3":         MakeAMD,
		"GPU-c3ff88426fc31c9e/gpu4":      MakeAMD,
		"GPU-c3ff88426fc31c9e::2":        MakeAMD,
		"GPU-serial-PCB0123-4567-89ab-c": MakeAMD,
		"GAUDI-AN12345678":               MakeGaudi,
		"PCI-node-1@0000:4d:00.0":        MakeIntelGPU,
		"PCI-node-1@0000:4d:00.0/1":      MakeIntelGPU,
		"PCI-node-1@0000:4d:00.0::3":     MakeIntelGPU,
	} {
		assert.Equal(t, want, MakeOf(id), id)
		assert.Equal(t, want >= MakeAMD, others.MatchString(id), id)
	}
}
