// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package lines has numbered files of lines that are only appended to: what is written is
// there as a whole, or not at all.
package lines // import "github.com/otelcol-gpu/otelcol-gpu/internal/durable/lines"

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// File is a file that one goroutine appends to, opened with os.O_APPEND.
type File struct {
	*os.File
	Size int64 // in bytes, of what is whole; what is behind it is a write that failed
	// Through writes to the file; nil is os.File's Write.
	Through func(*os.File, []byte) (int, error)

	torn bool // something is behind Size
}

// Append writes text with one write and, where sync is set, returns when it is on disk.
// After an error nothing of text is there: where it cannot be cut off at once, the next
// Append or Close does that.
func (f *File) Append(text []byte, sync bool) error {
	if err := f.cut(); err != nil {
		return fmt.Errorf("undo an incomplete write: %w", err)
	}
	write := f.Through
	if write == nil {
		write = (*os.File).Write
	}
	n, err := write(f.File, text)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err != nil {
		f.torn = n > 0
		_ = f.cut()
		return err
	}
	f.Size += int64(n)
	return nil
}

// cut removes what a failed write left.
func (f *File) cut() error {
	if !f.torn {
		return nil
	}
	err := f.Truncate(f.Size)
	f.torn = err != nil
	return err
}

// Close closes the file without what a failed write left.
func (f *File) Close() error { return errors.Join(f.cut(), f.File.Close()) }

// Read reads one line and returns it without its line feed, and how many bytes it took.
// A line of more than limit bytes, line feed included, is nil. At the end of input it
// returns io.EOF, with n of what came without a line feed.
func Read(in *bufio.Reader, limit int64) (line []byte, n int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		n += int64(len(part))
		if n > limit {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case err == nil && n > limit:
			return nil, n, nil
		case err == nil:
			return line[:len(line)-1], n, nil
		case err != bufio.ErrBufferFull:
			return line, n, err
		}
	}
}

// Names are those of numbered files, such as audit-000001.jsonl with six digits.
type Names struct {
	Stem, Ext string
	Digits    int // at least
}

// Numbered is a file with a number, from 1.
type Numbered struct {
	Path string
	N    int
}

// Path is the name of the n-th file.
func (s Names) Path(n int) string { return fmt.Sprintf("%s-%0*d%s", s.Stem, s.Digits, n, s.Ext) }

// Number is the n of Path, 0 for other names.
func (s Names) Number(path string) int {
	digits, _ := strings.CutPrefix(path, s.Stem+"-")
	n, err := strconv.Atoi(strings.TrimSuffix(digits, s.Ext))
	if err != nil || n < 1 || s.Path(n) != path {
		return 0
	}
	return n
}

// List returns the files that exist in the order of their numbers.
func (s Names) List() ([]Numbered, error) {
	folder := filepath.Dir(s.Stem)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var list []Numbered
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if n := s.Number(path); n > 0 {
			list = append(list, Numbered{path, n})
		}
	}
	slices.SortFunc(list, func(a, b Numbered) int { return cmp.Compare(a.N, b.N) })
	return list, nil
}

// Temporary ends the names of files that Replace has not finished.
const Temporary = ".tmp"

// Replace makes text the content of a file. Whatever happens, the file has either that or
// what it had before; after an error the latter.
func Replace(path string, text []byte, permissions os.FileMode) error {
	temporary := path + Temporary
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, permissions)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder makes new and removed names in a folder outlive a power cut. Windows cannot.
func SyncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
