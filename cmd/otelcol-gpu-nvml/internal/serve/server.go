// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"io"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Open loads the library. Without one, it returns the paths that it tried, with their
// errors.
type Open func() (library Library, path string, tried []string)

// Server answers requests.
type Server struct {
	open     Open
	out      *output
	announce announcer
	turns    *turns
	requests chan *nvmlproto.Request // one that waits
	stop     chan struct{}
	quiet    chan struct{}
	closed   chan struct{}
	stopping atomic.Bool

	// Of the thread for the library as a whole:
	library Library
	caller  Caller
	tried   []string
	system  nvmlproto.System // what it answers
	ready   bool             // the library is initialised

	mu     sync.Mutex
	boards map[string]*board
	busy   map[string]bool // boards that are in a request
}

// New starts a server that writes its frames to out, a Hello first. failed is called once,
// for the first frame that cannot be written.
func New(open Open, out io.Writer, build string, failed func(error)) *Server {
	s := &Server{
		open: open, out: &output{to: out, failed: failed}, turns: newTurns(),
		requests: make(chan *nvmlproto.Request, 1), stop: make(chan struct{}),
		quiet: make(chan struct{}), closed: make(chan struct{}),
		boards: map[string]*board{}, busy: map[string]bool{},
	}
	s.announce.out = s.out
	_ = s.out.frame(nil, nvmlproto.Frame{Hello: &nvmlproto.Hello{Version: nvmlproto.Version, Build: build}})
	go s.run()
	return s
}

// Requests reads requests until the end of in.
func (s *Server) Requests(in io.Reader) error {
	var memory []byte
	for {
		request := new(nvmlproto.Request)
		var err error
		if memory, err = nvmlproto.Read(in, request, memory); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		s.Ask(request)
	}
}

// Ask has a request answered after the one that is being answered. If the library is still
// at that, the newest request is answered, and those between are not. Not concurrently with
// itself.
func (s *Server) Ask(request *nvmlproto.Request) {
	select {
	case <-s.requests:
	default:
	}
	s.requests <- request
}

// Stop finishes the calls that were made, makes no others but nvmlShutdown, and returns
// when that is done: never, if a call does not return.
func (s *Server) Stop() {
	s.stopping.Store(true)
	close(s.stop)
	<-s.closed
}

// Quiet is closed, after Stop has been called, once no thread is in a call but those that
// wait for events: that is earlier than Stop returns.
func (s *Server) Quiet() <-chan struct{} { return s.quiet }

// run answers requests, on a thread of its own.
func (s *Server) run() {
	runtime.LockOSThread()
	defer close(s.closed)
	for !s.stopping.Load() {
		select {
		case request := <-s.requests:
			s.answer(request)
		case <-s.stop:
		}
	}
	for _, b := range s.boards {
		close(b.jobs)
	}
	for _, b := range s.boards {
		<-b.done
	}
	close(s.quiet)
	for _, b := range s.boards {
		for _, w := range b.events.all {
			<-w.done
		}
	}
	if s.ready {
		s.caller.Shutdown()
		s.announce.flush()
	}
}

// answer answers one request for the library as a whole, and passes it on to the boards.
func (s *Server) answer(request *nvmlproto.Request) {
	if !s.ready {
		s.start()
		select {
		case request = <-s.requests: // came while the library was initialised
		default:
		}
	}
	answer := s.system
	answer.ID, answer.Missing, answer.Answering = request.ID, s.tried, []string{}
	var asked []*board
	if s.ready && !s.stopping.Load() {
		asked = s.idle(s.wanted(request))
	}
	for _, b := range asked {
		answer.Answering = append(answer.Answering, b.thread)
	}
	s.announce.system(&answer)
	for _, b := range asked {
		b.jobs <- request
	}
}

// start loads and initialises the library.
func (s *Server) start() {
	if s.library == nil {
		var path string
		if s.library, path, s.tried = s.open(); s.library == nil {
			return
		}
		s.tried, s.system.Library = nil, path
		s.caller = s.library.Caller(&s.announce)
	}
	s.system.Error = ""
	r := s.caller.Init()
	if s.system.Return = int(r); r != nvml.Success {
		s.system.Error = s.caller.ErrorString(r)
		return
	}
	s.ready = true
	s.system.Driver, _ = s.caller.Driver()
	s.system.NVML, _ = s.caller.NVML()
	s.system.Boards, _ = s.caller.Count()
}

// wanted are the threads of the boards that a request wants, each once.
func (s *Server) wanted(request *nvmlproto.Request) []string {
	if !request.ByIndex {
		return request.Boards
	}
	var threads []string
	for i := range min(s.system.Boards, nvmlproto.MaxBoards) {
		threads = append(threads, "#"+strconv.Itoa(i))
	}
	return threads
}

// idle returns the boards of the threads that are in no call, as busy from now on. Boards
// that are not wanted have no events waited for.
func (s *Server) idle(wanted []string) []*board {
	s.mu.Lock()
	defer s.mu.Unlock()
	var boards []*board
	rest := map[string]bool{}
	for thread := range s.boards {
		rest[thread] = true
	}
	for _, thread := range wanted {
		delete(rest, thread)
		if s.busy[thread] {
			continue
		}
		b := s.boards[thread]
		if b == nil {
			if len(s.boards) == maxThreads {
				continue
			}
			b = s.newBoard(thread)
		}
		s.busy[thread] = true
		boards = append(boards, b)
		if len(boards) == nvmlproto.MaxBoards {
			break
		}
	}
	for thread := range rest {
		if !s.busy[thread] {
			s.busy[thread] = true
			s.boards[thread].jobs <- nil
		}
	}
	return boards
}

// maxThreads is how many boards may have a thread, those that are gone too.
const maxThreads = 4 * nvmlproto.MaxBoards

// newBoard starts the thread of a board.
func (s *Server) newBoard(thread string) *board {
	b := &board{
		thread: thread, jobs: make(chan *nvmlproto.Request, 1), done: make(chan struct{}),
		announce: announcer{out: s.out, thread: thread}, stopping: s.stopping.Load,
	}
	b.caller = s.library.Caller(&b.announce)
	b.gpm = gpm{turns: s.turns, caller: b.caller, announce: &b.announce, windows: map[int]*window{}}
	b.events = &events{
		thread: thread, out: s.out, changed: func() { b.changes.Add(1) },
		caller: func() Caller { return s.library.Caller(nil) },
	}
	s.boards[thread] = b
	go b.run(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.busy, thread)
	})
	return b
}
