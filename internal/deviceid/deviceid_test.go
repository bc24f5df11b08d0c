// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package deviceid

import (
	"strings"
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

		AMD(0xcce0c6d49f5b0d86):                 "",
		Partition(AMD(0xc3ff88426fc31c9e), "3"): "GPU-c3ff88426fc31c9e",
		Intel("n1", "0000:3a:00.0"):             "",
		"PCI-n1@0000:3a:00.0/1":                 "PCI-n1@0000:3a:00.0",
		"PCI-n1@0000:3a:00.0::1":                "PCI-n1@0000:3a:00.0",
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
		"GPU-serial-69240":    {true, true},
		"GAUDI-AM50033534":    {true, true},
		"PCI-n1@0000:3a:00.0": {true, true},
		"PCI-n1":              {}, // no address
		"gpu-a":               {},
		"7f1c":                {},
		"nvidia0":             {},
	} {
		assert.Equal(t, want, [2]bool{HasGPU(id), Known(id)}, id)
	}
}

func TestIDsOfVendors(t *testing.T) {
	for want, id := range map[string]string{
		"GPU-cce0c6d49f5b0d86":        AMD(0xcce0c6d49f5b0d86),
		"GPU-00000000000000ff":        AMD(255),
		"GPU-serial-692409005408":     AMDSerial("692409005408"),
		"GAUDI-AM50033534":            Gaudi("AM50033534"),
		"PCI-n1.example@0000:3a:00.0": Intel("n1.example", "00000000:3A:00.0"),
	} {
		assert.Equal(t, want, id)
		assert.Empty(t, Parent(id), id)
		assert.True(t, HasGPU(id), id)
		device, replica := CutReplica(id)
		assert.Equal(t, [2]string{id}, [2]string{device, replica}, "no id is taken for a replica's")
	}
	for _, serial := range []string{"", "na", "NA", "none", "a b", "a/b", "a:b", "a@b", "\xff", "a\n", strings.Repeat("1", 254)} {
		assert.Empty(t, Gaudi(serial), serial)
		assert.Empty(t, AMDSerial(serial), serial)
	}
	assert.Empty(t, AMD(0))
	assert.Empty(t, Intel("", "0000:3a:00.0"))
	assert.Empty(t, Intel("n1", ""))
	assert.Empty(t, Intel("n1", "3a:00.0"))
	assert.Empty(t, Intel("n/1", "0000:3a:00.0"))
}

func TestUniqueID(t *testing.T) {
	for text, want := range map[string]uint64{
		"cce0c6d49f5b0d86":     0xcce0c6d49f5b0d86,
		"0xCCE0C6D49F5B0D86\n": 0xcce0c6d49f5b0d86,
		"0000000000000000":     0,
		"":                     0,
		"N/A":                  0,
		"1cce0c6d49f5b0d86":    0,
		"-1":                   0,
	} {
		assert.Equal(t, want, UniqueID(text), text)
	}
}

func TestIsPCI(t *testing.T) {
	for address, want := range map[string]bool{
		"0000:3a:00.0": true, "10000:01:00.7": true,
		"": false, "3a:00.0": false, "0000:3A:00.0": false, "0000:3a:00:0": false, "0000.3a.00.0": false,
		"0000:3a:00.00": false, "123456789:3a:00.0": false, "000g:3a:00.0": false,
	} {
		assert.Equal(t, want, IsPCI(address), address)
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
