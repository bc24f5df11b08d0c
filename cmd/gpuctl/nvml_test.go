// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/releasefile"
)

func TestNVMLRelease(t *testing.T) {
	dir := t.TempDir()
	proc, file := filepath.Join(dir, "proc"), filepath.Join(dir, "run", "release")
	process := filepath.Join(proc, "4711")
	run := func(args ...string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		code := newNVMLRelease(proc).execute(t.Context(), streams{nil, &stdout, &stderr}, args)
		return code, stdout.String(), stderr.String()
	}
	require.NoError(t, os.MkdirAll(process, 0o700))
	for _, other := range []string{"version", "1"} {
		require.NoError(t, os.MkdirAll(filepath.Join(proc, other), 0o700))
	}
	comm := func(name string) {
		require.NoError(t, os.WriteFile(filepath.Join(process, "comm"), []byte(name+"\n"), 0o600))
	}

	comm("otelcol-gpu")
	code, out, _ := run("--file", file, "--for", "1m")
	assert.Equal(t, exitOK, code)
	assert.Contains(t, out, "released until ")
	assert.True(t, releasefile.Released(file, time.Now()))
	assert.False(t, releasefile.Released(file, time.Now().Add(time.Minute)))

	comm("otelcol-gpu-nvm")
	code, _, stderr := run("--file", file, "--wait", "1ms")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "4711")
	code, _, _ = run("--file", file, "--wait", "0s")
	assert.Equal(t, exitOK, code)

	code, out, _ = run("--file", file, "--end")
	assert.Equal(t, exitOK, code)
	assert.Equal(t, "the release has ended\n", out)
	assert.NoFileExists(t, file)

	t.Setenv(releasefile.Variable, file)
	code, _, _ = run("--wait", "0s")
	assert.Equal(t, exitOK, code)
	assert.FileExists(t, file)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, args := range [][]string{{"--for", "0s"}, {"--for", "25h"}, {"--file", "release"}, {"now"}, {"--wait", "-1s"}, {}} {
		code, _, stderr = run(args...)
		assert.Equal(t, exitUsage, code, args)
		assert.NotEmpty(t, stderr)
	}
}
