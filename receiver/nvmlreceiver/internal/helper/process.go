// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package helper is the process that calls the driver's library, seen from the receiver:
// how it is started (start.go), asked within deadlines (process.go, frames.go) and replaced
// (keeper.go). A crash of the library ends that process, and a call that does not return
// holds a thread of it; neither stops anything here.
package helper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlhelper"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Options are the settings of a helper, and what is done with what it reports. The functions
// are called by several goroutines, and must not wait. Those that are nil are not called.
type Options struct {
	CallTimeout time.Duration // after which a call has made its board stuck
	InitTimeout time.Duration // likewise, of nvmlInit
	Event       func(*nvmlproto.Event)
	Called      func(*nvmlproto.Call) // a call has returned
	Line        func(string)          // of standard error, safe to be logged
}

// Error is why there is no answer.
type Error struct {
	Cause nvmlproto.Cause
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func failed(cause nvmlproto.Cause, format string, args ...any) *Error {
	return &Error{Cause: cause, Err: fmt.Errorf(format, args...)}
}

// Answer is what a helper answered to a request.
type Answer struct {
	System nvmlproto.System
	Boards []nvmlproto.Board // sorted by thread
	// Late are the boards that have not answered, and those of earlier requests that are
	// stuck still, sorted by thread.
	Late []Late
}

// Late is a board that has not answered. It is stuck if a call for it has taken longer than
// CallTimeout.
type Late struct {
	Thread string
	Call   string // that it is in, if any
	Since  time.Time
	Stuck  bool
}

// Process is a helper that runs. Scrape is for one goroutine.
type Process struct {
	child *Child
	opts  Options
	build string // of the helper

	requests chan *nvmlproto.Request
	done     chan struct{} // closed when the process has ended

	mu       sync.Mutex
	changed  chan struct{} // closed, and replaced, when one of these changes
	greeted  bool
	inflight map[string]inflight // calls that have not returned, by thread
	asked    uint64              // id of the newest request
	system   *nvmlproto.System   // that answers it
	boards   map[string]*nvmlproto.Board
	err      *Error // why nothing more comes
	lastLine string // last line of standard error
	started  time.Time
	ending   time.Time // since when it is to end
}

type inflight struct {
	name  string
	since time.Time
}

// run follows a child that has just been started.
func run(child *Child, opts Options) *Process {
	p := &Process{
		child: child, opts: opts, started: time.Now(),
		requests: make(chan *nvmlproto.Request, 1), done: make(chan struct{}),
		changed: make(chan struct{}), inflight: map[string]inflight{}, boards: map[string]*nvmlproto.Board{},
	}
	var reading sync.WaitGroup
	reading.Go(p.readFrames)
	reading.Go(p.readLines)
	go p.write()
	go func() {
		err := child.Wait()
		closing(child.Stdin) // where it was a script, the program that it left behind ends now
		reading.Wait()
		p.ended(err)
		close(p.done)
	}()
	return p
}

// write hands requests to the helper: one that does not read must not hold up a scrape.
func (p *Process) write() {
	defer closing(p.child.Stdin)
	for {
		select {
		case <-p.done:
			return
		case request, ok := <-p.requests:
			if !ok || nvmlproto.Write(p.child.Stdin, request) != nil { // it has ended, see readFrames
				return
			}
		}
	}
}

func closing(c io.Closer) { _ = c.Close() }

// Scrape asks the helper, until ctx ends at the latest. What is not there by then is late.
func (p *Process) Scrape(ctx context.Context, request nvmlproto.Request) (Answer, error) {
	if err := p.waitForSystem(ctx); err != nil {
		return Answer{}, err
	}
	p.mu.Lock()
	p.asked++
	request.ID = p.asked
	p.system, p.boards = nil, map[string]*nvmlproto.Board{}
	p.mu.Unlock()
	select {
	case p.requests <- &request:
	default:
		return Answer{}, failed(nvmlproto.CauseTimeout, "the helper reads no requests")
	}
	for {
		answer, complete, next, err := p.answer()
		if err != nil {
			return Answer{}, err
		}
		if complete {
			return answer, nil
		}
		if changed := p.wait(ctx, next); changed {
			continue
		}
		answer, complete, _, err = p.answer()
		switch {
		case err != nil:
			return Answer{}, err
		case complete || answer.System.ID != 0:
			return answer, nil
		}
		return Answer{}, p.silent()
	}
}

// silent is why there is no answer at all when a scrape has to end.
func (p *Process) silent() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if call, busy := p.inflight[""]; busy {
		return failed(nvmlproto.CauseStarting, "%s has not returned for %v", call.name, time.Since(call.since).Round(time.Millisecond))
	}
	return failed(nvmlproto.CauseTimeout, "the helper does not answer")
}

