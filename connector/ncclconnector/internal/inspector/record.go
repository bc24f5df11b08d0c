// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package inspector reads the lines that NCCL's Inspector plugin writes, one file a process:
// versions v4.0 (NCCL 2.28 to 2.30), v4.3 and v4.4 (NCCL's development version) and v5.0 (RCCL).
// Source: plugins/profiler/inspector of github.com/NVIDIA/nccl.
//
// It has no clock and no I/O. What it cannot read it refuses for one cause of a closed list.
package inspector

import (
	"strconv"
	"time"
)

// Key is what distinguishes a communicator. Its id alone does not: Inspector prints a hash of 16
// digits into a field that has room for 14 of them.
type Key struct {
	ID           string
	Ranks, Nodes int
	Name         string // "" before NCCL 2.30.3
}

// Label is the communicator's name, or its shape.
func (k Key) Label() string {
	if k.Name != "" {
		return k.Name
	}
	return strconv.Itoa(k.Ranks) + "x" + strconv.Itoa(k.Nodes)
}

// Source is whose records they are.
type Source struct {
	Key  Key
	Rank int
	Host string
	PID  int64
	// Dumped is when Inspector wrote the record, by the node's clock. It is that of the batch in
	// v4.3 and v4.4.
	Dumped time.Time
}

// Record is an operation that ended on a rank.
type Record struct {
	Source
	Operation string
	Sequence  uint64 // of the communicator and the operation
	Bytes     uint64 // as NCCL states it, 0: unknown
	Duration  time.Duration
	Timing    string // what was timed: TimedKernel is exact
	Graph     bool   // captured in a graph, as RCCL states
	// Contradicts is set where the stated bandwidth differs by more than 2 % from that of size
	// and time.
	Contradicts bool
}

// TimedKernel is the Timing of a record of a GPU's own clock.
const TimedKernel = "kernel_gpu"

// Drops are how many records Inspector had no room for since the process began.
type Drops struct {
	Source
	Collective, PointToPoint, Proxy uint64
}

// Cause is why a line is refused.
type Cause string

// The causes.
const (
	Fine       Cause = ""
	NUL        Cause = "nul"     // holes of a file that was truncated while it was written
	Torn       Cause = "torn"    // a part of a line
	Joined     Cause = "joined"  // more than one object
	Version    Cause = "version" // of a format that is not known
	Shape      Cause = "unknown" // other fields than those of Inspector
	NoContext  Cause = "no_context"
	Incomplete Cause = "incomplete" // a batch that ended before its count: its marker is used
	Size       Cause = "size"
	Duration   Cause = "duration"
	BadRank    Cause = "rank"
	Text       Cause = "text" // a name that is too long or no text
)

// Traffic is the size of a record's messages and what a link carried of them in bytes, as NCCL's tests define
// the bus bandwidth (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md). The line of an AllGather or
// a ReduceScatter has one rank's part. ok is false for operations whose size Inspector does not
// know (inspector.cc sets it to 0, also for AlltoAll).
func (r *Record) Traffic() (message, bus float64, ok bool) {
	n, size := float64(r.Key.Ranks), float64(r.Bytes)
	if r.Bytes == 0 {
		return 0, 0, false
	}
	switch r.Operation {
	case AllReduce:
		return size, size * 2 * (n - 1) / n, true
	case AllGather, ReduceScatter:
		return size * n, size * (n - 1), true
	case "Broadcast", "Reduce", "Send", "Recv":
		return size, size, true
	}
	return 0, 0, false
}

// Operations in which every rank waits for the last one to come.
const (
	AllReduce     = "AllReduce"
	AllGather     = "AllGather"
	ReduceScatter = "ReduceScatter"
)

// Synchronises reports whether every rank waits in it for the last one to come.
func Synchronises(operation string) bool {
	return operation == AllReduce || operation == AllGather || operation == ReduceScatter
}
