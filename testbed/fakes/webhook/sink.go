// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhook is the webhook receiver of the simulator and of tests: it keeps what
// arrives and responds as it is configured.
package webhook

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/strictjson"
)

const (
	// sinkSize is how many requests a sink remembers; older ones make room.
	sinkSize = 1000
	// sinkBody is how many bytes of a body it remembers.
	sinkBody = 1 << 20
	// sinkBytes is how many bytes of all bodies together it remembers.
	sinkBytes = 64 << 20
	// sinkAnswers is how many answers can wait at a time.
	sinkAnswers = 1000
)

var errTooManyAnswers = fmt.Errorf("%d answers are waiting, which is the limit: DELETE /answer empties them", sinkAnswers)

// Received is one request that arrived at the sink.
type Received struct {
	Seq       uint64      `json:"seq"` // 1, 2, 3 … since the start of the sink
	Time      time.Time   `json:"time"`
	Method    string      `json:"method"`
	Path      string      `json:"path"`
	Query     string      `json:"query,omitempty"`
	Headers   http.Header `json:"headers"`
	Body      string      `json:"body"`
	Raw       []byte      `json:"body_base64,omitempty"` // instead of Body when that is not UTF-8
	Truncated bool        `json:"truncated,omitempty"`   // the body was longer than 1 MiB
	Status    int         `json:"status"`                // what was answered; 0 is a connection closed without answer
}

// Answer is how the sink answers requests on a path.
type Answer struct {
	Path     string              `json:"path"`               // "" or "*" is every path
	Status   int                 `json:"status,omitempty"`   // default 200, or 302 with a location
	Delay    strictjson.Duration `json:"delay,omitempty"`    // before the answer
	Location string              `json:"location,omitempty"` // header of a redirect
	// Headers are further headers, such as Retry-After.
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Close   bool              `json:"close,omitempty"` // closes the connection instead of answering
	Times   int               `json:"times,omitempty"` // 0: from now on
}

// Sink is a webhook receiver that remembers what arrives. GET and DELETE
// /received, and /answer, are its own; everything else is recorded.
type Sink struct {
	clock func() time.Time

	mu       sync.Mutex
	seq      uint64
	received []Received
	bytes    int
	rules    []Answer
}

// NewSink makes an empty sink that answers 200.
func NewSink(clock func() time.Time) *Sink { return &Sink{clock: clock} }

// ServeHTTP makes the sink a handler. There is no ServeMux in between: it would
// redirect paths that it finds unclean, and a receiver takes any path.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/answer":
		s.ServeAnswers(w, r)
	case r.URL.Path == "/received" && r.Method == http.MethodGet:
		s.list(w, r)
	case r.URL.Path == "/received" && r.Method == http.MethodDelete:
		s.mu.Lock()
		s.received, s.bytes = nil, 0
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	default:
		s.receive(w, r)
	}
}

// receive records a request and answers it.
func (s *Sink) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, sinkBody+1))
	if err != nil {
		http.Error(w, "the body did not arrive whole: "+err.Error(), http.StatusBadRequest)
		return
	}
	got := Received{
		Time: s.clock(), Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		Headers: r.Header.Clone(), Truncated: len(body) > sinkBody,
	}
	body = body[:min(len(body), sinkBody)]
	if utf8.Valid(body) {
		got.Body = string(body)
	} else {
		got.Raw = body
	}
	a := s.record(got)
	if a.Delay > 0 {
		wait := time.NewTimer(time.Duration(a.Delay))
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-r.Context().Done():
			return
		}
	}
	if a.Close {
		panic(http.ErrAbortHandler)
	}
	for k, v := range a.Headers {
		w.Header().Set(k, v)
	}
	if a.Location != "" {
		w.Header().Set("Location", a.Location)
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body)
}

