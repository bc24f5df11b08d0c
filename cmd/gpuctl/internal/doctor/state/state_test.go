// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
)

func TestState(t *testing.T) {
	dir := t.TempDir()
	assert.Equal(t, probe.OK, stateOf(dir).Status)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries, "nothing is left behind")
	assert.Equal(t, probe.Warn, stateOf(dir+"/none").Status)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.Equal(t, probe.Fail, stateOf(file).Status)
}
