// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

const (
	// memoryWords is how much of a caller's memory a call may write: more than any layout of
	// today, since a newer library may write more than an older one.
	memoryWords = 1024
	// askAgain is how long a call that lacks a right is left out.
	askAgain = 10 * time.Minute
)

// Caller makes the calls of one thread, one at a time: the thread that has it must be locked
// to its goroutine. What a board cannot answer is remembered here, and not asked again.
type Caller struct {
	library  *Library
	announce Announce
	memory   []uint64 // what the library writes to; no stack, which Go may move
	large    []uint64 // the same, for lists
	devices  map[Device]*known
}

// known is what is remembered of a device.
type known struct {
	answers  map[call]answer
	identity *identity
	nvlink   nvlink
	// refusedLists are the calls that gave a list of no known layout. They are not asked for
	// again, whatever else changes.
	refusedLists map[string]bool
	utilization  uint64 // time of the newest sample of processes, in µs
}

// call is what is remembered separately: a function, with what distinguishes its uses.
type call struct {
	name     string
	argument uint64
}

// answer is what is remembered of a call.
type answer struct {
	variant int    // the newest that is available
	fixed   Return // not 0: the call is left out, and this is what it returned
	until   time.Time
}

// variant is a function that answers a call, newest first.
type variant struct {
	symbol string
	make   func(function string) Return
}

// device returns what is remembered of a device.
func (c *Caller) device(d Device) *known {
	k := c.devices[d]
	if k == nil {
		k = &known{answers: map[call]answer{}, refusedLists: map[string]bool{}}
		c.devices[d] = k
	}
	return k
}

// Forget makes every call for a device again: its MIG mode has changed.
func (c *Caller) Forget(d Device) {
	if k := c.devices[d]; k != nil {
		c.devices[d] = &known{answers: map[call]answer{}, refusedLists: k.refusedLists, nvlink: k.nvlink, utilization: k.utilization}
	}
}

// remembered returns what a call returned that is left out this time, and 0 where it is to
// be made.
func (c *Caller) remembered(d Device, of call) Return {
	a := c.device(d).answers[of]
	if a.fixed != 0 && (a.until.IsZero() || c.library.now().Before(a.until)) {
		return a.fixed
	}
	return Success
}

// remember keeps what a call returned, where it matters for the next one.
func (c *Caller) remember(d Device, of call, variant int, r Return) {
	a := answer{variant: variant}
	switch {
	case r.Unavailable():
		a.fixed = r
	case r.Denied():
		a.fixed, a.until = r, c.library.now().Add(askAgain)
	}
	c.device(d).answers[of] = a
}

// ask makes a call by the newest of the functions that answers it for the device, and
// returns which one that was.
func (c *Caller) ask(d Device, of call, variants ...variant) (int, Return) {
	if r := c.remembered(d, of); r != Success {
		return 0, r
	}
	result := FunctionNotFound
	for i := c.device(d).answers[of].variant; i < len(variants); i++ {
		r := variants[i].make(variants[i].symbol)
		if !r.Unavailable() {
			c.remember(d, of, i, r)
			return i, r
		}
		// That there is no such function means less than what another one returned.
		if r != FunctionNotFound || result == FunctionNotFound {
			result = r
		}
	}
	c.remember(d, of, 0, result)
	return 0, result
}

// invoke makes a call. label is what it is announced as.
func (c *Caller) invoke(symbol, label string, arguments ...uintptr) Return {
	function := c.library.find(symbol)
	if function == nil {
		return FunctionNotFound
	}
	if c.announce == nil {
		r := Return(int32(function(arguments...)))
		runtime.KeepAlive(c)
		return r
	}
	c.announce.Begin(label)
	began := c.library.now()
	r := Return(int32(function(arguments...)))
	runtime.KeepAlive(c)
	c.announce.End(label, r, float64(c.library.now().Sub(began).Nanoseconds())/1000)
	return r
}

// clear empties the first bytes of the memory, and returns its address.
func (c *Caller) clear(bytes int) uintptr {
	clear(c.memory[:(bytes+7)/8])
	return c.at(0)
}

// room returns so many empty words for a list, which stay as they are until it is called again.
func (c *Caller) room(words int) []uint64 {
	if cap(c.large) < words {
		c.large = make([]uint64, words)
	}
	list := c.large[:words]
	clear(list)
	return list
}

// at returns the address of a word of the memory, which stays where it is: it is not on a
// stack.
func (c *Caller) at(word int) uintptr { return uintptr(unsafe.Pointer(&c.memory[word])) }

// bytes are those of the memory.
func (c *Caller) bytes() []byte { return bytesOf(c.memory) }

// addressOf returns the address of a caller's words.
func addressOf(words []uint64) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(words))) }

// bytesOf returns the bytes of words.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
}

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