// waitForSystem waits while a call without a board is under way, such as nvmlInit of an
// earlier request.
func (p *Process) waitForSystem(ctx context.Context) error {
	for {
		p.mu.Lock()
		err := p.err
		call, busy := p.inflight[""]
		p.mu.Unlock()
		if err != nil {
			return err
		}
		if !busy {
			return nil
		}
		if stuck := p.stuckSystem(call); stuck != nil {
			return stuck
		}
		if !p.wait(ctx, p.deadline("", call)) {
			return p.silent()
		}
	}
}

func (p *Process) stuckSystem(call inflight) error {
	if age := time.Since(call.since); !p.deadline("", call).After(time.Now()) {
		return failed(nvmlproto.CauseStuck, "%s has not returned for %v", call.name, age.Round(time.Second))
	}
	return nil
}

// deadline is when a call has made its thread stuck.
func (p *Process) deadline(thread string, call inflight) time.Time {
	if thread == "" && strings.HasPrefix(call.name, "nvmlInit") {
		return call.since.Add(p.opts.InitTimeout)
	}
	return call.since.Add(p.opts.CallTimeout)
}

// wait waits for a frame, until a time if it is not zero; false once ctx has ended.
func (p *Process) wait(ctx context.Context, until time.Time) bool {
	p.mu.Lock()
	changed := p.changed
	p.mu.Unlock()
	var late <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-late:
	}
	return true
}

// answer is what the newest request has been answered with so far; next is when a call that
// is waited for becomes late.
func (p *Process) answer() (a Answer, complete bool, next time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return a, false, next, p.err
	}
	now := time.Now()
	earliest := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if p.system == nil {
		if call, busy := p.inflight[""]; busy {
			if stuck := p.stuckSystem(call); stuck != nil {
				return a, false, next, stuck
			}
			earliest(p.deadline("", call))
		}
		return a, false, next, nil
	}
	a.System, complete = *p.system, true
	for _, thread := range p.system.Answering {
		if b := p.boards[thread]; b != nil {
			a.Boards = append(a.Boards, *b)
			continue
		}
		call, busy := p.inflight[thread]
		switch deadline := p.deadline(thread, call); {
		case !busy:
			complete = false
			a.Late = append(a.Late, Late{Thread: thread})
		case deadline.After(now):
			complete = false
			earliest(deadline)
			a.Late = append(a.Late, Late{Thread: thread, Call: call.name, Since: call.since})
		}
	}
	for thread, call := range p.inflight { // of an earlier request
		if thread != "" && p.deadline(thread, call).After(now) && !slices.Contains(p.system.Answering, thread) {
			a.Late = append(a.Late, Late{Thread: thread, Call: call.name, Since: call.since})
		}
	}
	a.Late = append(a.Late, p.stuckBoards(now)...)
	sortLate(a.Late) // the boards are in the order of System.Answering, which is sorted
	return a, complete, next, nil
}

func (p *Process) stuckBoards(now time.Time) (stuck []Late) {
	for thread, call := range p.inflight {
		if thread != "" && !p.deadline(thread, call).After(now) {
			stuck = append(stuck, Late{thread, call.name, call.since, true})
		}
	}
	return stuck
}

func sortLate(late []Late) {
	sort.Slice(late, func(i, j int) bool { return late[i].Thread < late[j].Thread })
}

// Stuck are the boards with a call that has taken too long, sorted by thread.
func (p *Process) Stuck() []Late {
	p.mu.Lock()
	defer p.mu.Unlock()
	stuck := p.stuckBoards(time.Now())
	sortLate(stuck)
	return stuck
}

// Calling are the boards that calls were under way for, when the helper ended or now.
func (p *Process) Calling() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.inflight)), func(thread string) bool { return thread == "" })
}

// Build is the version of the helper, empty before its first frame.
func (p *Process) Build() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.build
}

// ended notes why the process has ended.
func (p *Process) ended(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	text := "the helper has ended"
	if err != nil {
		text += ": " + err.Error()
	}
	if p.lastLine != "" {
		text += ": " + p.lastLine
	}
	for thread, call := range p.inflight {
		text += fmt.Sprintf("; in %s of %s", call.name, thread)
		break // one is enough to search for
	}
	cause := nvmlproto.CauseCrashed
	if !p.greeted && nvmlhelper.IsLoader(p.lastLine) {
		cause = nvmlproto.CauseLoader
	}
	p.fail(&Error{cause, errors.New(text)})
}

// fail has every scrape fail from now on. p.mu is held.
func (p *Process) fail(err *Error) {
	if p.err == nil {
		p.err = err
		p.notify()
	}
}

func (p *Process) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}
