// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// amdLeft is what the example for AMD's exporter does without, and why.
var amdLeft = map[string]string{
	"PCIE_BANDWIDTH":   "reading it takes a second a board on MI250 and MI250X",
	"GPU_TOTAL_MEMORY": "the former name of GPU_TOTAL_VRAM",
	"GPU_VIOLATION_CURRENT_ACCUMULATED_COUNTER": "the percentages, from 1.4 on, need no counters",
}

// The example for AMD's exporter prints what the receiver has a metric for, and asks for
// the label that identifies a board.
func TestExampleForAMDsExporter(t *testing.T) {
	var config struct {
		GPUConfig struct {
			Labels, Fields  []string
			ProfilerMetrics map[string]bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, root, "docs", "examples", "amd", "config.json")), &config))
	c := config.GPUConfig
	assert.Contains(t, c.Labels, "GPU_UUID")
	assert.Contains(t, c.Labels, "CARD_SERIES")
	assert.Equal(t, map[string]bool{"all": false}, c.ProfilerMetrics)

	table, _, found := strings.Cut(read(t, root, "receiver", "amdgpureceiver", "fields.md"), "## About the exporter")
	require.True(t, found)
	known := map[string]bool{"GPU_NODES_TOTAL": true} // it is compared with the devices on the page
	for _, name := range regexp.MustCompile("`(?:mean of )?((?:gpu|pcie)_[a-z0-9_]+)`").FindAllStringSubmatch(table, -1) {
		field := strings.ToUpper(name[1])
		if left := amdLeft[field] != "" || strings.HasPrefix(field, "GPU_PROF_") || strings.HasSuffix(field, "_ACCUMULATED"); left {
			assert.NotContains(t, c.Fields, field, amdLeft[field])
			continue
		}
		known[field] = true
		assert.Contains(t, c.Fields, field, "a metric is made of it")
	}
	for _, field := range c.Fields {
		assert.True(t, known[field], "%s: no metric is made of it", field)
	}
	assert.Greater(t, len(known), 80)
}
