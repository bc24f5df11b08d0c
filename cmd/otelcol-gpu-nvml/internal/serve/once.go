// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Report is one scrape of all boards.
type Report struct {
	Hello  *nvmlproto.Hello   `json:"hello"`
	System *nvmlproto.System  `json:"system"`
	Boards []*nvmlproto.Board `json:"boards"`
	Calls  []*nvmlproto.Call  `json:"calls"` // that returned, in this order
	// Late are the calls that did not return in time.
	Late   []*nvmlproto.Call  `json:"late,omitempty"`
	Events []*nvmlproto.Event `json:"events,omitempty"`
}

// Answered is whether the library is there and initialised, and every call returned.
func (r *Report) Answered() bool {
	return len(r.System.Missing) == 0 && r.System.Return == nvmlproto.Success && len(r.Late) == 0
}

// betweenScrapes is the window of GPM in a report.
const betweenScrapes = 2 * shortestWindow

// Once makes one scrape of all groups and all boards. Where there is GPM, it makes two, the
// second of which is reported, since GPM measures between them. Calls that have not
// returned after timeout are late.
func Once(open Open, build string, timeout time.Duration) *Report {
	c := &collected{begun: map[string]*nvmlproto.Call{}, changed: make(chan struct{}, 1)}
	s := New(open, c, build, func(error) {})
	deadline := time.After(timeout)
	request := nvmlproto.Request{ID: 1, ByIndex: true, Groups: nvmlproto.Groups, Hourly: true, PCIe: true}
	s.Ask(&request)
	complete := c.wait(1, deadline)
	if complete && c.hasGPM() {
		time.Sleep(betweenScrapes)
		second := request
		second.ID = 2
		s.Ask(&second)
		complete = c.wait(2, deadline)
	}
	if complete {
		s.Stop() // its last call is part of the report
	}
	return c.result()
}

// collected are the frames of a scrape.
type collected struct {
	mu      sync.Mutex
	report  Report
	begun   map[string]*nvmlproto.Call // by thread
	changed chan struct{}
}

// Write implements io.Writer. What is written is whole frames.
func (c *collected) Write(frames []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for in := bytes.NewReader(frames); in.Len() > 0; {
		var frame nvmlproto.Frame
		if _, err := nvmlproto.Read(in, &frame, nil); err != nil {
			return 0, err
		}
		c.add(&frame)
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return len(frames), nil
}

func (c *collected) add(frame *nvmlproto.Frame) {
	switch {
	case frame.Hello != nil:
		c.report.Hello = frame.Hello
	case frame.Begin != nil:
		c.begun[frame.Begin.Thread] = frame.Begin
	case frame.End != nil:
		delete(c.begun, frame.End.Thread)
		c.report.Calls = append(c.report.Calls, frame.End)
	case frame.System != nil:
		c.report.System, c.report.Boards = frame.System, nil
	case frame.Board != nil:
		c.report.Boards = append(c.report.Boards, frame.Board)
	case frame.Event != nil:
		c.report.Events = append(c.report.Events, frame.Event)
	}
}

// wait waits until a request is answered, and is false if that is not before the deadline.
func (c *collected) wait(id uint64, deadline <-chan time.Time) bool {
	for {
		c.mu.Lock()
		system := c.report.System
		complete := system != nil && system.ID == id && len(c.report.Boards) == len(system.Answering)
		c.mu.Unlock()
		if complete {
			return true
		}
		select {
		case <-c.changed:
		case <-deadline:
			return false
		}
	}
}

func (c *collected) hasGPM() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.report.Boards, func(b *nvmlproto.Board) bool { return b.GPM })
}

// result returns a copy, with the boards in the order of the answer.
func (c *collected) result() *Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.report
	if r.System == nil {
		r.System = &nvmlproto.System{}
	}
	r.Boards = append([]*nvmlproto.Board{}, r.Boards...)
	r.Calls = append([]*nvmlproto.Call{}, r.Calls...)
	r.Events = slices.Clone(r.Events)
	slices.SortFunc(r.Boards, func(a, b *nvmlproto.Board) int {
		return slices.Index(r.System.Answering, a.Thread) - slices.Index(r.System.Answering, b.Thread)
	})
	for _, thread := range slices.Sorted(maps.Keys(c.begun)) {
		r.Late = append(r.Late, c.begun[thread])
	}
	return &r
}
