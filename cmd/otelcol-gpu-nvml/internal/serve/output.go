// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// output writes frames of all threads.
type output struct {
	failed func(error) // called once, for the first frame that could not be written

	mu     sync.Mutex
	to     io.Writer
	broken bool
}

// write writes bytes that are frames.
func (o *output) write(frames []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken {
		return
	}
	if _, err := o.to.Write(frames); err != nil {
		o.broken = true
		o.failed(err)
	}
}

// frame writes one frame, after what the thread has not yet written.
func (o *output) frame(before []byte, frame nvmlproto.Frame) error {
	buffer := bytes.NewBuffer(before)
	err := nvmlproto.Write(buffer, frame)
	o.write(buffer.Bytes())
	return err
}

// announcer announces the calls of one thread. The end of a call is written together with
// the beginning of the next, which follows at once, or by flush: half as many writes.
type announcer struct {
	out     *output
	thread  string
	pending []byte
	// lost is whether a call returned that the board is gone.
	lost bool
}

func (a *announcer) Begin(call string) {
	a.pending = nvmlproto.AppendBegin(a.pending, nvmlproto.Call{Thread: a.thread, Name: call})
	a.flush()
}

func (a *announcer) End(call string, r nvml.Return, micros float64) {
	a.lost = a.lost || r.Lost()
	a.pending = nvmlproto.AppendEnd(a.pending, nvmlproto.Call{
		Thread: a.thread, Name: call, Return: int(r), Micros: micros,
	})
}

func (a *announcer) flush() {
	a.out.write(a.pending)
	a.pending = a.pending[:0]
}

// system writes the answer for the library as a whole.
func (a *announcer) system(s *nvmlproto.System) {
	_ = a.out.frame(a.pending, nvmlproto.Frame{System: s})
	a.pending = a.pending[:0]
}

// board writes what was read of a board. Without the processes, it fits into a frame.
func (a *announcer) board(b *nvmlproto.Board) {
	if err := a.out.frame(a.pending, nvmlproto.Frame{Board: b}); errors.Is(err, nvmlproto.ErrFrame) && b.Processes != nil {
		left := len(b.Processes.List) + b.Processes.Left
		b.Processes = &nvmlproto.Processes{Left: left}
		_ = a.out.frame(nil, nvmlproto.Frame{Board: b})
	}
	a.pending = a.pending[:0]
}
