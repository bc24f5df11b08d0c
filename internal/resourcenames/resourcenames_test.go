// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package resourcenames

import (
	"strings"
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
		"amd.com/cpx_nps4":              true,
		"amd.com/spx_nps1":              true,
		"amd.com/tpx_nps8":              true,
		"amd.com/cpx_nps3":              false,
		"amd.com/cpx":                   false,
		"amd.com/nic":                   false,
		"amd.com/vnic":                  false,
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

func TestAlternatives(t *testing.T) {
	m, err := New([]string{"a.com/{b,c}{1,2}", "a.com/{x,y}-*", "a.com/mi{250x}"})
	require.NoError(t, err)
	for name, want := range map[string]bool{
		"a.com/b1": true, "a.com/c2": true, "a.com/x-1": true, "a.com/y-2": true, "a.com/mi250x": true,
		"a.com/b": false, "a.com/b12": false, "a.com/x-": false, "a.com/{b,c}{1,2}": false,
	} {
		assert.Equal(t, want, m.Match(name), name)
	}
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
		"a/{b":           "braces",
		"a/b}":           "braces",
		"a/{}":           "braces",
		"a/{b,}":         "braces",
		"a/{b,{c,d}}":    "braces",
		"a/{b}}":         "braces",
		"a/{b,c*}":       "mig-*",
		"{a,b}/c":        "braces",

		"a/" + strings.Repeat("{a,b}", 9): "several patterns",
	} {
		_, err := New([]string{"amd.com/gpu", pattern})
		require.Error(t, err, pattern)
		assert.Contains(t, err.Error(), remedy, pattern)
		assert.Contains(t, err.Error(), "1: ")
	}
}
