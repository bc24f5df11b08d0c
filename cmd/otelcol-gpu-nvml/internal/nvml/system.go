// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"runtime"
	"unsafe"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// Lengths of strings, in bytes, with their zero.
const (
	systemLength = 80
	nameLength   = 96
	serialLength = 30
	vbiosLength  = 32
)

// Init initialises the library. That touches no board; getting its handle does.
func (c *Caller) Init() Return { return c.invoke("nvmlInit_v2", "nvmlInit_v2") }

// Shutdown ends what Init began.
func (c *Caller) Shutdown() Return { return c.invoke("nvmlShutdown", "nvmlShutdown") }

// Driver is the driver's version, such as 550.54.15, and empty where it cannot be read.
func (c *Caller) Driver() (string, Return) {
	return c.text("nvmlSystemGetDriverVersion", systemLength)
}

// NVML is the library's own version, such as 12.550.54.15.
func (c *Caller) NVML() (string, Return) { return c.text("nvmlSystemGetNVMLVersion", systemLength) }

// Count is how many boards there were when the library was initialised.
func (c *Caller) Count() (int, Return) {
	const symbol = "nvmlDeviceGetCount_v2"
	r := c.invoke(symbol, symbol, c.clear(4))
	return int(uint32(c.memory[0])), r
}

// ByPCI returns the board at a PCI address. It touches no other board.
func (c *Caller) ByPCI(address string) (Device, Return) {
	const symbol = "nvmlDeviceGetHandleByPciBusId_v2"
	c.clear(8 + nameLength)
	// The second word and those after it have the address, with a zero behind.
	copy(c.bytes()[8:8+nameLength-1], address)
	r := c.invoke(symbol, symbol, c.at(1), c.at(0))
	return Device(c.memory[0]), r
}

// ByIndex returns a board by NVML's index, which is neither that of /dev nor CUDA's.
func (c *Caller) ByIndex(index int) (Device, Return) {
	const symbol = "nvmlDeviceGetHandleByIndex_v2"
	r := c.invoke(symbol, symbol, uintptr(index), c.clear(8))
	return Device(c.memory[0]), r
}

// ErrorString is the library's text for a return.
func (c *Caller) ErrorString(r Return) string {
	const longest = 256
	function := c.library.find("nvmlErrorString")
	if function == nil {
		return "return " + r.String()
	}
	// A constant of the library: it stays where it is.
	address := function(uintptr(r))
	var text []byte
	for p := *(*unsafe.Pointer)(unsafe.Pointer(&address)); p != nil && *(*byte)(p) != 0 && len(text) < longest; p = unsafe.Add(p, 1) {
		text = append(text, *(*byte)(p))
	}
	runtime.KeepAlive(c)
	if len(text) == 0 {
		return "return " + r.String()
	}
	return safetext.Strip(string(text), longest)
}

// text reads a string of the system.
func (c *Caller) text(symbol string, length int) (string, Return) {
	if r := c.invoke(symbol, symbol, c.clear(length), uintptr(length)); r != Success {
		return "", r
	}
	text, _ := readText(c.bytes()[:length])
	return text, Success
}
