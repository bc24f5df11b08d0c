// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// What is idle is one thing in every shipped configuration: gpu_cost calls time idle by the settings
// of gpu_summary, which the console follows.
func TestOneRuleOfIdle(t *testing.T) {
	files, err := filepath.Glob("../../config/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var config map[string]map[string]any
		require.NoError(t, yaml.Unmarshal(text, &config), file)
		of := func(section, kind string) (settings [2]any) {
			for id, value := range config[section] {
				if name, _, _ := strings.Cut(id, "/"); name == kind {
					keys, _ := value.(map[string]any)
					settings = [2]any{keys["idle_threshold"], keys["idle_for"]}
				}
			}
			return settings
		}
		summary := of("processors", "gpu_summary")
		if summary != [2]any{} {
			found++
		}
		assert.Equal(t, summary, of("connectors", "gpu_cost"), file)
	}
	assert.Positive(t, found)
}
