// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package nvmllab is a laboratory for everything that reads NVML: a fake
// libnvidia-ml.so.1 (folder fakelib) that answers from a simulated node, a root folder
// with sysfs, /proc and /dev of its host, and the helper that reads them. What goes wrong
// is set by device and call.
package nvmllab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	simnvml "github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/nvml"
)

// Options say what is in the laboratory.
type Options struct {
	// Driver is one of Drivers; default "550".
	Driver string
	// Model and Boards are those of the node; default 1 H100. Models has one for each board
	// instead.
	Model  string
	Boards int
	Models []string
	// MIG is the layout of boards, by index: {"0": {"3g.40gb", "1g.10gb"}}.
	MIG map[string][]string
	// Pods hold boards or instances.
	Pods []gpusim.Pod
	// Compute, Attach: see gpusim/nvml.
	Compute map[string]int
	Attach  map[int]map[string]string
	// Fleet and Node stand in for what is above: a node of a fleet that others use as well.
	Fleet *gpusim.Fleet
	Node  string
	// Clock is the time of the fleet; default a clock that only Advance moves.
	Clock func() time.Time
}

// Lab is a laboratory.
type Lab struct {
	Library string // path of libnvidia-ml.so.1
	Root    string // root folder of the host
	Fleet   *gpusim.Fleet
	Node    string
	Host    *simnvml.Host

	t      testing.TB
	folder string
	mu     sync.Mutex
	now    time.Time
	own    bool // the clock is ours
	faults []string
}

// Start makes a laboratory that lasts as long as the test. What callers of the library
// must not do (see Violations) fails the test.
func Start(t testing.TB, opts Options) *Lab {
	t.Helper()
	folder := t.TempDir()
	l := &Lab{t: t, folder: filepath.Join(folder, "lib"), Root: filepath.Join(folder, "root"), now: time.Unix(1767225600, 0)}
	l.Library = filepath.Join(l.folder, "libnvidia-ml.so.1")
	driver := findDriver(t, opts.Driver)
	l.install(driver)
	clock := opts.Clock
	if clock == nil {
		l.own, clock = true, l.Now
	}
	l.Fleet, l.Node = opts.Fleet, opts.Node
	if l.Fleet == nil {
		l.Node = "gpu-node-a"
		boards := opts.Boards
		if opts.Model == "" {
			opts.Model = "H100"
		}
		if boards == 0 && len(opts.Models) == 0 {
			boards = 1
		}
		var err error
		l.Fleet, err = gpusim.New(gpusim.Config{Seed: 1, Nodes: []gpusim.Node{{
			Name: l.Node, Version: "4.6", Fields: "all", Model: opts.Model, Devices: boards, Models: opts.Models, MIG: opts.MIG, Pods: opts.Pods,
		}}}, clock)
		require.NoError(t, err)
	}
	l.Host = simnvml.New(l.Fleet, l.Node, simnvml.Options{Library: l.folder, Root: l.Root, Driver: driver.Version, Compute: opts.Compute, Attach: opts.Attach})
	require.NoError(t, l.Host.Kernel())
	require.NoError(t, os.WriteFile(filepath.Join(l.folder, "trace"), nil, 0o644))
	l.Write()
	t.Cleanup(func() {
		l.Clear()
		l.Host.Close()
		if found := l.Violations(); len(found) > 0 {
			t.Errorf("what a caller of the library must not do: %q", found)
		}
	})
	return l
}

// Now is the time of the fleet, where its clock is the laboratory's.
func (l *Lab) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// Advance moves the clock, and writes the files as they are then.
func (l *Lab) Advance(d time.Duration) {
	l.t.Helper()
	require.True(l.t, l.own, "the clock is not the laboratory's")
	l.mu.Lock()
	l.now = l.now.Add(d)
	l.mu.Unlock()
	l.Write()
}

// Write writes the files as they are now.
func (l *Lab) Write() {
	l.t.Helper()
	require.NoError(l.t, l.Host.Write(l.Fleet.Now()))
}

// Run writes the files every second until the test ends: for a clock that moves by itself.
func (l *Lab) Run() {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(time.Second); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
				_ = l.Host.Write(l.Fleet.Now())
			}
		}
	}()
	l.t.Cleanup(func() { close(stop); <-done })
}

