// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package exporters serves the pages of a simulated fleet, one listener a node as
// dcgm-exporter does and one a pod with an inference engine, with a control port; and
// captured pages.
package exporters

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

// contentType is what dcgm-exporter sends.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// reconcileEvery is how often the server looks whether an exporter is to die
// or to return.
const reconcileEvery = 50 * time.Millisecond

// Server serves the pages of a fleet: one listener a node, one for each exporter that a
// fault started elsewhere, and one for each pod with an engine.
type Server struct {
	fleet *gpusim.Fleet
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once
	pages atomic.Int64

	mu      sync.Mutex // guards the listeners
	ports   []*port
	others  map[string]*port // of exporters that a fault started, by its id
	engines map[podName]*port
}

type port struct {
	node    string
	host    string // printed as Hostname, "" for the node's own
	addr    string
	handler http.Handler
	http    *http.Server // nil while the exporter is down
	failed  error        // to listen, the last time
}

type podName struct{ namespace, name string }

// Serve listens for every node on host: on base, base+1 and so on, or on free
// ports when base is 0. Close ends it.
func Serve(fl *gpusim.Fleet, host string, base int) (*Server, error) {
	s := &Server{fleet: fl, stop: make(chan struct{}), done: make(chan struct{}), others: map[string]*port{}, engines: map[podName]*port{}}
	for i, name := range fl.Nodes() {
		number := 0
		if base != 0 {
			number = base + i
		}
		p := &port{node: name, addr: net.JoinHostPort(host, strconv.Itoa(number)), handler: s.handler(name, "")}
		if err := s.listen(p); err != nil {
			s.closePorts()
			return nil, fmt.Errorf("node %s: %w", name, ListenError(p.addr, err))
		}
		s.ports = append(s.ports, p)
	}
	s.Reconcile()
	for pod, p := range s.engines {
		if p.failed != nil {
			s.closePorts()
			return nil, fmt.Errorf("pod %s/%s: %w", pod.namespace, pod.name, ListenError(p.addr, p.failed))
		}
	}
	go s.run()
	return s, nil
}

// ListenError describes in plain words why an address cannot be listened on.
func ListenError(addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("cannot listen on %s: the port is taken; stop what holds it or choose another", addr)
	}
	return fmt.Errorf("cannot listen on %s: %w", addr, err)
}

func (s *Server) listen(p *port) error {
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	p.addr = l.Addr().String()
	p.http = &http.Server{Handler: p.handler, ReadHeaderTimeout: 10 * time.Second}
	go func(h *http.Server) { _ = h.Serve(l) }(p.http)
	return nil
}

// run makes exporters die and return in time.
func (s *Server) run() {
	defer close(s.done)
	tick := time.NewTicker(reconcileEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.Reconcile()
		}
	}
}

// Reconcile closes the listeners of the exporters that are down now and opens
// those of the others. The control port calls it after each change. A port
// that another process took meanwhile is tried again next time.
func (s *Server) Reconcile() {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := s.fleet.Elsewhere()
	for id, p := range s.others {
		if _, ok := wanted[id]; !ok {
			p.close()
			delete(s.others, id)
		}
	}
	for _, p := range s.ports {
		s.set(p, s.fleet.Transport(p.node, false).Down || s.current(p.node, wanted) != "")
	}
	for id, f := range wanted {
		p := s.others[id]
		if p == nil {
			host, _, _ := net.SplitHostPort(s.ports[0].addr)
			p = &port{node: f.Node, host: f.Host, addr: net.JoinHostPort(host, strconv.Itoa(f.Port)), handler: s.handler(f.Node, f.Host)}
			s.others[id] = p
		}
		s.set(p, f.Kind == gpusim.ExporterReplaced && (s.fleet.Transport(p.node, false).Down || s.current(f.Node, wanted) != id))
	}
	s.reconcileEngines()
}

// set closes or opens a listener.
func (s *Server) set(p *port, down bool) {
	switch {
	case down:
		p.close()
	case p.http == nil:
		p.failed = s.listen(p)
	}
}

// close closes the listener and every open connection.
func (p *port) close() {
	if p.http != nil {
		_ = p.http.Close()
		p.http = nil
	}
}

// current is the fault that moved the node's exporter to another address, the
// newest if there are several; "" is none.
func (s *Server) current(node string, others map[string]gpusim.Fault) (id string) {
	for other, f := range others {
		if f.Node == node && f.Kind == gpusim.ExporterReplaced && (len(other) > len(id) || len(other) == len(id) && other > id) {
			id = other
		}
	}
	return id
}

// URL is where a node's page is, or "" for an unknown node.
func (s *Server) URL(node string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.others[s.current(node, s.fleet.Elsewhere())]; p != nil {
		return "http://" + p.addr + "/metrics"
	}
	for _, p := range s.ports {
		if p.node == node {
			return "http://" + p.addr + "/metrics"
		}
	}
	return ""
}

// Pages is how many pages were given whole since the start.
func (s *Server) Pages() int64 { return s.pages.Load() }

// Close stops listening.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.stop)
		<-s.done
		s.closePorts()
	})
}

func (s *Server) closePorts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.ports {
		p.close()
	}
	for _, p := range s.others {
		p.close()
	}
	for _, p := range s.engines {
		p.close()
	}
}

func (s *Server) handler(node, host string) http.Handler {
	return Handler(s.fleet, node, host, func() { s.pages.Add(1) })
}

// Handler is the HTTP side of one node's exporter, which calls its host so; "" is the
// node's own. It calls given for each page that was written whole. While the exporter is
// down it hangs up.
func Handler(fl *gpusim.Fleet, node, host string, given func()) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("OK"))
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		how := fl.Transport(node, true)
		if how.Down && host == "" {
			panic(http.ErrAbortHandler) // the listener is about to go
		}
		if !wait(r, how.Delay) {
			return
		}
		now := fl.Now()
		page, err := fl.PageOf(node, host, now)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", contentType)
		h.Set("Date", now.Add(how.Skew).UTC().Format(http.TimeFormat))
		switch how.Cut {
		case "short":
			h.Set("Content-Length", strconv.Itoa(len(page)))
			_, _ = w.Write(page[:cutAt(page)])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler) // closes the connection before the promised end
		case "clean":
			h.Set("Content-Length", strconv.Itoa(cutAt(page)))
			h.Set("Connection", "close")
			_, _ = w.Write(page[:cutAt(page)])
		default:
			h.Set("Content-Length", strconv.Itoa(len(page)))
			if _, err := w.Write(page); err == nil { // else the client has gone
				given()
			}
		}
	})
	return mux
}

// wait lets time pass, and reports whether the client is still there.
func wait(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// cutAt is a place near the middle of a page, in the middle of a sample's labels.
func cutAt(page []byte) int {
	at := len(page) / 2
	for at > 0 && page[at] != '{' {
		at--
	}
	return min(at+9, len(page))
}
