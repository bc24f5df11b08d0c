// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// A build is one with an empty cache, and what fails reports why.
func TestMeasureBuild(t *testing.T) {
	root, err := frame.Repository()
	require.NoError(t, err)
	w := &frame.World{Root: root, Work: t.TempDir()}
	f, err := measureBuild(t.Context(), w, "testbed/kubernetes/bench", []string{"./missing"})
	require.ErrorContains(t, err, "missing")
	assert.Nil(t, f)
}
