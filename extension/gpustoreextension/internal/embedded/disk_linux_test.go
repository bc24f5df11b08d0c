// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// disk is a small file system of its own.
func disk(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	if err := unix.Mount("tmpfs", directory, "tmpfs", 0, "size=16m"); err != nil {
		t.Skip("mounting a file system takes root:", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(directory, 0)) })
	return directory
}

func fill(t *testing.T, path string, leave int64) {
	t.Helper()
	free, known := FreeBytes(filepath.Dir(path))
	require.True(t, known)
	require.NoError(t, os.WriteFile(path, make([]byte, free-leave), 0o600))
}

func TestAFullDiskStopsTheStoreBeforeTheStoreStopsTheProcess(t *testing.T) {
	root := disk(t)
	w := open(t, filepath.Join(root, "store"), func(o *Options) { o.Reserve = 4 << 20 })
	require.Empty(t, w.write(one("m", begin, 1)))
	filler := filepath.Join(root, "filler")
	fill(t, filler, 2<<20)
	for range 2 {
		assert.Equal(t, map[store.Refusal]int{store.DiskFull: 1}, w.write(one("m", begin.Add(time.Second), 2)))
	}
	assert.ErrorContains(t, w.Health(t.Context()), "make room")
	assert.Equal(t, 1.0, w.value(`m`, begin.Add(time.Second)), "it can be read")

	require.NoError(t, os.Remove(filler))
	assert.Empty(t, w.write(one("m", begin.Add(2*time.Second), 3)), "and goes on when there is room")
	assert.NoError(t, w.Health(t.Context()))
	require.NoError(t, w.Close())
	w = open(t, filepath.Join(root, "store"), nil)
	assert.Equal(t, 3.0, w.value(`m`, begin.Add(2*time.Second)))
}

// Another process may fill the disk faster than that: a write that fails is reported,
// and what was stored before is there.
func TestAWriteThatFailsIsReported(t *testing.T) {
	root := disk(t)
	w := open(t, filepath.Join(root, "store"), func(o *Options) { o.Reserve = 0 })
	for s := range 100 {
		require.Empty(t, w.write(one("m", begin.Add(time.Duration(s)*time.Second), 1)))
	}
	w.options.Reserve = -1 << 40 // as if there were room
	filler := filepath.Join(root, "filler")
	fill(t, filler, 0)
	var failed error
	for s := 100; s < 20_000 && failed == nil; s++ {
		w.now = begin.Add(time.Duration(s) * 10 * time.Millisecond)
		_, failed = w.Append(t.Context(), []store.Series{one("n", w.now, float64(s)*1.37)})
	}
	require.Error(t, failed)
	assert.Equal(t, store.Internal, store.KindOf(failed))
	assert.ErrorContains(t, failed, "full disk")
	assert.ErrorContains(t, w.Health(t.Context()), "full disk")
	require.NoError(t, os.Remove(filler))
	w.now = begin.Add(time.Hour)
	require.Empty(t, w.write(one("m", w.now, 2)))
	assert.NoError(t, w.Health(t.Context()))
	require.NoError(t, w.Close())
	w = open(t, filepath.Join(root, "store"), nil)
	assert.Equal(t, 100.0, w.value(`count_over_time(m[10m])`, begin.Add(100*time.Second)))
}

func TestAFullOrReadOnlyDiskIsReportedAtTheStart(t *testing.T) {
	root := disk(t)
	o := options(filepath.Join(root, "store"))
	require.NoError(t, os.MkdirAll(o.Directory, 0o700))
	fill(t, filepath.Join(root, "filler"), 0)
	_, err := Open(o)
	require.ErrorContains(t, err, "full disk")
	require.NoError(t, unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	_, err = Open(o)
	require.ErrorContains(t, err, "cannot be written")
	require.ErrorContains(t, err, o.Directory)
}
