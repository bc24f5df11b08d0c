// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCommandRefuses(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"now"}, `takes no arguments, only flags: ["now"]`},
		{[]string{"-events", "many"}, "invalid value"},
		{[]string{"-events", "0"}, "at least one event"},
		{[]string{"-kills", "-1"}, "no negative number of kills"},
	} {
		err := command(t.Context(), tc.args, io.Discard, io.Discard)
		require.Error(t, err, tc.args)
		assert.Contains(t, err.Error(), tc.want)
	}
}

// What is not built yet is named, and nothing is left running.
func TestCommandWithoutBinaries(t *testing.T) {
	dir := t.TempDir()
	err := command(t.Context(), []string{"-events", "10", "-receivers", "2", "-bin", filepath.Join(dir, "bin"), "-dir", dir}, io.Discard, io.Discard)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "make build")
}
