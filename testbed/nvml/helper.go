// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmllab

import (
	"bufio"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Helper is a helper process that a test asks, as the receiver does.
type Helper struct {
	lab    *Lab
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{}
	err    error // why it exited; read after exited is closed
	next   uint64

	mu     sync.Mutex
	frames []nvmlproto.Frame
	stderr strings.Builder
	more   chan struct{} // closed at the next frame
}

// Answer is what a helper answered to a request in time.
type Answer struct {
	System *nvmlproto.System
	Boards map[string]*nvmlproto.Board // by Thread
	Late   []string                    // threads that were to answer and did not
	Took   time.Duration
}

// StartHelper starts the helper with the laboratory's library. It ends with the test.
func (l *Lab) StartHelper() *Helper {
	l.t.Helper()
	h := &Helper{lab: l, t: l.t, exited: make(chan struct{}), more: make(chan struct{})}
	h.cmd = exec.Command(l.Helper(), "-library", l.Library)
	var err error
	h.stdin, err = h.cmd.StdinPipe()
	require.NoError(l.t, err)
	out, err := h.cmd.StdoutPipe()
	require.NoError(l.t, err)
	text, err := h.cmd.StderrPipe()
	require.NoError(l.t, err)
	require.NoError(l.t, h.cmd.Start())
	var pipes sync.WaitGroup
	pipes.Go(func() { h.read(bufio.NewReader(out)) })
	pipes.Go(func() {
		for lines := bufio.NewScanner(text); lines.Scan(); {
			h.mu.Lock()
			h.stderr.WriteString(lines.Text() + "\n")
			h.mu.Unlock()
		}
	})
	go func() {
		pipes.Wait()
		h.err = h.cmd.Wait()
		close(h.exited)
	}()
	l.t.Cleanup(func() {
		l.Clear() // what hangs goes on
		_ = h.stdin.Close()
		select {
		case <-h.exited:
		case <-time.After(time.Minute):
			l.t.Errorf("the helper did not end with its input; it wrote %q", h.Text())
			_ = h.cmd.Process.Kill()
			<-h.exited
		}
	})
	return h
}

func (h *Helper) read(in io.Reader) {
	var memory []byte
	for {
		var f nvmlproto.Frame
		var err error
		if memory, err = nvmlproto.Read(in, &f, memory); err != nil {
			break
		}
		h.mu.Lock()
		h.frames = append(h.frames, f)
		close(h.more)
		h.more = make(chan struct{})
		h.mu.Unlock()
	}
	h.mu.Lock()
	close(h.more)
	h.more = make(chan struct{})
	h.mu.Unlock()
}

// Text is what it wrote to its standard error.
func (h *Helper) Text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stderr.String()
}

// Frames are those so far.
func (h *Helper) Frames() []nvmlproto.Frame {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.frames)
}

// Until waits until something is true of the frames; false: it was not in that time, or
// the helper has ended.
func (h *Helper) Until(limit time.Duration, is func([]nvmlproto.Frame) bool) bool {
	for end := time.After(limit); ; {
		h.mu.Lock()
		frames, more := h.frames, h.more
		h.mu.Unlock()
		if is(frames) {
			return true
		}
		select {
		case <-more:
		case <-h.exited:
			return is(h.Frames())
		case <-end:
			return false
		}
	}
}

// Request asks for all groups of all boards, without waiting for the answer.
func (h *Helper) Request(change ...func(*nvmlproto.Request)) uint64 {
	h.t.Helper()
	h.next++
	r := nvmlproto.Request{ID: h.next, Groups: nvmlproto.Groups, Hourly: true, WindowMillis: 3_600_000}
	for _, b := range h.lab.Truth() {
		r.Boards = append(r.Boards, deviceid.PCIAddress(b.PCIBusID))
	}
	for _, c := range change {
		c(&r)
	}
	_ = nvmlproto.Write(h.stdin, r)
	return r.ID
}

// Scrape asks and waits for the answers, but no longer than limit.
func (h *Helper) Scrape(limit time.Duration, change ...func(*nvmlproto.Request)) Answer {
	h.t.Helper()
	return h.scrape(limit, "", change)
}

// ScrapeOthers does not wait for one board.
func (h *Helper) ScrapeOthers(limit time.Duration, but string) Answer {
	h.t.Helper()
	return h.scrape(limit, but, nil)
}

func (h *Helper) scrape(limit time.Duration, but string, change []func(*nvmlproto.Request)) Answer {
	h.t.Helper()
	start := time.Now()
	id := h.Request(change...)
	a := Answer{Boards: map[string]*nvmlproto.Board{}}
	h.Until(limit, func(frames []nvmlproto.Frame) bool {
		for i := range frames {
			switch f := &frames[i]; {
			case f.System != nil && f.System.ID == id:
				a.System = f.System
			case f.Board != nil && f.Board.ID == id:
				a.Boards[f.Board.Thread] = f.Board
			}
		}
		if a.System == nil {
			return false
		}
		for _, thread := range a.System.Answering {
			if a.Boards[thread] == nil && thread != but {
				return false
			}
		}
		return true
	})
	a.Took = time.Since(start)
	if a.System != nil {
		for _, thread := range a.System.Answering {
			if a.Boards[thread] == nil {
				a.Late = append(a.Late, thread)
			}
		}
	}
	return a
}

// Window lets pass what lies at least between two samples of GPM that are a window.
func (h *Helper) Window() { <-time.After(150 * time.Millisecond) }

// Signal sends a signal.
func (h *Helper) Signal(s syscall.Signal) { _ = h.cmd.Process.Signal(s) }

// Close ends its input.
func (h *Helper) Close() { _ = h.stdin.Close() }

// Exit waits until it has ended, and returns its status: -1 after a signal. It fails the
// test if it does not end.
func (h *Helper) Exit(limit time.Duration) int {
	h.t.Helper()
	select {
	case <-h.exited:
		return h.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		h.t.Errorf("the helper has not ended after %v", limit)
		return -2
	}
}

// Of returns the board at a place, of an answer.
func (a Answer) Of(l *Lab, board int) *nvmlproto.Board {
	return a.Boards[deviceid.PCIAddress(l.Truth()[board].PCIBusID)]
}

// Value returns a reading of a board's values.
func Value(values []nvmlproto.Value, name string) (nvmlproto.Value, bool) {
	for _, v := range values {
		if v.Name == name {
			return v, true
		}
	}
	return nvmlproto.Value{}, false
}
