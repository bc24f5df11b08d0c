// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporters

import (
	"errors"
	"net"
	"net/http"
	"strconv"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines"
)

// reconcileEngines opens a listener for every engine that serves, and closes the
// others. One that comes back has the address that it had.
func (s *Server) reconcileEngines() {
	serving := map[podName]bool{}
	for _, e := range s.fleet.Engines() {
		pod := podName{e.Namespace, e.Pod}
		p := s.engines[pod]
		if p == nil {
			host, _, _ := net.SplitHostPort(s.ports[0].addr)
			p = &port{addr: net.JoinHostPort(host, strconv.Itoa(e.Port)), handler: s.engine(pod)}
			s.engines[pod] = p
		}
		s.set(p, e.State != "up")
		serving[pod] = true
	}
	for pod, p := range s.engines {
		if !serving[pod] {
			p.close()
			delete(s.engines, pod)
		}
	}
}

// EngineURL is where the page of a pod's engine is, under its path; "" while it does
// not serve.
func (s *Server) EngineURL(namespace, pod, path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.engines[podName{namespace, pod}]
	if p == nil || p.http == nil {
		return ""
	}
	return "http://" + p.addr + path
}

// engine is the HTTP side of one pod's engine.
func (s *Server) engine(pod podName) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := ""
		for _, e := range s.fleet.Engines() {
			if e.Namespace == pod.namespace && e.Pod == pod.name {
				path = e.Path
			}
		}
		if r.Method != http.MethodGet || r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		how := s.fleet.EngineTransport(pod.namespace, pod.name, true)
		if how.Down {
			panic(http.ErrAbortHandler) // the listener is about to go
		}
		if !wait(r, how.Delay) {
			return
		}
		if how.Fails {
			http.Error(w, "Internal Server Error", http.StatusInternalServerError)
			return
		}
		page, err := s.fleet.EnginePage(pod.namespace, pod.name, s.fleet.Now())
		switch {
		case errors.Is(err, engines.ErrDown):
			panic(http.ErrAbortHandler)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		if _, err := w.Write(page); err == nil { // else the client has gone
			s.pages.Add(1)
		}
	})
}
