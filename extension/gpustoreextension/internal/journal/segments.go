// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package journal // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/journal"

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/otelcol-gpu/otelcol-gpu/internal/durable/lines"
)

// keptSegments is how many files there are: four full ones hold what is to be
// kept, the fifth is being filled.
const keptSegments = 5

// segments are numbered files, of which the last is appended to. One goroutine
// uses them.
type segments struct {
	names    lines.Names
	maxLines int
	maxBytes int64
	standing func() ([]byte, error) // the lines of what outlives its file

	files []lines.Numbered // oldest first
	last  *lines.File
	lines int // of the last
}

func openSegments(directory, name string, maxLines int, maxBytes int64) (*segments, error) {
	s := &segments{names: lines.Names{Stem: filepath.Join(directory, name), Ext: ".jsonl", Digits: 8}, maxLines: maxLines, maxBytes: maxBytes}
	found, err := s.names.List()
	if err != nil {
		return nil, err
	}
	number := 1
	if last := len(found) - 1; last >= 0 {
		s.files, number = found[:last], found[last].N
	}
	return s, s.open(number)
}

// open opens the last file, and makes its name outlive a power cut.
func (s *segments) open(number int) error {
	file, err := os.OpenFile(s.names.Path(number), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	if err := lines.SyncFolder(filepath.Dir(file.Name())); err != nil {
		return errors.Join(err, file.Close())
	}
	s.last, s.lines = &lines.File{File: file}, 0
	s.files = append(s.files, lines.Numbered{Path: file.Name(), N: number})
	return nil
}

// read passes all finished lines, oldest first, and cuts off what follows the
// last finished one. It is called once, before anything is appended.
func (s *segments) read(each func([]byte)) error {
	if _, _, err := s.readFile(s.standingPath(), each); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, f := range s.files[:len(s.files)-1] {
		if _, _, err := s.readFile(f.Path, each); err != nil {
			return err
		}
	}
	var err error
	if s.lines, s.last.Size, err = s.readFile(s.last.Name(), each); err != nil {
		return err
	}
	return s.last.Truncate(s.last.Size)
}

// readFile reads a file that should not be much longer than maxBytes. It returns how many
// finished lines there are, and their size.
func (s *segments) readFile(path string, each func([]byte)) (count int, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	in := bufio.NewReader(io.LimitReader(file, 2*s.maxBytes+waiting*maxLine))
	for {
		line, n, err := lines.Read(in, maxLine+1)
		if err == io.EOF {
			return count, size, nil
		}
		if err != nil {
			return count, size, err
		}
		each(line)
		count++
		size += n
	}
}

// append writes texts, a line each, and returns when they are on disk. After an error
// nothing of them is there.
func (s *segments) append(texts [][]byte) error {
	if s.lines >= s.maxLines || s.last.Size >= s.maxBytes {
		if err := s.next(); err != nil {
			return err
		}
	}
	if err := s.last.Append(bytes.Join(texts, nil), true); err != nil {
		return err
	}
	s.lines += len(texts)
	return nil
}

// next begins a file and deletes the oldest.
func (s *segments) next() error {
	if err := s.saveStanding(); err != nil {
		return err
	}
	full := s.last
	if err := s.open(s.files[len(s.files)-1].N + 1); err != nil {
		return err
	}
	errs := []error{full.Close()}
	for len(s.files) > keptSegments {
		if err := os.Remove(s.files[0].Path); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		s.files = s.files[1:]
	}
	return errors.Join(errs...)
}
