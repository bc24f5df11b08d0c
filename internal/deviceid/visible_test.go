// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package deviceid

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseVisible(t *testing.T) {
	const gpu, mig = "GPU-be839661-c0f5-7452-284b-b875666df60c", "MIG-41f3a1a5-5d1a-5a86-b7a5-1d6b4f0b2c11"
	for entry, want := range map[string]Kubelet{
		gpu:                    {ID: gpu, Device: gpu, Resolved: true},
		mig:                    {ID: mig, Device: mig, MIG: mig},
		"MIG-" + gpu + "/7/0":  {ID: gpu + "/7", Device: gpu + "/7", Resolved: true},
		"GPU-1A2B3C4D5E6F7890": {ID: "GPU-1a2b3c4d5e6f7890", Device: "GPU-1a2b3c4d5e6f7890", Resolved: true},
		"GPU-0000000000000000": {},
		gpu + "::1":            {},
		"GPU-be839661":         {},
		"0":                    {},
		"":                     {},
		"MIG-x":                {},
		"nvidia0":              {},
	} {
		k, ok := ParseVisible(entry)
		assert.Equal(t, want, k, entry)
		assert.Equal(t, want != Kubelet{}, ok, entry)
	}
}
