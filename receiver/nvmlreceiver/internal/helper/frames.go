// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

const (
	maxLine        = 4 << 10 // of standard error, in bytes
	maxLines       = 10      // in linesEvery
	linesEvery     = time.Minute
	maxCallName    = 128 // bytes
	framesInBuffer = 64 << 10
)

// readFrames reads standard output to its end, or to the first frame that cannot be read.
func (p *Process) readFrames() {
	out := bufio.NewReaderSize(p.child.Stdout, framesInBuffer)
	var memory []byte
	for {
		var f nvmlproto.Frame
		var err error
		if memory, err = nvmlproto.Read(out, &f, memory); err == nil {
			err = p.take(&f)
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, nvmlproto.ErrFrame):
			p.mu.Lock()
			p.fail(&Error{nvmlproto.CauseFrames, err})
			p.mu.Unlock()
		}
		closing(p.child.Stdout) // so that a helper that goes on to write does not wait for ever
		return
	}
}

func unreadable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", nvmlproto.ErrFrame, fmt.Sprintf(format, args...))
}

var errNoHello = unreadable("the first one does not have the version")

// take takes a frame. What is wrong with it is an ErrFrame.
func (p *Process) take(f *nvmlproto.Frame) error {
	if f.Event != nil {
		p.mu.Lock()
		greeted := p.greeted
		p.mu.Unlock()
		if !greeted {
			return errNoHello
		}
		if p.opts.Event != nil {
			p.opts.Event(f.Event)
		}
		return nil
	}
	if f.End != nil && p.opts.Called != nil {
		p.opts.Called(f.End)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case f.Hello != nil:
		if f.Hello.Version != nvmlproto.Version {
			return unreadable("the helper is of another release, %q: it has version %d of frames, and not %d",
				safetext.Strip(f.Hello.Build, maxCallName), f.Hello.Version, nvmlproto.Version)
		}
		p.greeted, p.build = true, safetext.Strip(f.Hello.Build, maxCallName)
		return nil
	case !p.greeted:
		return errNoHello
	case f.Begin != nil:
		if _, known := p.inflight[f.Begin.Thread]; !known && len(p.inflight) > nvmlproto.MaxBoards {
			return unreadable("calls for more than %d boards", nvmlproto.MaxBoards)
		}
		p.inflight[f.Begin.Thread] = inflight{safetext.Strip(f.Begin.Name, maxCallName), time.Now()}
		if f.Begin.Thread == "" {
			p.notify() // its deadline is another
		}
		return nil
	case f.End != nil:
		delete(p.inflight, f.End.Thread)
		if f.End.Thread == "" {
			p.notify()
		}
		return nil
	case f.System != nil:
		return p.takeSystem(f.System)
	case f.Board != nil:
		return p.takeBoard(f.Board)
	}
	return unreadable("it is empty")
}

func (p *Process) takeSystem(s *nvmlproto.System) error {
	switch {
	case s.ID > p.asked:
		return unreadable("it answers request %d, and %d was the last", s.ID, p.asked)
	case s.ID < p.asked: // of a scrape that has ended
		return nil
	case p.system != nil:
		return unreadable("a request has two answers")
	}
	if len(s.Answering) > nvmlproto.MaxBoards {
		return unreadable("it has %d boards, more than %d", len(s.Answering), nvmlproto.MaxBoards)
	}
	slices.Sort(s.Answering)
	s.Answering = slices.Compact(s.Answering)
	s.Driver, s.NVML = safetext.Strip(s.Driver, maxCallName), safetext.Strip(s.NVML, maxCallName)
	s.Error, s.Library = safetext.Strip(s.Error, maxLine), safetext.Strip(s.Library, maxLine)
	for i := range s.Missing {
		s.Missing[i] = safetext.Strip(s.Missing[i], maxLine)
	}
	p.system = s
	p.notify()
	return nil
}

func (p *Process) takeBoard(b *nvmlproto.Board) error {
	switch {
	case b.ID > p.asked:
		return unreadable("it answers request %d, and %d was the last", b.ID, p.asked)
	case b.ID < p.asked: // it was late
		return nil
	case p.system == nil || !slices.Contains(p.system.Answering, b.Thread):
		return unreadable("it is about the board %q, which was not announced", safetext.Strip(b.Thread, maxCallName))
	case p.boards[b.Thread] != nil:
		return unreadable("a board has answered twice")
	}
	p.boards[b.Thread] = b
	p.notify()
	return nil
}

// readLines passes lines of standard error on, not too long and not too many.
func (p *Process) readLines() {
	in := bufio.NewReaderSize(p.child.Stderr, maxLine)
	var began time.Time
	lines := 0
	for {
		text, cut, err := in.ReadLine()
		line := strings.TrimSpace(safetext.Strip(string(text), maxLine))
		for more := cut; more && err == nil; { // the rest of a line that is too long
			_, more, err = in.ReadLine()
		}
		if line != "" {
			p.mu.Lock()
			p.lastLine = line
			p.mu.Unlock()
			if now := time.Now(); now.Sub(began) >= linesEvery {
				began, lines = now, 0
			}
			if lines++; lines <= maxLines && p.opts.Line != nil {
				p.opts.Line(line)
			}
		}
		if err != nil {
			closing(p.child.Stderr)
			return
		}
	}
}
