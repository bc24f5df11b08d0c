// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package verify // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
)

// source is a file that is verified.
type source struct {
	path   string
	f      *os.File
	first  uint64 // number of its first line
	byName int    // number in its name
}

// item is a line as it was found.
type item struct {
	codec.Envelope
	body   any
	err    error // it is no line
	hash   codec.Digest
	file   *source
	line   int
	offset int64
	size   int64
}

// reader reads the lines of several files, with a look at the next one.
type reader struct {
	sources []*source
	current int
	in      *bufio.Reader
	line    int
	begin   int64 // offset in the first file
	offset  int64
	ahead   *item
	partial *item
}

// newReader opens the files in their order.
func newReader(open func(string) (*os.File, error), files []string) (*reader, error) {
	if len(files) == 0 {
		return nil, errors.New("no file is given")
	}
	r := &reader{current: -1}
	for _, path := range files {
		f, err := open(path)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		s := &source{path: path, f: f}
		r.sources = append(r.sources, s)
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file", path)
		}
		if err == nil {
			s.first, err = firstSeq(f)
		}
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	r.sort()
	return r, nil
}

// firstSeq reads a file for the number of its first line; 0 if it has none.
func firstSeq(f *os.File) (uint64, error) {
	in := bufio.NewReader(f)
	for {
		line, _, err := codec.Read(in)
		if err != nil && err != io.EOF {
			return 0, err
		}
		first := uint64(0)
		if e, _, bad := codec.Parse(line); err == nil && bad == nil {
			first = e.Seq
		}
		if err == io.EOF || first > 0 {
			_, err = f.Seek(0, io.SeekStart)
			return first, err
		}
	}
}

// from lets the first file begin at a line that is not its first.
func (r *reader) from(offset int64) error {
	r.begin = offset
	_, err := r.sources[0].f.Seek(offset, io.SeekStart)
	return err
}

// sort brings the files into the order of their names, where these are those of
// one log: a changed line cannot mislead it. Otherwise their first lines decide.
func (r *reader) sort() {
	named := true
	base := ""
	for _, s := range r.sources {
		of, n := logfile.RotatedBase(s.path)
		if base == "" {
			base = of
		}
		named = named && filepath.Base(of) == filepath.Base(base)
		if n == 0 {
			n = math.MaxInt // the one that is being written is the last
		}
		s.byName = n
	}
	slices.SortStableFunc(r.sources, func(a, b *source) int {
		if named {
			return cmp.Compare(a.byName, b.byName)
		}
		return cmp.Compare(a.first, b.first)
	})
}

func (r *reader) paths() []string {
	var paths []string
	for _, s := range r.sources {
		paths = append(paths, s.path)
	}
	return paths
}

func (r *reader) close() error {
	var err error
	for _, s := range r.sources {
		err = errors.Join(err, s.f.Close())
	}
	return err
}

// peek returns the line that next will return.
func (r *reader) peek() (*item, error) {
	if r.ahead == nil {
		it, err := r.read()
		if err != nil {
			return nil, err
		}
		r.ahead = it
	}
	return r.ahead, nil
}

func (r *reader) next() (*item, error) {
	it, err := r.peek()
	if err != nil {
		return nil, err
	}
	r.ahead = nil
	return it, nil
}

func (r *reader) read() (*item, error) {
	for {
		if r.in == nil {
			if r.current+1 == len(r.sources) {
				return nil, io.EOF
			}
			r.current++
			r.in, r.line, r.offset = bufio.NewReaderSize(r.sources[r.current].f, 256<<10), 0, r.begin
			r.begin = 0
		}
		text, n, err := codec.Read(r.in)
		if err != nil && err != io.EOF {
			return nil, err
		}
		if n == 0 {
			r.in = nil
			continue
		}
		r.line++
		it := &item{file: r.sources[r.current], line: r.line, offset: r.offset, size: n}
		r.offset += n
		if err == io.EOF {
			r.in = nil
			if r.current+1 == len(r.sources) {
				r.partial = it // the end of all: a write in progress, or interrupted
				return nil, io.EOF
			}
			it.err = errors.New("ends without a line feed")
			return it, nil
		}
		it.hash = sha256.Sum256(text)
		it.Envelope, it.body, it.err = codec.Parse(text)
		return it, nil
	}
}

// rest is what follows the last line and is none.
func (r *reader) rest() *item {
	if r.partial != nil {
		r.partial.err = codec.ErrNotALine
	}
	return r.partial
}
