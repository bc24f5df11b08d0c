// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package nvml has the calls of the driver's library: their symbols and versions, the
// layouts of what they write, and what of it can be relied on. It calls no function that
// changes anything. Threads, deadlines and the order of calls are its user's.
//
// Layouts and numbers are those of nvml.h for LP64, in NVIDIA/go-nvml (gen/nvml/nvml.h) and
// NVIDIA/nvidia-settings (src/nvml.h, for older drivers).
package nvml

import (
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/otelcol-gpu-nvml/internal/library"
)

// Handles of the library.
type (
	Device uintptr // a board, or a compute instance in MIG mode
	Sample uintptr // a memory for a sample of GPM
	Set    uintptr // a set of events
)

// Announce is called before and after each call of the library.
type Announce interface {
	Begin(call string)
	End(call string, r Return, micros float64)
}

// Functions are those of a library.
type Functions interface {
	Find(symbol string) (library.Function, bool)
	Path() string
}

// Library is a loaded library. It is safe for concurrent use.
type Library struct {
	functions Functions
	now       func() time.Time
	mu        sync.Mutex
	found     map[string]library.Function // nil: the library has no such symbol
}

// Open loads the library: that at path, or, where path is empty, the first that loads of the
// loader's own and those in folders. tried has the paths that did not load, with their
// errors.
func Open(path string, folders []string) (lib *Library, tried []string, err error) {
	loaded, tried, err := library.Open(path, folders)
	if err != nil {
		return nil, tried, err
	}
	return New(loaded, time.Now), tried, nil
}

// New returns a library of the given functions. now is the time by which refused calls are
// made again, and by which calls are timed.
func New(functions Functions, now func() time.Time) *Library {
	return &Library{functions: functions, now: now, found: map[string]library.Function{}}
}

// Path is the file that was loaded.
func (l *Library) Path() string { return l.functions.Path() }

// Caller returns what makes the calls of one thread, and announces them unless announce is
// nil.
func (l *Library) Caller(announce Announce) *Caller {
	return &Caller{library: l, announce: announce, memory: make([]uint64, memoryWords), devices: map[Device]*known{}}
}

// find returns a function, or nil. A symbol is looked for when it is first needed.
func (l *Library) find(symbol string) library.Function {
	l.mu.Lock()
	defer l.mu.Unlock()
	function, ok := l.found[symbol]
	if !ok {
		function, _ = l.functions.Find(symbol)
		l.found[symbol] = function
	}
	return function
}
