// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server serves an API at one address, and can be away.
type Server struct {
	*API
	addr string

	serving sync.Mutex // guards server
	server  *http.Server
}

// Serve serves the API at host:port until Close.
func Serve(a *API, address string) (*Server, error) {
	s := &Server{API: a, addr: address}
	return s, s.open()
}

// URL is where clients find the API.
func (s *Server) URL() string { return "http://" + s.addr }

// Close ends the server.
func (s *Server) Close() {
	s.serving.Lock()
	server := s.server
	s.server = nil
	s.serving.Unlock()
	if server != nil {
		_ = server.Close()
	}
}

// Set changes how the server behaves from now on; requests under way are cut off.
func (s *Server) Set(mode Mode) error {
	s.behave(mode)
	s.Close()
	if mode == Away {
		return nil
	}
	return s.open()
}

func (s *Server) open() error {
	s.serving.Lock()
	defer s.serving.Unlock()
	if s.server != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	s.server = &http.Server{Handler: s.API, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go func(server *http.Server) { _ = server.Serve(l) }(s.server) // ends with Close
	return nil
}
