// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// asOtherUser is gpuctl as a user without rights, from a folder that this one can
// read; nil where we cannot become another.
func asOtherUser(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	text, err := os.ReadFile(binary(t, "gpuctl"))
	require.NoError(t, err)
	path := filepath.Join(dir, "gpuctl")
	require.NoError(t, os.WriteFile(path, text, 0o755))
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
	return cmd
}
