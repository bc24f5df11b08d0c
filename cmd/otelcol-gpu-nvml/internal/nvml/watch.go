// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"encoding/binary"
	"math"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

const (
	gpmVersion = 1
	// gpmRoom is how many metrics the memory has room for. The header's maximum grew from 98
	// to 333, and a library may touch as many as its own header has.
	gpmRoom = 512
	// nvmlGpmMetricsGet_t: version@0, count@4, samples@8 and @16, and from 24 on the metrics,
	// 40 bytes each: id@0, return@4, value@8 (float64), and the addresses of three names.
	gpmHead  = 24
	gpmEntry = 40
)

// GPMSupport is whether a board has GPM. As all calls here, it must not be made while another
// one is made for any board. It reads nvmlGpmSupport_t, 8 bytes, with a plain 1 as version
// word, without the size that others have.
func (c *Caller) GPMSupport(d Device) (bool, Return) {
	const symbol = "nvmlGpmQueryDeviceSupport"
	_, r := c.ask(d, call{name: symbol}, variant{symbol, func(s string) Return {
		c.clear(8)
		c.memory[0] = gpmVersion
		return c.invoke(s, s, uintptr(d), c.at(0))
	}})
	return r == Success && uint32(c.memory[0]>>32) == 1, r
}

// SampleAlloc allocates a sample.
func (c *Caller) SampleAlloc() (Sample, Return) {
	const symbol = "nvmlGpmSampleAlloc"
	r := c.invoke(symbol, symbol, c.clear(8))
	return Sample(c.memory[0]), r
}

// SampleFree frees a sample.
func (c *Caller) SampleFree(s Sample) Return {
	const symbol = "nvmlGpmSampleFree"
	return c.invoke(symbol, symbol, uintptr(s))
}

// SampleGet takes a sample of a board.
func (c *Caller) SampleGet(d Device, s Sample) Return {
	_, r := c.ask(d, call{name: "nvmlGpmSampleGet"}, variant{"nvmlGpmSampleGet", func(symbol string) Return {
		return c.invoke(symbol, symbol, uintptr(d), uintptr(s))
	}})
	return r
}

// MigSampleGet takes a sample of a GPU instance of a board.
func (c *Caller) MigSampleGet(parent Device, gi int, s Sample) Return {
	_, r := c.ask(parent, call{name: "nvmlGpmMigSampleGet", argument: uint64(gi)}, variant{"nvmlGpmMigSampleGet", func(symbol string) Return {
		return c.invoke(symbol, symbol, uintptr(parent), uintptr(gi), uintptr(s))
	}})
	return r
}

// Metrics reads the GPM readings among those given of the time between two samples, in one
// call. A value may be NaN, or beyond its range.
func (c *Caller) Metrics(first, second Sample, readings []nvmlproto.Reading) ([]nvmlproto.Value, []nvmlproto.Refused, Return) {
	const symbol = string(nvmlproto.MethodGPM)
	words := c.room((gpmHead + gpmRoom*gpmEntry) / 8)
	memory := bytesOf(words)
	binary.LittleEndian.PutUint64(memory[8:], uint64(first))
	binary.LittleEndian.PutUint64(memory[16:], uint64(second))
	names := map[uint32]string{}
	for i := range readings {
		if readings[i].Method != nvmlproto.MethodGPM || len(names) == gpmRoom {
			continue
		}
		entry := memory[gpmHead+len(names)*gpmEntry:]
		binary.LittleEndian.PutUint32(entry, uint32(readings[i].Argument))
		// What the library does not touch is no value.
		binary.LittleEndian.PutUint32(entry[4:], uint32(Unknown))
		names[uint32(readings[i].Argument)] = readings[i].Name
	}
	if len(names) == 0 {
		return nil, nil, Success
	}
	asked := len(names)
	binary.LittleEndian.PutUint32(memory, gpmVersion)
	binary.LittleEndian.PutUint32(memory[4:], uint32(asked))
	r := c.invoke(symbol, symbol, addressOf(words))
	if r != Success {
		return nil, nil, r
	}
	var (
		values  []nvmlproto.Value
		refused []nvmlproto.Refused
	)
	for i := range asked {
		entry := memory[gpmHead+i*gpmEntry:]
		id := binary.LittleEndian.Uint32(entry)
		name, ok := names[id]
		if !ok {
			refused = append(refused, nvmlproto.Refused{Call: symbol, Reason: nvmlproto.ReasonField, N: 1})
			continue
		}
		delete(names, id)
		value := nvmlproto.Value{Name: name, Return: int(int32(binary.LittleEndian.Uint32(entry[4:])))}
		if value.Return == 0 {
			value.V = nvmlproto.Number(math.Float64frombits(binary.LittleEndian.Uint64(entry[8:])))
		}
		values = append(values, value)
	}
	return values, refused, Success
}

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
