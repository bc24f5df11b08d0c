// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// rotatedName is what the n-th file is called once it is full: audit.jsonl
// becomes audit-000001.jsonl.
func rotatedName(path string, n int) string {
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s-%06d%s", strings.TrimSuffix(path, ext), n, ext)
}

// rotatedNumber is the n of rotatedName, 0 for other names.
func rotatedNumber(path, candidate string) int {
	ext := filepath.Ext(path)
	digits, ok := strings.CutPrefix(candidate, strings.TrimSuffix(path, ext)+"-")
	if !ok {
		return 0
	}
	if digits, ok = strings.CutSuffix(digits, ext); !ok || len(digits) < 6 {
		return 0
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || rotatedName(path, n) != candidate {
		return 0
	}
	return n
}

// numbered is a rotated file.
type numbered struct {
	path string
	n    int
}

// rotated lists the full files of a log, oldest first.
func rotated(path string) ([]numbered, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var list []numbered
	for _, entry := range entries {
		name := filepath.Join(filepath.Dir(path), entry.Name())
		if n := rotatedNumber(filepath.Clean(path), name); n > 0 {
			list = append(list, numbered{name, n})
		}
	}
	slices.SortFunc(list, func(a, b numbered) int { return cmp.Compare(a.n, b.n) })
	return list, nil
}

// Files lists the files of the log at path that exist, oldest first: the full
// ones and the one that is being written.
func Files(path string) ([]string, error) {
	list, err := rotated(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, f := range list {
		files = append(files, f.path)
	}
	if _, err := os.Lstat(path); err == nil {
		files = append(files, path)
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return files, nil
}

// firstLine reads a file's first line, as far as it is one of ours. What was
// torn before it is passed over.
func firstLine(f io.ReaderAt) (envelope, *fileBody, bool) {
	in := bufio.NewReader(io.NewSectionReader(f, 0, maxLine))
	for {
		line, _, err := readLine(in)
		if err != nil {
			return envelope{}, nil, false
		}
		if e, body, err := parseLine(line); err == nil && e.kind != kindTorn {
			header, ok := body.(*fileBody)
			return e, header, ok
		}
	}
}

// headerOf reads the first line of the file at path.
func headerOf(path string) (envelope, *fileBody, bool) {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return envelope{}, nil, false
	}
	defer f.Close()
	return firstLine(f)
}

// tail is where a file's chain can be continued.
type tail struct {
	seq  uint64
	head digest
	end  int64 // of the last good line; what follows was not written whole
	good bool  // there is a good line
}

// tailWindow is how much of a file's end is read to find its last good line.
// Only a file with more damage than that is read whole.
const tailWindow = 2 * maxLine

// readTail finds the last good line of a file.
func readTail(f io.ReaderAt, size int64) (tail, error) {
	for start := max(0, size-tailWindow); ; start = 0 {
		t, err := scanTail(io.NewSectionReader(f, start, size-start), start)
		if err != nil || t.good || start == 0 {
			return t, err
		}
	}
}

// scanTail reads lines up to the end and returns the last good one.
func scanTail(r io.Reader, offset int64) (tail, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var t tail
	for {
		line, n, err := readLine(in)
		offset += n
		if err == io.EOF {
			return t, nil // what has no line feed is no line
		}
		if err != nil {
			return t, err
		}
		if e, _, err := parseLine(line); err == nil {
			t = tail{seq: e.seq, head: sha256.Sum256(line), end: offset, good: true}
		}
	}
}

// readLine reads one line and returns it without its line feed, and how many
// bytes it took. A line over maxLine is nil. At the end of input it returns
// io.EOF, with n of what came without a line feed.
func readLine(in *bufio.Reader) (line []byte, n int64, err error) {
	tooLong := false
	for {
		part, err := in.ReadSlice('\n')
		n += int64(len(part))
		if n > maxLine {
			tooLong, line = true, nil
		} else {
			line = append(line, part...)
		}
		switch {
		case err == nil && tooLong:
			return nil, n, nil
		case err == nil:
			return line[:len(line)-1], n, nil
		case err != bufio.ErrBufferFull:
			return line, n, err
		}
	}
}
