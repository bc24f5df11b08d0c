// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program of another version is built again.
func TestIsVersion(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	info, err := buildinfo.ReadFile(self)
	require.NoError(t, err)
	assert.True(t, isVersion(self, info.Main.Version))
	assert.False(t, isVersion(self, "v0.0.1"))
	assert.False(t, isVersion(filepath.Join(t.TempDir(), "none"), ""))
}
