// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// What is committed is what `make generate` writes, and nothing beside it.
func TestFilesAreGenerated(t *testing.T) {
	files, err := Files()
	require.NoError(t, err)
	for path, want := range files {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s: run make generate", path)
	}
	for _, folder := range Folders {
		there, err := os.ReadDir(folder)
		require.NoError(t, err)
		for _, f := range there {
			if path := filepath.ToSlash(filepath.Join(folder, f.Name())); !Elsewhere(path) {
				assert.Contains(t, files, path)
			}
		}
	}
}

// Every event of gpu_events has an alert for the same condition.
func TestEveryEventHasAnAlert(t *testing.T) {
	covered := map[string]bool{}
	for _, g := range alerts(shipped(t)) {
		for _, a := range g.alerts {
			covered[a.event] = true
			if a.event != "" {
				assert.Contains(t, names.Events(), a.event, a.name)
			}
		}
	}
	for _, event := range names.Events() {
		assert.True(t, covered[event], event)
	}
}
