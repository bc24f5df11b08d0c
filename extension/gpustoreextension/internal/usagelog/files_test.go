// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package usagelog

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unique"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/usage"
)

// What the disk does not take can be read, and is written when it takes it.
func TestADiskThatFails(t *testing.T) {
	directory := t.TempDir()
	l := open(t, directory, nil)
	l.add(rowOfService("a", 0, 1))
	path := filepath.Join(directory, "hours-2026-03-04.log")
	require.NoError(t, os.Rename(path, path+".away"))
	require.NoError(t, os.Mkdir(path, 0o700))
	for range 2 {
		require.Error(t, l.Append(start.Add(3*time.Hour), []usage.Row{rowOfService("a", 1, 1)}))
	}
	l.Retry(start.Add(3 * time.Hour))
	assert.Len(t, l.failed, 3)
	assert.Len(t, l.all(), 2)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Rename(path+".away", path))
	l.Retry(start.Add(3 * time.Hour))
	assert.Len(t, l.failed, 3)
	require.NoError(t, l.Close())
	assert.Equal(t, []usage.Row{rowOfService("a", 0, 1), rowOfService("a", 1, 1)}, open(t, directory, nil).all())
}

// A line that is damaged, or was not finished, costs only itself, and what is written
// later can be read.
func TestDamagedLines(t *testing.T) {
	directory := t.TempDir()
	l := open(t, directory, nil)
	for hour := range 4 {
		l.add(rowOfService("a", hour, 1), rowOfService("b", hour, 1))
	}
	require.NoError(t, l.Close())
	path := filepath.Join(directory, "hours-2026-03-04.log")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	text := bytes.SplitAfter(whole, []byte("\n"))
	require.Len(t, text, 2+8+1)
	for name, tt := range map[string]struct {
		spoil       func()
		rows, lines int
	}{
		"a digit of a row":          {func() { text[3][40] ^= 1 }, 7, 1},
		"a line of zeros":           {func() { copy(text[3], make([]byte, len(text[3])-1)) }, 7, 1},
		"a long line":               {func() { text[3] = append(bytes.Repeat([]byte{'x'}, 3*maxLine), '\n') }, 7, 1},
		"the first key":             {func() { text[0][30] ^= 1 }, 4, 5},
		"the second key":            {func() { text[1][30] ^= 1 }, 4, 5},
		"a last line without end":   {func() { text[9] = text[9][:20] }, 7, 0},
		"half a line more":          {func() { text[10] = []byte("deadbeef r 0 0") }, 8, 0},
		"a row beyond the day":      {func() { text[3] = finish([]byte(blank+"r 24 0 0 1 0 0 0 0 0 0 0 0 0"), 0) }, 7, 1},
		"a row that cannot be true": {func() { text[3] = finish([]byte(blank+"r 1 0 0 1 1 2 0 0 0 0 0 0 0"), 0) }, 7, 1},
		"a number too many":         {func() { text[3] = finish([]byte(blank+"r 1 0 0 1 0 0 0 0 0 0 0 0 0 0"), 0) }, 7, 1},
		"a number that is too long": {func() { text[3] = finish([]byte(blank+"r 1 0 0 1 0 0 0 0 0 0 0 0 99999999999999999999"), 0) }, 7, 1},
	} {
		t.Run(name, func(t *testing.T) {
			text = bytes.SplitAfter(whole, []byte("\n"))
			for i := range text {
				text[i] = slices.Clone(text[i])
			}
			tt.spoil()
			require.NoError(t, os.WriteFile(path, bytes.Join(text, nil), 0o600))
			l := open(t, directory, nil)
			assert.Equal(t, tt.lines, l.damaged)
			assert.Len(t, l.all(), tt.rows)
			l.add(rowOfService("c", 5, 1), rowOfService("a", 5, 1))
			want := l.all()
			assert.Len(t, want, tt.rows+2)
			l.check()
			require.NoError(t, l.Close())
			l = open(t, directory, nil)
			assert.Equal(t, want, l.all())
			assert.Zero(t, l.damaged, "what was damaged is gone when the file is written")
			require.NoError(t, l.Close())
		})
	}
}

func TestFilesOfOthersStay(t *testing.T) {
	directory := t.TempDir()
	names := []string{"hours-2026-3-4.log", "hours-2026-03-04.txt", "days-2026-03-04.log", "notes", "hours-0001-01-01.log"}
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte("x\n"), 0o600))
	}
	l := open(t, directory, nil)
	assert.Empty(t, l.all())
	for _, name := range names {
		assert.FileExists(t, filepath.Join(directory, name))
	}
}

// Whatever is in a file, it is read, and what is written afterwards is read again.
func FuzzOpen(f *testing.F) {
	p := newPage(dayOf(start))
	for hour := range 3 {
		r := rowOfService("a", hour, 1)
		p.put(cell{slot: uint8(hour), key: p.number(unique.Make(r.Key))}, rowOf(&r))
	}
	text, err := p.text(p.sorted(), 0)
	require.NoError(f, err)
	f.Add(text)
	f.Add(append(text, text[:40]...))
	f.Fuzz(func(t *testing.T, text []byte) {
		directory := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(directory, "hours-2026-03-04.log"), text, 0o600))
		l := open(t, directory, nil)
		l.add(rowOfService("fuzz", 23, 7))
		want := l.all()
		for _, r := range want {
			require.NoError(t, r.Validate())
		}
		require.NoError(t, l.Close())
		l = open(t, directory, nil)
		assert.ElementsMatch(t, want, l.all())
		assert.Zero(t, l.damaged)
	})
}