// record remembers a request and picks its answer: the oldest rule for its
// path that still has times left, else the standing one, else 200.
func (s *Sink) record(got Received) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Answer{Status: http.StatusOK}
	if i := s.rule(got.Path); i >= 0 {
		a = s.rules[i]
		if s.rules[i].Times > 0 {
			if s.rules[i].Times--; s.rules[i].Times == 0 {
				s.rules = slices.Delete(s.rules, i, i+1)
			}
		}
	}
	s.seq++
	got.Seq, got.Status = s.seq, a.Status
	if a.Close {
		got.Status = 0
	}
	s.received = append(s.received, got)
	s.bytes += len(got.Body) + len(got.Raw)
	for len(s.received) > sinkSize || s.bytes > sinkBytes {
		s.bytes -= len(s.received[0].Body) + len(s.received[0].Raw)
		s.received[0] = Received{} // or its body stays reachable
		s.received = s.received[1:]
	}
	return a
}

// rule finds the rule for a path: those of the path itself before those of
// every path, those with times before the standing one.
func (s *Sink) rule(path string) int {
	best, rank := -1, 4
	for i, a := range s.rules {
		own := a.Path == path
		if !own && a.Path != "*" {
			continue
		}
		r := 0
		if !own {
			r = 2
		}
		if a.Times == 0 {
			r++
		}
		if r < rank {
			best, rank = i, r
		}
	}
	return best
}

// list answers GET /received: a JSON list, oldest first. since=N leaves out
// what has a sequence number up to N, path=P what came on other paths.
func (s *Sink) list(w http.ResponseWriter, r *http.Request) {
	var since uint64
	if v := r.URL.Query().Get("since"); v != "" {
		var err error
		if since, err = strconv.ParseUint(v, 10, 64); err != nil {
			refuse(w, fmt.Errorf("since=%s is not a sequence number", v))
			return
		}
	}
	path := r.URL.Query().Get("path")
	out := []Received{}
	s.mu.Lock()
	for _, g := range s.received {
		if g.Seq > since && (path == "" || g.Path == path) {
			out = append(out, g)
		}
	}
	total := s.seq
	s.mu.Unlock()
	w.Header().Set("X-Received-Total", strconv.FormatUint(total, 10))
	strictjson.Reply(w, http.StatusOK, out)
}

// ServeAnswers serves /answer: GET lists the rules, POST adds one, DELETE empties them.
func (s *Sink) ServeAnswers(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		s.mu.Lock()
		out := append([]Answer{}, s.rules...)
		s.mu.Unlock()
		strictjson.Reply(w, http.StatusOK, out)
	case http.MethodDelete:
		s.mu.Lock()
		s.rules = nil
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPost:
		var a Answer
		if err := strictjson.Decode(r.Body, &a); err != nil {
			refuse(w, err)
			return
		}
		a, err := s.SetAnswer(a)
		if err != nil {
			refuse(w, err)
			return
		}
		strictjson.Reply(w, http.StatusCreated, a)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// SetAnswer adds a rule and gives it back with its defaults. A standing rule
// takes the place of the standing rule for the same path.
func (s *Sink) SetAnswer(a Answer) (Answer, error) {
	if a.Path == "" {
		a.Path = "*"
	}
	if a.Status == 0 {
		a.Status = http.StatusOK
		if a.Location != "" {
			a.Status = http.StatusFound
		}
	}
	if a.Status < 200 || a.Status > 599 {
		return a, fmt.Errorf("status %d is not between 200 and 599", a.Status)
	}
	if a.Delay < 0 || a.Times < 0 {
		return a, errors.New("delay and times cannot be negative")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.Times == 0 {
		s.rules = slices.DeleteFunc(s.rules, func(b Answer) bool { return b.Times == 0 && b.Path == a.Path })
	}
	if len(s.rules) >= sinkAnswers {
		return a, errTooManyAnswers
	}
	s.rules = append(s.rules, a)
	return a, nil
}

// Received gives what the sink remembers, oldest first.
func (s *Sink) Received() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// refuse writes the reason why a request cannot be done.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	if errors.Is(err, errTooManyAnswers) {
		status = http.StatusTooManyRequests
	}
	strictjson.Refuse(w, status, err)
}
