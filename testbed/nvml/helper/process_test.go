// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package helper

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	nvmllab "github.com/otelcol-gpu/otelcol-gpu/testbed/nvml"
)

// patience is how long the tests wait for what must come.
const patience = 20 * time.Second

// process is a helper process.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	frames chan nvmlproto.Frame // closed at the end of the output
	stderr bytes.Buffer         // once it has ended
	ended  sync.Once
	err    error // of Wait
	id     uint64
	events []nvmlproto.Event
}

// start starts a helper that is ended with the test.
func start(t *testing.T, lab *nvmllab.Lab) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(lab.Helper(), "-library", lab.Library), frames: make(chan nvmlproto.Frame, 4096)}
	p.cmd.Stderr = &p.stderr
	var err error
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	from, to, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.Stdout = to
	require.NoError(t, p.cmd.Start())
	require.NoError(t, to.Close())
	go func() {
		defer close(p.frames)
		defer from.Close()
		var memory []byte
		for in := bufio.NewReader(from); ; {
			var frame nvmlproto.Frame
			if memory, err = nvmlproto.Read(in, &frame, memory); err != nil {
				return
			}
			p.frames <- frame
		}
	}()
	t.Cleanup(func() {
		lab.Clear() // what hangs may end
		_ = p.in.Close()
		p.wait()
	})
	hello, ok := p.next()
	require.True(t, ok, "the helper ended")
	require.Equal(t, nvmlproto.Version, hello.Hello.Version)
	return p
}

// wait waits for the end of the process.
func (p *process) wait() error {
	p.ended.Do(func() {
		for range p.frames { // what nobody needs
		}
		p.err = p.cmd.Wait()
	})
	return p.err
}

// next is the next frame, false at the end.
func (p *process) next() (nvmlproto.Frame, bool) {
	p.t.Helper()
	select {
	case f, ok := <-p.frames:
		if f.Event != nil {
			p.events = append(p.events, *f.Event)
		}
		return f, ok
	case <-time.After(patience):
		require.Fail(p.t, "no frame of the helper")
		return nvmlproto.Frame{}, false
	}
}

// answer is what came of a request.
type answer struct {
	system *nvmlproto.System
	boards map[string]*nvmlproto.Board
}

// ask asks, and returns the answer once all boards but those of missing are there. It is
// false if the process ended.
func (p *process) ask(request nvmlproto.Request, missing ...string) (answer, bool) {
	p.t.Helper()
	p.id++
	request.ID = p.id
	if err := nvmlproto.Write(p.in, &request); err != nil {
		return answer{}, false
	}
	a := answer{boards: map[string]*nvmlproto.Board{}}
	for {
		f, ok := p.next()
		switch {
		case !ok:
			return a, false
		case f.System != nil && f.System.ID == p.id:
			a.system = f.System
		case f.Board != nil && f.Board.ID == p.id:
			a.boards[f.Board.Thread] = f.Board
		}
		if a.system != nil && !slices.ContainsFunc(a.system.Answering, func(thread string) bool {
			return a.boards[thread] == nil && !slices.Contains(missing, thread)
		}) {
			return a, true
		}
	}
}

// all is a request for everything of all boards.
func all(lab *nvmllab.Lab) nvmlproto.Request {
	r := nvmlproto.Request{Groups: nvmlproto.Groups, WindowMillis: 60_000}
	for _, b := range lab.Truth() {
		r.Boards = append(r.Boards, address(b.PCIBusID))
	}
	return r
}

// eventually waits for a frame after which done is true.
func (p *process) eventually(done func() bool, what string) {
	p.t.Helper()
	for !done() {
		_, ok := p.next()
		require.True(p.t, ok, "the helper ended before %s", what)
	}
}
