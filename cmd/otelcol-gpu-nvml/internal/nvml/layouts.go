// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"encoding/binary"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// All ones is how the library writes that a number is not known.
const (
	allOnes32 = 1<<32 - 1
	allOnes64 = 1<<64 - 1
)

// kind is how a number is stored.
type kind int

const (
	unsigned32 kind = iota
	unsigned64
	signed32
)

// place is where a number is in what a function writes.
type place struct {
	offset int
	kind   kind
}

// layout is a function, and what it writes.
type layout struct {
	symbol string
	passed bool   // the reading's argument is passed to the function
	second bool   // the function writes a second number, by an address of its own
	word   uint32 // that the function is given in its first four bytes: size and version
	// places are those of the numbers by the reading's argument, or of the only one where the
	// argument is passed.
	places []place
}

// versioned is the word by which the library knows the layout.
func versioned(size, version uint32) uint32 { return size | version<<24 }

// layoutSize is how many bytes of the memory the function may write by today's headers.
const layoutSize = 64

// layouts are the functions of each method, newest first. Methods that are not here are read
// in ways of their own.
var layouts = map[nvmlproto.Method][]layout{
	nvmlproto.MethodUtilization: {{symbol: "nvmlDeviceGetUtilizationRates", places: []place{{0, unsigned32}, {4, unsigned32}}}},
	// Behind the percentage, the time over which it was sampled, in µs.
	nvmlproto.MethodEncoder: {{symbol: "nvmlDeviceGetEncoderUtilization", second: true, places: []place{{0, unsigned32}}}},
	nvmlproto.MethodDecoder: {{symbol: "nvmlDeviceGetDecoderUtilization", second: true, places: []place{{0, unsigned32}}}},
	// total, used, free, reserved. What is used includes what is reserved in the older one.
	nvmlproto.MethodMemory: {
		{symbol: "nvmlDeviceGetMemoryInfo_v2", word: versioned(40, 2), places: []place{{8, unsigned64}, {32, unsigned64}, {24, unsigned64}, {16, unsigned64}}},
		{symbol: "nvmlDeviceGetMemoryInfo", places: []place{{0, unsigned64}, {16, unsigned64}, {8, unsigned64}}},
	},
	nvmlproto.MethodPower:         {{symbol: "nvmlDeviceGetPowerUsage", places: []place{{0, unsigned32}}}},
	nvmlproto.MethodPowerLimit:    {{symbol: "nvmlDeviceGetPowerManagementLimit", places: []place{{0, unsigned32}}}},
	nvmlproto.MethodEnforcedLimit: {{symbol: "nvmlDeviceGetEnforcedPowerLimit", places: []place{{0, unsigned32}}}},
	nvmlproto.MethodEnergy:        {{symbol: "nvmlDeviceGetTotalEnergyConsumption", places: []place{{0, unsigned64}}}},
	// The sensor is 0, that of the GPU: in bytes 4 to 7 of the newer one, passed to the other.
	nvmlproto.MethodTemperature: {
		{symbol: "nvmlDeviceGetTemperatureV", word: versioned(12, 1), places: []place{{8, signed32}}},
		{symbol: "nvmlDeviceGetTemperature", passed: true, places: []place{{0, unsigned32}}},
	},
	nvmlproto.MethodThreshold: {{symbol: "nvmlDeviceGetTemperatureThreshold", passed: true, places: []place{{0, unsigned32}}}},
	nvmlproto.MethodMargin:    {{symbol: "nvmlDeviceGetMarginTemperature", word: versioned(8, 1), places: []place{{4, signed32}}}},
	nvmlproto.MethodClock:     {{symbol: "nvmlDeviceGetClockInfo", passed: true, places: []place{{0, unsigned32}}}},
	nvmlproto.MethodClockReasons: {
		{symbol: "nvmlDeviceGetCurrentClocksEventReasons", places: []place{{0, unsigned64}}},
		{symbol: "nvmlDeviceGetCurrentClocksThrottleReasons", places: []place{{0, unsigned64}}},
	},
	nvmlproto.MethodPCIe: {{symbol: "nvmlDeviceGetPcieThroughput", passed: true, places: []place{{0, unsigned32}}}},
}

// number is what a function wrote, or that the library does not know it.
type number struct {
	value float64
	known bool
}

// read returns the number at a place.
func (p place) read(memory []byte) number {
	switch p.kind {
	case unsigned64:
		n := binary.LittleEndian.Uint64(memory[p.offset:])
		return number{float64(n), n != allOnes64}
	case signed32:
		return number{float64(int32(binary.LittleEndian.Uint32(memory[p.offset:]))), true}
	default:
		n := binary.LittleEndian.Uint32(memory[p.offset:])
		return number{float64(n), n != allOnes32}
	}
}
