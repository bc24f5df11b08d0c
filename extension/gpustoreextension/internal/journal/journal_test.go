// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

type entry struct {
	N     uint64  `json:"n"`
	ID    string  `json:"id"`
	Text  string  `json:"text,omitempty"`
	Share float64 `json:"share,omitempty"`
}

// world is a journal and its results.
type world struct {
	*Journal[entry]
	mu      sync.Mutex
	failed  int
	written int
	damaged int
}

func open(t *testing.T, directory string, change func(*Options[entry])) *world {
	t.Helper()
	w := &world{}
	o := Options[entry]{
		Directory: directory, Name: "events", MaxEntries: 100, MaxBytes: 1 << 20,
		ID:       func(e *entry) string { return e.ID },
		Sequence: func(e *entry) *uint64 { return &e.N },
		Failed: func(n int, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.failed += n
		},
		Written: func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.written++
		},
		Damaged: func(n int) { w.damaged = n },
	}
	if change != nil {
		change(&o)
	}
	var err error
	w.Journal, err = Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

func (w *world) put(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, w.AppendAndWait(t.Context(), &entry{ID: id}))
	}
}

func (w *world) ids() []string {
	var out []string
	for _, e := range w.Newest(0, 1000, nil) {
		out = append(out, e.ID)
	}
	return out
}

func numbered(from, until int) []string {
	var out []string
	for i := from; i < until; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

func files(t *testing.T, directory string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(directory, "*"))
	require.NoError(t, err)
	return found
}

func TestEntriesOutliveTheProcess(t *testing.T) {
	directory := t.TempDir()
	w := open(t, directory, nil)
	assert.Empty(t, w.ids())
	w.put(t, "a", "b")
	require.NoError(t, w.Append(&entry{ID: "c"}, &entry{ID: "d", Text: "line\nfeed"}))
	assert.Equal(t, []string{"d", "c", "b", "a"}, w.ids(), "what was appended can be read at once")
	require.NoError(t, w.Close())
	assert.ErrorIs(t, w.Append(&entry{ID: "e"}), ErrClosed)
	assert.Len(t, w.ids(), 4, "a closed journal can be read")

	w = open(t, directory, nil)
	assert.Equal(t, []string{"d", "c", "b", "a"}, w.ids())
	w.put(t, "e")
	assert.EqualValues(t, 5, w.Newest(0, 1, nil)[0].N, "numbers go on")
	assert.Equal(t, "line\nfeed", w.Newest(5, 1, nil)[0].Text)
	assert.Zero(t, w.damaged)
}

func TestPages(t *testing.T) {
	w := open(t, t.TempDir(), nil)
	w.put(t, numbered(0, 10)...)
	even := func(e *entry) bool { return e.N%2 == 0 }
	page := w.Newest(0, 3, even)
	require.Len(t, page, 3)
	assert.Equal(t, []uint64{10, 8, 6}, []uint64{page[0].N, page[1].N, page[2].N})
	page = w.Newest(6, 3, even)
	require.Len(t, page, 2)
	assert.Equal(t, []uint64{4, 2}, []uint64{page[0].N, page[1].N})
	assert.Empty(t, w.Newest(1, 3, nil))
}

func TestWhatIsKnownIsNotKeptTwice(t *testing.T) {
	directory := t.TempDir()
	w := open(t, directory, nil)
	w.put(t, "a", "b", "a")
	require.NoError(t, w.Close())
	w = open(t, directory, nil)
	w.put(t, "b", "c")
	assert.Equal(t, []string{"c", "b", "a"}, w.ids())
}

func TestTheOldestGo(t *testing.T) {
	directory := t.TempDir()
	w := open(t, directory, func(o *Options[entry]) { o.MaxEntries = 8 })
	w.put(t, numbered(0, 50)...)
	want := numbered(42, 50)
	slices.Reverse(want)
	assert.Equal(t, want, w.ids())
	assert.LessOrEqual(t, len(files(t, directory)), keptSegments)
	require.NoError(t, w.Close())
	w = open(t, directory, func(o *Options[entry]) { o.MaxEntries = 8 })
	assert.Equal(t, want, w.ids(), "as many are on disk")
	w.put(t, "0")
	assert.Equal(t, "0", w.ids()[0], "what has gone is no longer known")
}

