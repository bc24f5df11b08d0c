// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
			assert.Contains(t, files, filepath.ToSlash(filepath.Join(folder, f.Name())))
		}
	}
}
