// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package library

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFunctionIsCalled(t *testing.T) {
	libc := mapped(t)
	folder := t.TempDir()
	require.NoError(t, os.Symlink(libc, filepath.Join(folder, Name)))
	for name, l := range map[string]*Library{
		"by path":    open(t, libc, nil),
		"in folders": open(t, "", []string{"/nowhere", folder}),
	} {
		t.Run(name, func(t *testing.T) {
			getpid, ok := l.Find("getpid")
			require.True(t, ok)
			assert.Equal(t, os.Getpid(), int(getpid()))
			abs, ok := l.Find("abs")
			require.True(t, ok)
			assert.Equal(t, int32(5), int32(abs(^uintptr(4))))
			_, ok = l.Find("nvmlNoSuchFunction")
			assert.False(t, ok)
			assert.True(t, filepath.IsAbs(l.Path()))
		})
	}
}

func TestWhatDoesNotLoadIsNamed(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, Name)
	require.NoError(t, os.WriteFile(text, []byte("no library"), 0o600))
	for _, c := range []struct {
		name    string
		path    string
		folders []string
		tried   []string // how each path begins
	}{
		{name: "a path that is not there", path: "/nowhere/" + Name, tried: []string{"/nowhere/" + Name + ": "}},
		{name: "no library", path: text, tried: []string{text + ": "}},
		{name: "only the path is tried", path: "/nowhere/x.so", folders: []string{folder}, tried: []string{"/nowhere/x.so: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, tried, err := Open(c.path, c.folders)
			require.Error(t, err)
			assert.Nil(t, l)
			require.Len(t, tried, len(c.tried))
			for i := range tried {
				assert.True(t, strings.HasPrefix(tried[i], c.tried[i]), tried[i])
				assert.Greater(t, len(tried[i]), len(c.tried[i])+5, "with the loader's text")
				assert.Equal(t, 1, strings.Count(tried[i], c.tried[i]), "the path once: %s", tried[i])
			}
		})
	}
}

func TestFoldersAreAbsolute(t *testing.T) {
	for _, folder := range Folders() {
		assert.True(t, filepath.IsAbs(folder))
	}
}

func open(t *testing.T, path string, folders []string) *Library {
	t.Helper()
	l, _, err := Open(path, folders)
	require.NoError(t, err)
	return l
}

// mapped is the C library that this program has.
func mapped(t *testing.T) string {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		if i := strings.IndexByte(line, '/'); i >= 0 && strings.HasPrefix(filepath.Base(line[i:]), "libc.so") {
			return strings.TrimSpace(line[i:])
		}
	}
	t.Fatal("a program with purego has a C library")
	return ""
}