// What stands is kept beyond the bound until an entry with its key ends it, in memory and on disk.
func TestWhatStandsStays(t *testing.T) {
	directory := t.TempDir()
	small := func(o *Options[entry]) {
		o.MaxEntries = 8
		o.Standing = func(e *entry) (string, bool) { return strings.TrimRight(e.Text, "+-"), strings.HasSuffix(e.Text, "+") }
	}
	w := open(t, directory, small)
	again := func() {
		t.Helper()
		before := w.ids()
		require.NoError(t, w.Close())
		w = open(t, directory, small)
		assert.Equal(t, before, w.ids(), "as many are on disk")
	}
	put := func(id, text string) {
		t.Helper()
		require.NoError(t, w.AppendAndWait(t.Context(), &entry{ID: id, Text: text}))
	}
	old := func() []string { return w.ids()[8:] }
	for _, key := range []string{"a", "b", "c"} {
		put(key+" begins", key+"+")
	}
	put("c ends", "c-")
	w.put(t, numbered(0, 50)...)
	assert.Equal(t, []string{"b begins", "a begins"}, old(), "those that stand, in their order")
	assert.EqualValues(t, 1, w.Newest(3, 2, nil)[1].N, "a page has them")
	again()
	put("a begins", "a+")
	assert.Equal(t, []string{"b begins", "a begins"}, old(), "it is known")

	put("a ends", "a-")
	assert.Equal(t, []string{"b begins"}, old())
	again()
	w.put(t, numbered(50, 100)...)
	assert.Equal(t, []string{"b begins"}, old())
	put("b begins again", "b+")
	assert.Empty(t, old(), "the newest of a key alone stands")
	w.put(t, numbered(100, 150)...)
	assert.Equal(t, []string{"b begins again"}, old())
	again()
	put("b ends", "b-")
	w.put(t, numbered(150, 200)...)
	assert.Empty(t, old())
	again()
	assert.LessOrEqual(t, len(files(t, directory)), keptSegments)

	for _, id := range numbered(0, 50) {
		put("many "+id, id+"+")
	}
	assert.Equal(t, 10, w.Len(), "a quarter more at most")
	again()
}

func TestBytesAreBounded(t *testing.T) {
	directory := t.TempDir()
	w := open(t, directory, func(o *Options[entry]) { o.MaxBytes = 10_000 })
	for i := range 50 {
		require.NoError(t, w.AppendAndWait(t.Context(), &entry{ID: fmt.Sprint(i), Text: strings.Repeat("x", 1000)}))
	}
	assert.Equal(t, 9, w.Len())
	total := int64(0)
	for _, f := range files(t, directory) {
		info, err := os.Stat(f)
		require.NoError(t, err)
		total += info.Size()
	}
	assert.Less(t, total, int64(20_000))
	err := w.AppendAndWait(t.Context(), &entry{ID: "huge", Text: strings.Repeat("x", 2<<20)}, &entry{ID: "small"})
	assert.ErrorContains(t, err, "longer than a line")
	assert.Equal(t, "small", w.ids()[0], "its neighbour is kept")
}

func TestWhatJSONCannotReportCostsNoOneElse(t *testing.T) {
	w := open(t, t.TempDir(), nil)
	assert.Error(t, w.AppendAndWait(t.Context(), &entry{ID: "a", Share: math.NaN()}, &entry{ID: "b"}))
	assert.Equal(t, []string{"b"}, w.ids())
}

// However a file ends, what was finished is read, and what comes is appended
// to it.
func TestTornAndDamagedFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		tail    string
		damaged int
	}{
		"torn":          {`{"n":4,"id":"`, 0},
		"torn at once":  {`{`, 0},
		"zeros":         {strings.Repeat("\x00", 100), 0},
		"no JSON":       {"garbage\n", 1},
		"zeros, line":   {strings.Repeat("\x00", 100) + "\n", 1},
		"another thing": {"[1,2]\n\"x\"\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			w := open(t, directory, nil)
			w.put(t, "a", "b", "c")
			require.NoError(t, w.Close())
			path := files(t, directory)[0]
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, append(text, tc.tail...), 0o600))

			w = open(t, directory, nil)
			assert.Equal(t, tc.damaged, w.damaged)
			assert.Equal(t, []string{"c", "b", "a"}, w.ids())
			w.put(t, "d")
			require.NoError(t, w.Close())
			w = open(t, directory, nil)
			assert.Equal(t, []string{"d", "c", "b", "a"}, w.ids())
		})
	}
}

