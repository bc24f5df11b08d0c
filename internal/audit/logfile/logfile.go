// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package logfile has the files of an audit log: their names, their order, where each
// begins and ends, and how one is opened.
package logfile // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/durable/lines"
)

// names are those of the full files: audit.jsonl becomes audit-000001.jsonl.
func names(path string) lines.Names {
	ext := filepath.Ext(path)
	return lines.Names{Stem: strings.TrimSuffix(path, ext), Ext: ext, Digits: 6}
}

// RotatedName is what the n-th file is called once it is full.
func RotatedName(path string, n int) string { return names(path).Path(n) }

// RotatedBase is the path that RotatedName made the name from, and its number;
// 0 for a file that is not full.
func RotatedBase(path string) (string, int) {
	ext := filepath.Ext(path)
	stem := strings.TrimSuffix(path, ext)
	if i := strings.LastIndexByte(stem, '-'); i > 0 {
		base := stem[:i] + ext
		if n := names(base).Number(path); n > 0 {
			return base, n
		}
	}
	return path, 0
}

// Rotated lists the full files of a log, oldest first.
func Rotated(path string) ([]lines.Numbered, error) { return names(filepath.Clean(path)).List() }

// Files lists the files of the log at path that exist, oldest first: the full
// ones and the one that is being written.
func Files(path string) ([]string, error) {
	list, err := Rotated(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, f := range list {
		files = append(files, f.Path)
	}
	if _, err := os.Lstat(path); err == nil {
		files = append(files, path)
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return files, nil
}

// FirstLine reads a file's first line, as far as it is one of ours. What was
// torn before it is passed over.
func FirstLine(f io.ReaderAt) (codec.Envelope, *codec.FileBody, bool) {
	in := bufio.NewReader(io.NewSectionReader(f, 0, codec.MaxLine))
	for {
		line, _, err := codec.Read(in)
		if err != nil {
			return codec.Envelope{}, nil, false
		}
		if e, body, err := codec.Parse(line); err == nil && e.Kind != codec.KindTorn {
			header, ok := body.(*codec.FileBody)
			return e, header, ok
		}
	}
}

// HeaderOf reads the first line of the file at path.
func HeaderOf(path string) (codec.Envelope, *codec.FileBody, bool) {
	f, err := Open(path, os.O_RDONLY)
	if err != nil {
		return codec.Envelope{}, nil, false
	}
	defer f.Close()
	return FirstLine(f)
}

// Tail is where a file's chain can be continued.
type Tail struct {
	Seq  uint64
	Head codec.Digest
	End  int64 // of the last good line; what follows was not written whole
	Good bool  // there is a good line
}

// tailWindow is how much of a file's end is read to find its last good line.
// Only a file with more damage than that is read whole.
const tailWindow = 2 * codec.MaxLine

// ReadTail finds the last good line of a file.
func ReadTail(f io.ReaderAt, size int64) (Tail, error) {
	for start := max(0, size-tailWindow); ; start = 0 {
		t, err := scanTail(io.NewSectionReader(f, start, size-start), start)
		if err != nil || t.Good || start == 0 {
			return t, err
		}
	}
}

// scanTail reads lines up to the end and returns the last good one.
func scanTail(r io.Reader, offset int64) (Tail, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var t Tail
	for {
		line, n, err := codec.Read(in)
		offset += n
		if err == io.EOF {
			return t, nil // what has no line feed is no line
		}
		if err != nil {
			return t, err
		}
		if e, _, err := codec.Parse(line); err == nil {
			t = Tail{Seq: e.Seq, Head: sha256.Sum256(line), End: offset, Good: true}
		}
	}
}
