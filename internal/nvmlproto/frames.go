// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package nvmlproto is what the nvml receiver and its helper process say to each other:
// frames over pipes, and the names of readings.
//
// The receiver writes one Request a scrape to the helper's standard input. The helper
// writes Frames to its standard output: of every call of the driver's library its begin
// and its end, so that deadlines are the receiver's, and what it has read.
package nvmlproto

// MaxBoards is how many boards a request reads, and MaxInstances how many GPU instances of
// a board.
const (
	MaxBoards    = 64
	MaxInstances = 16
)

// Version is that of the frames. A receiver replaces a helper with another one.
const Version = 1

// MaxFrame is the longest frame in bytes, without its length.
const MaxFrame = 1 << 20

// Request is one scrape.
type Request struct {
	ID uint64 `json:"id"` // of this request, in the Board and the System that answer it
	// Boards are the PCI addresses (internal/deviceid's form) of the boards to read. Nothing
	// is called for any other board, and its events are not waited for.
	Boards []string `json:"boards"`
	// ByIndex reads all boards by NVML's index instead, where the host has no sysfs of them.
	ByIndex bool `json:"by_index,omitempty"`
	// Groups are the groups of readings to read.
	Groups []Group `json:"groups"`
	// Hourly asks for the readings that hardly ever change, see Reading.Hourly.
	Hourly bool `json:"hourly,omitempty"`
	// PCIe asks for GetPcieThroughput where the board has no GPM, which costs 40 ms a board.
	PCIe bool `json:"pcie,omitempty"`
	// WindowMillis is how far apart two samples of GPM may be: two collection intervals. With
	// 0, it is ten minutes.
	WindowMillis int64 `json:"window_ms,omitempty"`
}

// Frame is what the helper writes. One field is set.
type Frame struct {
	Hello  *Hello  `json:"hello,omitempty"`
	Begin  *Call   `json:"begin,omitempty"`
	End    *Call   `json:"end,omitempty"`
	System *System `json:"system,omitempty"`
	Board  *Board  `json:"board,omitempty"`
	Event  *Event  `json:"event,omitempty"`
}

// Hello is the first frame, before any call.
type Hello struct {
	Version int    `json:"version"`
	Build   string `json:"build"` // version of the distribution
}

// Call is a call of the library. A thread makes one at a time.
type Call struct {
	// Thread is the PCI address (or the index, "#3") of the board that the call is for;
	// empty for a call without a board. Waiting for events is not announced.
	Thread string `json:"t,omitempty"`
	Name   string `json:"c"` // symbol, with what distinguishes it: nvmlDeviceGetClockInfo(1)
	// Of an end:
	Return int     `json:"r,omitempty"`
	Micros float64 `json:"us,omitempty"`
}

// System answers a request first, once the library is loaded and initialised, or not.
type System struct {
	ID      uint64 `json:"id"`
	Library string `json:"library,omitempty"` // path that was loaded
	// Missing are the paths that were tried, with their errors, where no library was found.
	Missing []string `json:"missing,omitempty"`
	Return  int      `json:"r"`               // of nvmlInit_v2
	Error   string   `json:"error,omitempty"` // its text by nvmlErrorString
	Driver  string   `json:"driver,omitempty"`
	NVML    string   `json:"nvml,omitempty"`
	Boards  int      `json:"boards"` // nvmlDeviceGetCount_v2: those that were there at init
	// Answering are the boards that a Board frame follows for, by their Thread.
	Answering []string `json:"answering"`
}

// Board is what was read of one board.
type Board struct {
	ID      uint64 `json:"id"`
	Thread  string `json:"thread"`
	Return  int    `json:"r"`               // of getting its handle; the rest is empty unless 0
	Error   string `json:"error,omitempty"` // its text
	Lost    bool   `json:"lost,omitempty"`  // a call returned 15 or 28: no value of this frame counts
	UUID    string `json:"uuid,omitempty"`
	Name    string `json:"name,omitempty"`
	Serial  string `json:"serial,omitempty"`
	VBIOS   string `json:"vbios,omitempty"`
	PCI     string `json:"pci,omitempty"` // as NVML writes it
	Arch    int    `json:"arch,omitempty"`
	Index   *int   `json:"index,omitempty"` // NVML's
	Minor   *int   `json:"minor,omitempty"` // of /dev/nvidiaN
	GPM     bool   `json:"gpm,omitempty"`   // nvmlGpmQueryDeviceSupport
	Virtual int    `json:"virtual,omitempty"`
	MIG     *MIG   `json:"mig,omitempty"` // nil where the board has no MIG

	Values    Values     `json:"values,omitempty"`
	Instances []Instance `json:"instances,omitempty"`
	// Processes is nil unless the group processes was asked for.
	Processes *Processes `json:"processes,omitempty"`
	// Refused counts what the helper read and refused, by call and reason.
	Refused []Refused `json:"refused,omitempty"`
}

