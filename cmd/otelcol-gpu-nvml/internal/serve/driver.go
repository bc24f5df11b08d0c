// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package serve answers the nvml receiver's requests with what the driver's library gives:
// a thread for the library as a whole, one for each board, and one for each board's events.
// A call that hangs holds its own thread alone.
package serve

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Handles of the library, and its return codes.
type (
	Device uintptr
	Sample uintptr
	Set    uintptr
)

// Announce is called before each call and after its return.
type Announce interface {
	Begin(call string)
	End(call string, returned int, took time.Duration)
}

// Instance is a GPU instance, with the handle that reads it: that of its first compute
// instance.
type Instance struct {
	nvmlproto.Instance
	Handle Device
}

// Event is one event of a board. GI is 2^32-1 for one of the whole board.
type Event struct {
	Type, Data uint64
	GI         uint32
}

// Library is the driver's library, once it is loaded.
type Library interface {
	// Caller returns what calls the library from one thread. Without announce, its calls are
	// not announced.
	Caller(announce Announce) Caller
}

// Caller calls the library from one thread. Methods that return an int return the
// library's return code, 0 for success.
type Caller interface {
	Init() int
	Shutdown() int
	ErrorString(returned int) string
	Driver() (string, int)
	NVML() (string, int)
	Count() (int, int)

	ByPCI(address string) (Device, int)
	ByIndex(i int) (Device, int)
	// Identify fills in what never changes: UUID, name, …. It returns what asking for the UUID
	// returned.
	Identify(d Device, board *nvmlproto.Board) int
	// MIG is nil where the board has none.
	MIG(d Device) *nvmlproto.MIG
	Instances(d Device) ([]Instance, []nvmlproto.Refused, int)
	// Forget makes it ask again for what the board answered to be not available.
	Forget(d Device)
	// Read reads all but GPM, of a board or an instance.
	Read(d Device, readings []nvmlproto.Reading) ([]nvmlproto.Value, []nvmlproto.Refused)
	Processes(d Device) (*nvmlproto.Processes, []nvmlproto.Refused)

	GPMSupport(d Device) (bool, int)
	NewSample() (Sample, int)
	TakeSample(d Device, into Sample) int
	TakeInstanceSample(board Device, gi int, into Sample) int
	Metrics(from, to Sample, readings []nvmlproto.Reading) ([]nvmlproto.Value, int)
	FreeSample(s Sample)

	NewSet() (Set, int)
	EventTypes(d Device) (uint64, int)
	Register(d Device, types uint64, s Set) int
	Wait(s Set, timeout time.Duration) (Event, int)
	FreeSet(s Set)
}

// Types of events.
const (
	eventXID = 0x8
	eventMIG = 0x100
)

// wholeBoard is the GPU instance of an event that is none's.
const wholeBoard = 1<<32 - 1
