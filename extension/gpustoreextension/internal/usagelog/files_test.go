// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package usagelog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unique"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/durable/lines"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
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

// Days are added up in their order: while the file of a month cannot be written, no later day is
// added up, and a restart deletes no hours that are in no month.
func TestADayThatCannotBeAddedUp(t *testing.T) {
	directory := t.TempDir()
	change := func(o *Options) { o.Hours = 3 * 24 * time.Hour }
	l := open(t, directory, change)
	march31, april1 := 27*24, 28*24
	l.add(rowOfService("a", march31-24, 1))
	l.add(rowOfService("a", march31, 1), rowOfService("a", march31+5, 1))
	l.add(rowOfService("a", april1, 1))
	free := full(t, directory, "days-2026-03.log")
	l.add(rowOfService("a", april1+4*24, 1)) // both days are due
	l.add(rowOfService("a", april1+5*24, 1))
	assert.NotEmpty(t, l.failed)
	want := sums(l.all())
	require.NoError(t, l.Close())
	free()
	l = open(t, directory, change)
	assert.Equal(t, want, sums(l.all()))
	l.Retry(start.Add(time.Duration(april1+5*24+2) * time.Hour))
	assert.Equal(t, want, sums(l.all()), "after the days are added up")
	assert.NoFileExists(t, filepath.Join(directory, "hours-2026-03-31.log"))
}

// Logs of earlier versions may have hours in front of a day that was added up.
func TestHoursInFrontOfADayAreKept(t *testing.T) {
	directory := t.TempDir()
	change := func(o *Options) { o.Hours = 3 * 24 * time.Hour }
	l := open(t, directory, change)
	l.add(rowOfService("a", 24, 1))
	l.add(rowOfService("a", 6*24, 1)) // the second day is added up
	require.NoError(t, l.Close())
	p := newPage(dayOf(start))
	r := rowOfService("a", 3, 1)
	p.put(cell{slot: 3, key: p.number(unique.Make(r.Key))}, rowOf(&r))
	text, err := p.text(p.sorted(), 0)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(directory, "hours-2026-03-04.log"), text, 0o600))
	l = open(t, directory, change)
	want := sums(l.all())
	assert.Len(t, l.all(), 3)
	l.Retry(start.Add(6*24*time.Hour + 2*time.Hour))
	assert.Equal(t, want, sums(l.all()))
	assert.NoFileExists(t, filepath.Join(directory, "hours-2026-03-04.log"))
}

// On a disk that is full for some files at a time, with limits that are reached and restarts at
// any time, every row that was taken stays.
func TestADiskThatFills(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 6))
		directory := t.TempDir()
		change := func(o *Options) {
			o.Hours = 3 * 24 * time.Hour
			if seed%2 == 0 {
				o.MaxBytes = 5_000 // of which hours need more than months
			}
		}
		l := open(t, directory, change)
		var taken []usage.Row
		free := func() {}
		for hour := 22 * 24; hour < 40*24; hour += 1 + random.IntN(30) {
			row := rowOfService(fmt.Sprint(random.IntN(2)), hour, 1)
			refused := l.refused[store.StorageLimit]
			_ = l.Append(row.Hour.Add(90*time.Minute), []usage.Row{row}) // Retry writes what fails
			if l.refused[store.StorageLimit] == refused {
				taken = append(taken, row)
			}
			require.Equal(t, sums(taken), sums(l.all()), "seed %d, hour %d", seed, hour)
			if random.IntN(6) > 0 {
				continue
			}
			free()
			free = func() {}
			if random.IntN(2) == 0 {
				require.NoError(t, l.Close())
				l = open(t, directory, change)
				require.Equal(t, sums(taken), sums(l.all()), "seed %d, restart at %d", seed, hour)
			} else if month := "days-2026-03.log"; random.IntN(2) == 0 {
				free = full(t, directory, month, "hours-"+row.Hour.Add(24*time.Hour).Format(dayLayout)+extension)
			} else {
				free = full(t, directory, month)
			}
		}
	}
}

// full makes writes of files fail until free is called.
func full(t *testing.T, directory string, files ...string) (free func()) {
	t.Helper()
	var made []string
	for _, name := range files {
		path := filepath.Join(directory, name)
		if name[0] == daysPrefix[0] {
			path += lines.Temporary // months are written whole
		}
		if os.Mkdir(path, 0o700) == nil {
			require.NoError(t, os.WriteFile(filepath.Join(path, "x"), nil, 0o600))
			made = append(made, path)
		}
	}
	return func() {
		for _, path := range made {
			require.NoError(t, os.RemoveAll(path))
		}
	}
}

// A query has the days that it overlaps: the report decides whether a part of one counts.
func TestAPartOfADay(t *testing.T) {
	l := open(t, t.TempDir(), func(o *Options) { o.Hours = 3 * 24 * time.Hour })
	for day := range 3 {
		l.add(rowOfService(fmt.Sprint(day), 24*day+18, 1))
	}
	l.add(rowOfService("x", 24*8, 1)) // the others are days now
	for _, tt := range []struct {
		from, to time.Duration
		want     []string
	}{
		{12 * time.Hour, 36 * time.Hour, []string{"0", "1"}}, {24 * time.Hour, 48 * time.Hour, []string{"1"}}, {25 * time.Hour, 26 * time.Hour, []string{"1"}},
		{24*time.Hour - 1, 24*time.Hour + 1, []string{"0", "1"}}, {191 * time.Hour, 193 * time.Hour, []string{"x"}}, {193 * time.Hour, 194 * time.Hour, nil},
	} {
		var got []string
		require.NoError(t, l.Query(t.Context(), store.UsageQuery{From: start.Add(tt.from), To: start.Add(tt.to)}, func(r *usage.Row) { got = append(got, r.Service) }))
		assert.Equal(t, tt.want, got, tt)
	}
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