// MIG is the mode of a board: 0 off, 1 on.
type MIG struct {
	Current int `json:"current"`
	Pending int `json:"pending"`
}

// Instance is a GPU instance of a board in MIG mode.
type Instance struct {
	GI      int       `json:"gi"`
	Name    string    `json:"name,omitempty"` // "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
	Compute []Compute `json:"compute,omitempty"`
	Values  Values    `json:"values,omitempty"`
}

// Compute is a compute instance. Its UUID is what allocators hand out.
type Compute struct {
	CI   int    `json:"ci"`
	UUID string `json:"uuid"`
}

// Value is a reading, or what the library returned instead.
type Value struct {
	Name   string `json:"n"`           // Reading.Name
	Row    string `json:"w,omitempty"` // of a reading with several rows
	V      Number `json:"v"`
	Return int    `json:"r,omitempty"` // not 0: there is no value
}

// Refused is what the helper refused of what a call returned.
type Refused struct {
	Call   string `json:"c"`
	Reason string `json:"reason"` // see the Reason constants
	N      int    `json:"n"`
}

// Why the helper refuses a value.
const (
	ReasonStride   = "stride"   // a list of processes with no known layout
	ReasonOverrun  = "overrun"  // the library wrote beyond the buffer's entries
	ReasonBuffer   = "buffer"   // the list grew in each of three tries
	ReasonType     = "type"     // a field value of an unknown type
	ReasonText     = "text"     // a string without end, not UTF-8 or with control characters
	ReasonLimit    = "limit"    // over a limit of boards, instances or rows
	ReasonRepeated = "repeated" // a UUID or a PCI address twice
	ReasonNumber   = "not_a_number"
	ReasonBusy     = "busy"     // GPM: the call of another board did not return
	ReasonAllOnes  = "all_ones" // how the library writes that it does not know a number
	ReasonField    = "field"    // an answer that was not asked for
)

// MaxProcesses is how many processes of a board a frame has.
const MaxProcesses = 4096

// Processes are those on a board and its instances.
type Processes struct {
	List []Process     `json:"list,omitempty"`
	Busy []Utilization `json:"busy,omitempty"`
	// Left is how many the helper left out over MaxProcesses.
	Left int `json:"left,omitempty"`
}

// Process is a process in one of the driver's lists.
type Process struct {
	PID    int    `json:"pid"`
	Type   string `json:"type"`         // compute, graphics or mps
	Memory Number `json:"memory"`       // bytes; -1: unknown
	GI     *int   `json:"gi,omitempty"` // of a process on an instance
}

// Utilization is what a process used since it was last asked for, in percent.
type Utilization struct {
	PID     int `json:"pid"`
	SM      int `json:"sm"`
	Memory  int `json:"memory"`
	Encoder int `json:"encoder"`
	Decoder int `json:"decoder"`
}

// Event is what the driver reported since the last one, or the end of waiting.
type Event struct {
	Thread string `json:"t"`
	UUID   string `json:"uuid,omitempty"`
	XID    []XID  `json:"xid,omitempty"`
	MIG    bool   `json:"mig,omitempty"`   // a change of the MIG configuration
	Ready  bool   `json:"ready,omitempty"` // registered: what happens from now on is reported
	// Return is what ended the waiting: 15 or 28 for good, 3 where the board has no such
	// events, anything else until it is registered again. 0: it goes on.
	Return int `json:"r,omitempty"`
}

// XID is how often a code came.
type XID struct {
	Code uint64 `json:"code"`
	GI   *int   `json:"gi,omitempty"` // of an instance
	N    int    `json:"n"`
}
