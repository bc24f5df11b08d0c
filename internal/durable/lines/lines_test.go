// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// After an error nothing of the text is there, also where a failed write cannot be cut off
// at once.
func TestAnAppendIsWholeOrNotThere(t *testing.T) {
	for name, tt := range map[string]struct {
		takes   int   // bytes of the text that reach the file
		err     error // of the write
		stuck   bool  // nor can the file be cut
		closed  bool  // before the next append
		want    error
		between string // what is in the file after the failure
	}{
		"nothing is taken":                  {err: syscall.ENOSPC, want: syscall.ENOSPC, between: "a\n"},
		"half is taken":                     {takes: 2, err: syscall.ENOSPC, want: syscall.ENOSPC, between: "a\n"},
		"all but the error":                 {takes: 4, err: syscall.EIO, want: syscall.EIO, between: "a\n"},
		"short without an error":            {takes: 2, want: io.ErrShortWrite, between: "a\n"},
		"half, which stays":                 {takes: 2, err: syscall.EIO, stuck: true, want: syscall.EIO, between: "a\nbb"},
		"half, which stays until it closes": {takes: 2, err: syscall.EIO, stuck: true, closed: true, want: syscall.EIO, between: "a\nbb"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.jsonl")
			content := func() string {
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				return string(text)
			}
			good, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
			require.NoError(t, err)
			readOnly, err := os.Open(path)
			require.NoError(t, err)
			defer readOnly.Close()
			f := &File{File: good}
			require.NoError(t, f.Append([]byte("a\n"), true))

			f.Through = func(_ *os.File, text []byte) (int, error) {
				n, err := good.Write(text[:tt.takes])
				require.NoError(t, err)
				return n, tt.err
			}
			if tt.stuck {
				f.File = readOnly
			}
			require.ErrorIs(t, f.Append([]byte("bbb\n"), true), tt.want)
			assert.Equal(t, tt.between, content())
			if tt.stuck {
				require.ErrorContains(t, f.Append([]byte("bbb\n"), true), "undo an incomplete write")
				assert.Equal(t, tt.between, content(), "nothing is written behind it")
			}
			f.File, f.Through = good, nil
			if !tt.closed {
				require.NoError(t, f.Append([]byte("c\n"), false))
				assert.Equal(t, "a\nc\n", content())
				assert.EqualValues(t, 4, f.Size)
			}
			require.NoError(t, f.Close())
			assert.NotContains(t, content(), "b")
		})
	}
}

// What is written and cannot be synced is not there either.
func TestAnAppendThatIsNotSynced(t *testing.T) {
	in, out, err := os.Pipe() // which cannot be synced
	require.NoError(t, err)
	defer in.Close()
	f := &File{File: out}
	require.NoError(t, f.Append([]byte("a\n"), false))
	require.ErrorIs(t, f.Append([]byte("b\n"), true), syscall.EINVAL)
	assert.EqualValues(t, 2, f.Size)
	require.ErrorContains(t, f.Append([]byte("c\n"), false), "undo an incomplete write")
	require.Error(t, f.Close())
}

func TestRead(t *testing.T) {
	long := strings.Repeat("x", 30)
	in := bufio.NewReaderSize(strings.NewReader("a\n\n"+long+"\n"+long[1:]+"\nrest"), 16)
	for _, want := range []struct {
		line string
		n    int64
		err  error
	}{{"a", 2, nil}, {"", 1, nil}, {"", 31, nil}, {long[1:], 30, nil}, {"rest", 4, io.EOF}, {"", 0, io.EOF}} {
		line, n, err := Read(in, 30)
		assert.Equal(t, want.line, string(line))
		assert.Equal(t, want.n, n)
		assert.Equal(t, want.err, err)
	}
}

func TestNames(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a[b]*") // no pattern
	require.NoError(t, os.Mkdir(folder, 0o700))
	names := Names{Stem: filepath.Join(folder, "audit"), Ext: ".jsonl", Digits: 6}
	for name, n := range map[string]int{
		"audit-000007.jsonl": 7, "audit-000010.jsonl": 10, "audit-1234567.jsonl": 1234567,
		"audit.jsonl": 0, "audit-7.jsonl": 0, "audit-0000007.jsonl": 0, "audit-000000.jsonl": 0, "audit-00000x.jsonl": 0,
		"audit-+00007.jsonl": 0, "audit--00007.jsonl": 0, "audit-000007.json": 0, "xaudit-000007.jsonl": 0, "audit-000007": 0, "audit-99999999999999999999.jsonl": 0,
	} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		assert.Equal(t, n, names.Number(path), name)
	}
	list, err := names.List()
	require.NoError(t, err)
	require.Equal(t, []Numbered{{names.Path(7), 7}, {names.Path(10), 10}, {names.Path(1234567), 1234567}}, list)
	_, err = Names{Stem: filepath.Join(folder, "none", "audit")}.List()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, SyncFolder(folder))
	require.ErrorIs(t, SyncFolder(filepath.Join(folder, "none")), os.ErrNotExist)
}

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	for _, want := range []string{"one\n", "", "another\n"} {
		require.NoError(t, Replace(path, []byte(want), 0o640))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
	folder := filepath.Join(filepath.Dir(path), "folder")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "full"), 0o700))
	require.Error(t, Replace(folder, []byte("x"), 0o640), "a folder that is not empty stays")
	require.NoFileExists(t, folder+Temporary)
}