// A write that fails is reported, counted, and leaves nothing half written. What
// it was about can be read, and is written as soon as the disk takes it.
func TestAWriteThatFails(t *testing.T) {
	directory := t.TempDir()
	w := open(t, directory, nil)
	w.put(t, "a")
	good := w.files.last.File
	broken, err := os.Open(good.Name()) // for reading only: what is written cannot be cut off
	require.NoError(t, err)
	w.files.last.File = broken
	w.files.last.Through = func(_ *os.File, text []byte) (int, error) { return good.Write(text[:len(text)/2]) }
	assert.Error(t, w.AppendAndWait(t.Context(), &entry{ID: "b"}, &entry{ID: "c"}))
	assert.Equal(t, 2, w.failed)
	assert.Error(t, w.AppendAndWait(t.Context(), &entry{ID: "b"}), "it is known, and still not on disk")
	assert.Equal(t, 2, w.failed)
	assert.Equal(t, 1, w.written)
	assert.Equal(t, []string{"c", "b", "a"}, w.ids())

	require.NoError(t, broken.Close())
	text, err := os.ReadFile(good.Name())
	require.NoError(t, err)
	require.Greater(t, int64(len(text)), w.files.last.Size, "half of it is there")
	w.files.last.File, w.files.last.Through = good, nil
	w.Retry()
	w.put(t, "d")
	assert.LessOrEqual(t, 2, w.written)
	require.NoError(t, w.Close())
	w = open(t, directory, nil)
	assert.Equal(t, []string{"d", "c", "b", "a"}, w.ids())
	assert.Zero(t, w.damaged)
}

// What waits for a disk that takes nothing is bounded, and the newest stay.
func TestABacklogIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		entries int
		bytes   int64
		want    []string
	}{
		"everything":   {10, 100, []string{"aaa", "bbb", "ccc"}},
		"some entries": {2, 100, []string{"bbb", "ccc"}},
		"some bytes":   {10, 5, []string{"ccc"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := &Journal[entry]{options: Options[entry]{MaxEntries: test.entries, MaxBytes: test.bytes}}
			var kept []string
			for _, line := range j.bounded([][]byte{[]byte("aaa"), []byte("bbb"), []byte("ccc")}) {
				kept = append(kept, string(line))
			}
			assert.Equal(t, test.want, kept)
		})
	}
}

// What the disk does not keep up with is refused, can be read all the same, and
// is written with what is written next.
func TestADiskThatDoesNotKeepUp(t *testing.T) {
	directory := t.TempDir()
	files, err := openSegments(directory, "events", 100, 1<<20)
	require.NoError(t, err)
	j := &Journal[entry]{
		options: Options[entry]{
			MaxEntries: 1000, MaxBytes: 1 << 20, ID: func(e *entry) string { return e.ID }, Sequence: func(e *entry) *uint64 { return &e.N },
			Written: func() {},
		},
		known: map[string]bool{}, batches: make(chan batch, 1), files: files,
	}
	require.NoError(t, j.Append(&entry{ID: "a"}))
	assert.ErrorIs(t, j.Append(&entry{ID: "b"}), ErrBusy)
	assert.ErrorIs(t, j.Append(&entry{ID: "b"}), ErrBusy, "it is known, and still not on disk")
	assert.Equal(t, 2, j.Len(), "it can be read all the same")
	first := <-j.batches
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, j.AppendAndWait(ctx, &entry{ID: "c"}), context.Canceled)
	<-j.batches
	j.batches <- first
	j.writer.Go(j.write)
	require.NoError(t, j.Close())
	assert.Equal(t, []string{"b", "a"}, open(t, directory, nil).ids())
}

func TestOpenReportsWhatItCannot(t *testing.T) {
	_, err := Open(Options[entry]{Directory: filepath.Join(t.TempDir(), "none"), Name: "events", MaxEntries: 1, MaxBytes: 1})
	assert.True(t, errors.Is(err, os.ErrNotExist))
}

func TestManyAtOnce(t *testing.T) {
	directory := t.TempDir()
	w := open(t, directory, func(o *Options[entry]) { o.MaxEntries = 10_000 })
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 20 {
				assert.NoError(t, w.AppendAndWait(t.Context(), &entry{ID: fmt.Sprint(i, "-", k)}))
				w.Newest(0, 10, nil)
			}
		})
	}
	wg.Wait()
	require.NoError(t, w.Close())
	w = open(t, directory, nil)
	assert.Len(t, w.ids(), 100)
	assert.EqualValues(t, 160, w.last)
}

// Whatever is in a file, opening it does not fail, and what is appended then is
// there at the next opening.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("{\"n\":1,\"id\":\"a\"}\n{\"n\":2"))
	f.Add([]byte("\n\n\n"))
	f.Add([]byte("{\"n\":18446744073709551615,\"id\":\"a\"}\n"))
	f.Add([]byte("null\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		directory := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(directory, "events-00000001.jsonl"), text, 0o600))
		w := open(t, directory, nil)
		before := w.ids()
		w.put(t, "of this test")
		require.NoError(t, w.Close())
		w = open(t, directory, nil)
		assert.Contains(t, w.ids(), "of this test")
		assert.GreaterOrEqual(t, len(w.ids()), min(len(before), 99))
	})
}
