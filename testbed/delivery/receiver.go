// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// Receiver is a webhook that misbehaves by a schedule and keeps account of what
// it saw. Each connection draws one fault.
type Receiver struct {
	Name string

	port   int
	server *http.Server
	ends   chan struct{} // closed by Close
	ended  sync.WaitGroup

	// faults and windows draw from different sources, because the number of
	// connections in a window is not for the schedule to decide.
	windows *schedule

	mu          sync.Mutex
	faults      *schedule
	listener    net.Listener // nil while connections are refused
	connections int
	requests    []*Request
	answered    map[string]bool // webhook ids that were answered 2xx
}

// faultKey is the context key of a connection's fault.
type faultKey struct{}

// Listen starts the n-th receiver of a run on its port.
func Listen(seed uint64, n, events, port int) (*Receiver, error) {
	r := &Receiver{
		Name:     nameOf(n),
		port:     port,
		ends:     make(chan struct{}),
		windows:  newSchedule(seed+1, n, events),
		faults:   newSchedule(seed, n, events),
		answered: map[string]bool{},
	}
	r.server = &http.Server{
		Handler: http.HandlerFunc(r.serve),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, faultKey{}, c.(*conn).fault)
		},
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // broken connections are what this is about
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	if r.windows.upFor > 0 {
		r.ended.Go(r.comeAndGo)
	}
	return r, nil
}

// Close ends the receiver.
func (r *Receiver) Close() {
	close(r.ends)
	_ = r.server.Close()
	r.shut()
	r.ended.Wait()
}

// Connections is how many connections were accepted.
func (r *Receiver) Connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.connections
}

// Answered is how many different webhook ids were answered 2xx.
func (r *Receiver) Answered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.answered)
}

// Requests are those that were read.
func (r *Receiver) Requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Request, len(r.requests))
	for i, q := range r.requests {
		list[i] = *q
	}
	return list
}

// open accepts connections again.
func (r *Receiver) open() error {
	l, err := net.Listen("tcp", net.JoinHostPort(collector.Loopback, strconv.Itoa(r.port)))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener = l
	r.port = l.Addr().(*net.TCPAddr).Port // of a test that named none
	r.ended.Go(func() { _ = r.server.Serve(&listener{l, r}) })
	return nil
}

// shut refuses connections; those that were accepted go on.
func (r *Receiver) shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		_ = r.listener.Close()
		r.listener = nil
	}
}

// comeAndGo opens and shuts the receiver until it is closed.
func (r *Receiver) comeAndGo() {
	for r.wait(r.windows.up()) {
		r.shut()
		if !r.wait(r.windows.down()) {
			return
		}
		// Another process may hold the port for a moment as the near end of a
		// connection.
		for r.open() != nil {
			if !r.wait(100 * time.Millisecond) {
				return
			}
		}
	}
}

// wait returns false if the receiver is closed meanwhile.
func (r *Receiver) wait(d time.Duration) bool {
	select {
	case <-r.ends:
		return false
	case <-time.After(d):
		return true
	}
}

// listener gives every connection its fault, and resets those with a fault that is
// to be reset at once.
type listener struct {
	net.Listener
	receiver *Receiver
}

// conn is a connection with its fault.
type conn struct {
	*net.TCPConn
	fault fault
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.receiver.mu.Lock()
		l.receiver.connections++
		f := l.receiver.faults.next()
		l.receiver.mu.Unlock()
		tcp := c.(*net.TCPConn)
		if f.action != cutFirst {
			return &conn{tcp, f}, nil
		}
		reset(tcp)
	}
}

// reset closes a connection so that the other end sees a reset.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// serve plays the connection's fault.
func (r *Receiver) serve(w http.ResponseWriter, req *http.Request) {
	f := req.Context().Value(faultKey{}).(fault)
	request := &Request{Receiver: r.Name, WebhookID: req.Header.Get("webhook-id"), Arrived: time.Now()}
	r.mu.Lock()
	r.requests = append(r.requests, request)
	r.mu.Unlock()
	digest := sha256.New()
	if _, err := io.Copy(digest, req.Body); err != nil {
		return // the sender died in mid-request: no answer
	}
	r.mu.Lock()
	request.Body = hex.EncodeToString(digest.Sum(nil))
	r.mu.Unlock()
	switch f.action {
	case cutRead:
		if c := hijack(w); c != nil {
			reset(c)
		}
	case babble:
		if c := hijack(w); c != nil {
			_, _ = c.Write([]byte("220 mail.example ESMTP\r\n"))
			_ = c.Close()
		}
	case hang:
		select {
		case <-req.Context().Done():
		case <-r.ends:
		}
	case cutOK:
		r.answer(request, f.status)
		if c := hijack(w); c != nil {
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok"))
			reset(c)
		}
	case dripOn, drip:
		r.answer(request, f.status)
		w.WriteHeader(f.status)
		for i := 0; f.action == dripOn || i < 5; i++ {
			if _, err := w.Write([]byte(".")); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-req.Context().Done():
				return
			case <-r.ends:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	default:
		r.answer(request, f.status)
		if f.retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.retryAfter))
		}
		if f.status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(f.status)
	}
}

// answer notes the status before the first byte of it can be seen.
func (r *Receiver) answer(q *Request, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.Status = status
	if status >= 200 && status < 300 {
		r.answered[q.WebhookID] = true
	}
}

// hijack takes the connection away from the server.
func hijack(w http.ResponseWriter) *net.TCPConn {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	return c.(*conn).TCPConn
}
