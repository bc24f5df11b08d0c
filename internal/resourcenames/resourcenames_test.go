// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package resourcenames

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDefault(t *testing.T) {
	m, err := New(Default())
	require.NoError(t, err)
	for name, want := range map[string]bool{
		"nvidia.com/gpu":                true,
		"nvidia.com/gpu.shared":         true,
		"nvidia.com/mig-1g.5gb":         true,
		"nvidia.com/mig-1g.10gb.me":     true,
		"nvidia.com/mig-1g.5gb.shared":  true,
		"amd.com/gpu":                   true,
		"habana.ai/gaudi":               true,
		"gpu.intel.com/i915":            true,
		"gpu.intel.com/xe":              true,
		"gpu.intel.com/i915_monitoring": false,
		"gpu.intel.com/millicores":      false,
		"gpu.intel.com/":                false,
		"nvidia.com/gpumem":             false,
		"nvidia.com/mig-":               false,
		"nvidia.com/hostdev":            false,
		"xnvidia.com/gpu":               false,
		"cpu":                           false,
		"":                              false,
	} {
		assert.Equal(t, want, m.Match(name), name)
	}
}

func TestWrittenOutAlwaysCounts(t *testing.T) {
	m, err := New([]string{"gpu.intel.com/*", "gpu.intel.com/monitoring"})
	require.NoError(t, err)
	assert.True(t, m.Match("gpu.intel.com/monitoring"))
	assert.False(t, m.Match("gpu.intel.com/xe_monitoring"))
}

func TestDefaultIsTheCallersOwn(t *testing.T) {
	Default()[0] = "changed"
	assert.Equal(t, "nvidia.com/gpu", Default()[0])
}

func TestWrongPatterns(t *testing.T) {
	for pattern, remedy := range map[string]string{
		"":               "domain/name",
		"gpu":            "domain/name",
		"/gpu":           "domain/name",
		"nvidia.com/":    "domain/name",
		"a/b/c":          "domain/name",
		"nvidia.com/ gp": "white space",
		"*.com/gpu":      "mig-*",
		"nvidia.com/*g":  "mig-*",
		"nvidia.com/**":  "mig-*",
	} {
		_, err := New([]string{"amd.com/gpu", pattern})
		require.Error(t, err, pattern)
		assert.Contains(t, err.Error(), remedy, pattern)
		assert.Contains(t, err.Error(), "1: ")
	}
}
