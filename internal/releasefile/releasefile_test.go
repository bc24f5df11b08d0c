// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package releasefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var now = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)

func TestReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "release")
	assert.False(t, Released(path, now), "no file")
	for text, want := range map[string]bool{
		"":                            true,
		"by hand\n":                   true,
		"2026-11-01T08:00:01Z\n":      true,
		"2026-11-01T08:00:00Z":        false,
		"2026-11-01T10:00:00+01:00\n": true,
		strings.Repeat("\x00", 1<<20): true,
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		assert.Equal(t, want, Released(path, now), "%.30q", text)
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "release")
	require.NoError(t, Write(path, now.Add(time.Minute)))
	assert.True(t, Released(path, now.Add(59*time.Second)))
	assert.False(t, Released(path, now.Add(time.Minute)))
	require.NoError(t, Write(path, now.Add(time.Hour)), "longer")
	assert.True(t, Released(path, now.Add(time.Minute)))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), info.Mode(), "the receiver may be another user's")
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, files, 1)

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	assert.ErrorIs(t, Write(path, now.Add(time.Hour)), ErrUnlimited)
}
