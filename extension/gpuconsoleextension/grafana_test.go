// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What Open in Grafana sets by default exists in the dashboard that it opens.
func TestGrafanaDashboardHasTheVariables(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	text, err := os.ReadFile(filepath.Join("..", "..", "mixin", "dashboards", cfg.Grafana.Dashboard+".json"))
	require.NoError(t, err)
	var board struct {
		UID        string `json:"uid"`
		Templating struct {
			List []struct{ Name string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	assert.Equal(t, cfg.Grafana.Dashboard, board.UID)
	var there []string
	for _, v := range board.Templating.List {
		there = append(there, v.Name)
	}
	require.NotEmpty(t, defaultVariables)
	for name := range defaultVariables {
		assert.Contains(t, there, name)
	}
}
