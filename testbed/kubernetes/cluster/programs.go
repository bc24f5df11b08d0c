// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"path/filepath"
	"slices"
	"sync"
)

// programs are those of a control plane that run. Its methods may be called
// concurrently.
type programs struct {
	bin, dir string

	mu      sync.Mutex // guards what follows
	running []*process // in the order in which they were started
}

// start starts a program of the control plane, which lives until stop.
func (s *programs) start(name string, args ...string) error {
	return s.run(filepath.Join(s.bin, name), nil, args...)
}

// run starts any program, which lives until stop.
func (s *programs) run(path string, env []string, args ...string) error {
	p, err := startProcess(path, s.dir, env, args...)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = append(s.running, p)
	return nil
}

// find returns a program by its name, nil if it does not run.
func (s *programs) find(name string) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.running {
		if p.name == name {
			return p
		}
	}
	return nil
}

// take returns a program by its name and leaves what becomes of it to the caller; nil
// if it does not run.
func (s *programs) take(name string) *process {
	p := s.find(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = slices.DeleteFunc(s.running, func(o *process) bool { return o == p })
	return p
}

// stop ends every program. It may be called more than once.
func (s *programs) stop() {
	s.mu.Lock()
	running := s.running
	s.running = nil
	s.mu.Unlock()
	// What uses the API server goes first, and together; etcd goes last.
	var clients sync.WaitGroup
	for _, p := range running {
		if p.name != "etcd" && p.name != apiServer {
			clients.Go(p.stop)
		}
	}
	clients.Wait()
	for _, p := range slices.Backward(running) {
		p.stop()
	}
}

// pids are the process ids, by the program's name.
func (s *programs) pids() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	pids := make(map[string]int, len(s.running))
	for _, p := range s.running {
		pids[p.name] = p.pid
	}
	return pids
}

// ended returns which program has ended, and its last output.
func (s *programs) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.running {
		errs = append(errs, p.ended())
	}
	return errors.Join(errs...)
}
