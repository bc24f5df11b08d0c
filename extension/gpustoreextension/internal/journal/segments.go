// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package journal // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/journal"

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// keptSegments is how many files there are: four full ones hold what is to be
// kept, the fifth is being filled.
const keptSegments = 5

// segments are numbered files, of which the last is appended to. One goroutine
// uses them.
type segments struct {
	directory, name string
	maxLines        int
	maxBytes        int64
	standing        func() ([]byte, error) // the lines of what outlives its file

	numbers []uint64 // sorted
	last    *os.File
	lines   int   // of the last
	size    int64 // of the last; what is behind it in the file is a failed write
	dirty   bool
}

func openSegments(directory, name string, maxLines int, maxBytes int64) (*segments, error) {
	s := &segments{directory: directory, name: name, maxLines: maxLines, maxBytes: maxBytes}
	paths, err := filepath.Glob(filepath.Join(directory, name+"-*.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), name+"-"), ".jsonl")
		if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 && s.path(n) == path {
			s.numbers = append(s.numbers, n)
		}
	}
	slices.Sort(s.numbers)
	if len(s.numbers) == 0 {
		s.numbers = []uint64{1}
	}
	return s, s.open()
}

func (s *segments) path(number uint64) string {
	return filepath.Join(s.directory, fmt.Sprintf("%s-%08d.jsonl", s.name, number))
}

// open opens the file with the last number.
func (s *segments) open() error {
	file, err := os.OpenFile(s.path(s.numbers[len(s.numbers)-1]), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	s.last, s.lines, s.size = file, 0, 0
	return nil
}

// read passes all finished lines, oldest first, and cuts off what follows the
// last finished one. It is called once, before anything is appended.
func (s *segments) read(each func([]byte)) error {
	if err := s.readStanding(each); err != nil {
		return err
	}
	for _, number := range s.numbers[:len(s.numbers)-1] {
		text, err := readBounded(s.path(number), s.maxBytes)
		if err != nil {
			return err
		}
		passLines(text, each)
	}
	text, err := readBounded(s.last.Name(), s.maxBytes)
	if err != nil {
		return err
	}
	s.lines, s.size = passLines(text, each)
	return s.last.Truncate(s.size)
}

// readBounded reads a file that should not be much longer than size.
func readBounded(path string, size int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, 2*size+waiting*maxLine))
	return text, errors.Join(err, file.Close())
}

// passLines returns how many finished lines there are, and their size.
func passLines(text []byte, each func([]byte)) (lines int, size int64) {
	for {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return lines, size
		}
		each(text[:end])
		text = text[end+1:]
		lines++
		size += int64(end) + 1
	}
}

// append writes lines and returns when they are on disk. After an error nothing
// of them is there.
func (s *segments) append(lines [][]byte) error {
	if len(lines) == 0 {
		return nil
	}
	if s.lines >= s.maxLines || s.size >= s.maxBytes {
		if err := s.next(); err != nil {
			return err
		}
	}
	text := bytes.Join(lines, nil)
	if s.dirty {
		if err := s.last.Truncate(s.size); err != nil {
			return err
		}
	}
	s.dirty = true
	if _, err := s.last.WriteAt(text, s.size); err != nil {
		return err
	}
	if err := s.last.Sync(); err != nil {
		return err
	}
	s.dirty = false
	s.lines += len(lines)
	s.size += int64(len(text))
	return nil
}

// next begins a file and deletes the oldest.
func (s *segments) next() error {
	if err := s.saveStanding(); err != nil {
		return err
	}
	full := s.last
	s.numbers = append(s.numbers, s.numbers[len(s.numbers)-1]+1)
	lines, size := s.lines, s.size
	if err := s.open(); err != nil {
		s.numbers = s.numbers[:len(s.numbers)-1]
		s.last, s.lines, s.size = full, lines, size
		return err
	}
	errs := []error{full.Close()}
	s.dirty = false
	for len(s.numbers) > keptSegments {
		if err := os.Remove(s.path(s.numbers[0])); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		s.numbers = s.numbers[1:]
	}
	return errors.Join(errs...)
}

func (s *segments) close() error {
	var err error
	if s.dirty {
		err = s.last.Truncate(s.size)
	}
	return errors.Join(err, s.last.Close())
}