// Truth is what the driver has of each board now.
func (l *Lab) Truth() []gpusim.DriverBoard {
	l.t.Helper()
	boards, err := l.Fleet.DriverBoards(l.Node, l.Fleet.Now())
	require.NoError(l.t, err)
	return boards
}

// Fault makes a call go wrong from now on. device is the index of a board ("3"), of a
// compute instance of it ("3/0"), "-" for calls without a device or "*" for all; call is a
// symbol, a symbol with its argument (nvmlDeviceGetFieldValues(82)), or a key of the state
// (memory.used); both may have * in them. Kinds:
//
//	return N    the call, the field value, the GPM metric returns N
//	hang        the call does not return until the fault is cleared
//	slow MS     the call takes so many milliseconds longer
//	segv, abort the process ends by the signal
//	value V     the key has this value, \xNN is a byte
//	absent      there is no such key: the call returns 3
//	nan         the GPM metric is no number
//	marked_double  the integer's field value says that it is a double
//	reversed    field values come in the opposite order
//	unterminated   the string has no end
//	grow N M    the list has N more entries each time, or the first M times
//	stride N    entries of process lists have N bytes
//	overrun     bytes beyond the buffer are written
func (l *Lab) Fault(device, call, kind string, argument ...any) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	line := strings.TrimSpace(fmt.Sprintln(append([]any{device, call, kind}, argument...)...))
	l.faults = append(slices.DeleteFunc(l.faults, func(old string) bool { return old == line }), line)
	l.writeFaults()
}

// End ends the faults of a device and call.
func (l *Lab) End(device, call string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = slices.DeleteFunc(l.faults, func(line string) bool { return strings.HasPrefix(line, device+" "+call+" ") })
	l.writeFaults()
}

// Clear ends all faults.
func (l *Lab) Clear() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = nil
	l.writeFaults()
}

func (l *Lab) writeFaults() {
	l.t.Helper()
	path := filepath.Join(l.folder, "faults")
	require.NoError(l.t, os.WriteFile(path+".new", []byte(strings.Join(l.faults, "\n")+"\n"), 0o644))
	require.NoError(l.t, os.Rename(path+".new", path))
}

// XID lets a board, or with gi at least 0 an instance of it, have an XID n times: as
// events of the driver. Kernel has the lines of the kernel log.
func (l *Lab) XID(board, gi int, code uint64, n int) {
	l.t.Helper()
	e := simnvml.Event{N: n, Type: 8, Data: code, Board: board, GI: 1<<32 - 1, CI: 1<<32 - 1}
	if gi >= 0 {
		e.GI, e.CI = uint32(gi), 0
	}
	l.Queue(e)
}

// Queue gives events to those that wait for them.
func (l *Lab) Queue(events ...simnvml.Event) {
	l.t.Helper()
	require.NoError(l.t, l.Host.Queue(events...))
}

// Kernel writes records of the kernel log.
func (l *Lab) Kernel(lines ...string) {
	l.t.Helper()
	require.NoError(l.t, l.Host.Kernel(lines...))
}

// KernelXID writes the line that the driver logs for an XID of a board, or with gi at
// least 0 of an instance of it, n times.
func (l *Lab) KernelXID(board, gi int, code uint64, n int) {
	l.t.Helper()
	line := simnvml.KernelXID(l.Truth()[board].PCIBusID, uint32(gi), code)
	l.Kernel(slices.Repeat([]string{line}, n)...)
}

// Violations are what callers of the library did and must not.
func (l *Lab) Violations() []string {
	text, _ := os.ReadFile(filepath.Join(l.folder, "violations"))
	return slices.Compact(strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }))
}

// Call is the begin or the end of a call of the library.
type Call struct {
	PID, Thread string
	End         bool
	Device      string // as in Fault
	Name        string
}

// Calls are the calls so far.
func (l *Lab) Calls() []Call {
	text, _ := os.ReadFile(filepath.Join(l.folder, "trace"))
	var out []Call
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 5 {
			out = append(out, Call{f[0], f[1], f[2] == "end", f[3], f[4]})
		}
	}
	return out
}
