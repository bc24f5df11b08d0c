// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import "encoding/binary"

// Types of events.
const (
	EventXID uint64 = 0x8
	EventMIG uint64 = 0x100 // a change of the MIG configuration
)

// NoInstance is the number of the GPU instance and of the compute instance of an event that
// belongs to none.
const NoInstance = 1<<32 - 1

// Event is what the driver reports.
type Event struct {
	Device Device
	Type   uint64
	Data   uint64 // the code of an XID
	GI, CI uint32
}

// EventSet creates a set.
func (c *Caller) EventSet() (Set, Return) {
	const symbol = "nvmlEventSetCreate"
	r := c.invoke(symbol, symbol, c.clear(8))
	return Set(c.memory[0]), r
}

// EventTypes are the types of events that a board has.
func (c *Caller) EventTypes(d Device) (uint64, Return) {
	const symbol = "nvmlDeviceGetSupportedEventTypes"
	r := c.invoke(symbol, symbol, uintptr(d), c.clear(8))
	return c.memory[0], r
}

// Register adds types of events of a board to a set.
func (c *Caller) Register(d Device, types uint64, s Set) Return {
	const symbol = "nvmlDeviceRegisterEvents"
	return c.invoke(symbol, symbol, uintptr(d), uintptr(types), uintptr(s))
}

// Wait waits for an event of a set, at most so many milliseconds: then it returns Timeout.
func (c *Caller) Wait(s Set, milliseconds uint32) (Event, Return) {
	symbol := "nvmlEventSetWait_v2"
	if c.library.find(symbol) == nil {
		symbol = "nvmlEventSetWait"
	}
	// nvmlEventData_t, 32 bytes: device@0, type@8, data@16, GPU instance@24, compute
	// instance@28. The older function writes the first 24.
	c.clear(32)
	c.memory[3] = 1<<64 - 1
	r := c.invoke(symbol, symbol, uintptr(s), c.at(0), uintptr(milliseconds))
	if r != Success {
		return Event{}, r
	}
	instances := c.bytes()[24:]
	return Event{
		Device: Device(c.memory[0]),
		Type:   c.memory[1],
		Data:   c.memory[2],
		GI:     binary.LittleEndian.Uint32(instances),
		CI:     binary.LittleEndian.Uint32(instances[4:]),
	}, Success
}

// FreeSet frees a set.
func (c *Caller) FreeSet(s Set) Return {
	const symbol = "nvmlEventSetFree"
	return c.invoke(symbol, symbol, uintptr(s))
}
