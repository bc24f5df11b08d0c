// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// This process gives its own pages back and goes on.
func TestRelease(t *testing.T) {
	resident := func() (bytes int64) {
		executable, err := os.Readlink("/proc/self/exe")
		require.NoError(t, err)
		smaps, err := os.Open("/proc/self/smaps")
		require.NoError(t, err)
		defer smaps.Close()
		all, err := clean(smaps, executable)
		require.NoError(t, err)
		for _, m := range all {
			bytes += m.resident
		}
		return bytes
	}
	before := resident()
	require.Positive(t, before)
	released, err := Release()
	require.NoError(t, err)
	assert.Positive(t, released)
	assert.Less(t, resident(), before)
}
