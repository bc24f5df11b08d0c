// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// assertARM64 reports whether a file is a static program for Linux on arm64.
func assertARM64(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	assert.Equal(t, elf.EM_AARCH64, f.Machine)
	libraries, err := f.ImportedLibraries()
	require.NoError(t, err)
	assert.Empty(t, libraries, "distroless/static has no libraries")
	for _, p := range f.Progs {
		assert.NotEqual(t, elf.PT_INTERP, p.Type, "distroless/static has no dynamic loader")
	}
}

// What `make image-check` made before: GOARCH=arm64 of the whole collector.
func TestCollectorForARM64(t *testing.T) {
	path := os.Getenv("OTELCOL_GPU_ARM64")
	if path == "" {
		t.Skip("compiling it takes minutes: make image-check")
	}
	assertARM64(t, path)
}

// The binary of `make build` runs in distroless/static too: it needs no library.
func TestCollectorIsStatic(t *testing.T) {
	for _, name := range []string{"otelcol-gpu", "gpuctl"} {
		f, err := elf.Open(filepath.Join(root, "bin", name))
		require.NoError(t, err, "run make build")
		libraries, err := f.ImportedLibraries()
		require.NoError(t, err)
		assert.Empty(t, libraries, name)
		require.NoError(t, f.Close())
	}
}

// The helper of the nvml receiver needs a loader, and glibc of any version: no symbol of a
// version.
func TestHelperNeedsAnyGlibc(t *testing.T) {
	f, err := elf.Open(filepath.Join(root, "bin", "otelcol-gpu-nvml"))
	require.NoError(t, err, "run make build")
	libraries, err := f.ImportedLibraries()
	require.NoError(t, err)
	assert.Subset(t, []string{"libc.so.6", "libdl.so.2", "libpthread.so.0"}, libraries)
	assert.Contains(t, libraries, "libc.so.6")
	needed, err := f.DynamicVersionNeeds()
	if err == nil {
		assert.Empty(t, needed)
	}
	require.NoError(t, f.Close())
}

// collector runs bin/otelcol-gpu to its end and returns what it printed.
func collector(t *testing.T, environment []string, arguments ...string) (string, error) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "bin", "otelcol-gpu"))
	require.NoError(t, err)
	require.FileExists(t, path, "run make build")
	command := exec.Command(path, arguments...)
	command.Env = append(os.Environ(), environment...)
	text, err := command.CombinedOutput()
	return string(text), err
}
