// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/embedded"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// The same on a real file system, samples, events and usage. What a disk does is played
// without one by the tests beside this one, which run everywhere.
func TestASmallDiskThatFillsTwice(t *testing.T) {
	directory := t.TempDir()
	if err := unix.Mount("tmpfs", directory, "tmpfs", 0, "size=16m"); err != nil {
		t.Skip("mounting a file system takes root:", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(directory, 0)) })
	g := begin(t, configured(t, func(c *Config) { c.Directory, c.MaxBytes = filepath.Join(directory, "store"), minMaxBytes }))
	now := time.Now().Truncate(time.Second)
	filler := filepath.Join(directory, "filler")
	for occurrence := range 2 {
		free, _ := embedded.FreeBytes(directory)
		require.NoError(t, os.WriteFile(filler, make([]byte, free), 0o600))
		a, err := g.Append(t.Context(), []store.Series{sample("m", now, 1)})
		require.NoError(t, err)
		assert.Equal(t, map[store.Refusal]int{store.DiskFull: 1}, a.Refused)
		big := map[string]any{"x": make([]int, 4<<10)} // more than the page that the file has already
		require.ErrorContains(t, g.AppendEvents(t.Context(), []*store.Event{{ID: fmt.Sprint(occurrence), Attributes: big}}), "full disk")
		rows := make([]usage.Row, 100)
		for i := range rows {
			rows[i] = rowOfUsage(now, 1000*occurrence+i)
		}
		require.ErrorContains(t, g.AppendUsage(t.Context(), rows), "full disk")
		assert.Len(t, g.rows(t), 100*(occurrence+1), "they can be read all the same")
		assert.Len(t, g.Problems(), 3)

		require.NoError(t, os.Remove(filler))
		g.look()
		g.write(t, sample("m", now.Add(time.Duration(occurrence)*time.Second), 1))
		require.NoError(t, g.AppendEvents(t.Context(), []*store.Event{{ID: fmt.Sprint("after", occurrence)}}))
		for _, p := range g.Problems() {
			assert.False(t, p.Ended.IsZero(), "%s", p.Part)
		}
	}
	once := []string{"samples disk_full", "events disk_full", "usage_rows disk_full"}
	assert.Equal(t, append(once, once...), g.lines(zapcore.ErrorLevel))
	assert.ElementsMatch(t, g.lines(zapcore.ErrorLevel), g.lines(zapcore.InfoLevel))
}
