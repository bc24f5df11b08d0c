// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

const (
	// maxListed is the longest list of processes that is read.
	maxListed = 1 << 14
	tries     = 3 // with a larger buffer each
	// utilizationSize is that of nvmlProcessUtilizationSample_t: pid@0, time@8 (µs), and in
	// percent SM@16, memory@20, encoder@24, decoder@28.
	utilizationSize = 32
)

// lists reads the lists of processes of a board.
type lists struct {
	c         *Caller
	d         Device
	processes nvmlproto.Processes
	refused   []nvmlproto.Refused
}

// all reads all lists.
func (l *lists) all() (result Return) {
	for _, list := range []struct{ kind, symbol string }{
		{"compute", "nvmlDeviceGetComputeRunningProcesses"},
		{"graphics", "nvmlDeviceGetGraphicsRunningProcesses"},
		{"mps", "nvmlDeviceGetMPSComputeRunningProcesses"},
	} {
		r := l.list(list.kind, list.symbol)
		if r.Lost() || r.Unusable() {
			return r
		}
		if result == Success && !r.Unavailable() {
			result = r
		}
	}
	if r := l.utilization(); result == Success && !r.Unavailable() {
		result = r
	}
	return result
}

// list reads one list, by the newest function that the board has.
func (l *lists) list(kind, name string) Return {
	k := l.c.device(l.d)
	if k.refusedLists[name] {
		return Success
	}
	var read []process
	reason := ""
	make := func(symbol string) Return {
		var r Return
		read, reason, r = l.read(symbol)
		return r
	}
	_, r := l.c.ask(l.d, call{name: name}, variant{name + "_v3", make}, variant{name + "_v2", make}, variant{name, make})
	if r != Success {
		return r
	}
	if reason != "" {
		l.refuse(name, reason)
		// A list that grew may be read the next time.
		k.refusedLists[name] = reason == nvmlproto.ReasonStride || reason == nvmlproto.ReasonOverrun
		return Success
	}
	for _, p := range read {
		l.add(kind, p)
	}
	return Success
}

// add adds a process, as far as there is room.
func (l *lists) add(kind string, p process) {
	if len(l.processes.List) == nvmlproto.MaxProcesses {
		l.processes.Left++
		return
	}
	listed := nvmlproto.Process{PID: int(p.pid), Type: kind, Memory: nvmlproto.Number(p.memory)}
	if p.memory == allOnes64 {
		listed.Memory = -1
	}
	if p.gi != NoInstance {
		gi := int(p.gi)
		listed.GI = &gi
	}
	l.processes.List = append(l.processes.List, listed)
}

// read reads a list by one function. It asks for the length first, which the library returns
// as that of a buffer that is too small.
func (l *lists) read(symbol string) (processes []process, reason string, r Return) {
	r = l.c.invoke(symbol, symbol+"(count)", uintptr(l.d), l.c.clear(4), 0)
	n := uint32(l.c.memory[0])
	for range tries {
		if r != InsufficientSize {
			// Success without a buffer: there is no process.
			return nil, "", r
		}
		if n > maxListed {
			return nil, nvmlproto.ReasonLimit, Success
		}
		room := int(n + n/4 + 1)
		buffer := newProcessBuffer(l.c.room(bufferWords(room)), room)
		l.c.memory[0] = uint64(room)
		r = l.c.invoke(symbol, symbol, uintptr(l.d), l.c.at(0), addressOf(buffer.words))
		n = max(uint32(l.c.memory[0]), uint32(room))
		if r == Success {
			processes, reason = buffer.decode(uint32(l.c.memory[0]))
			return processes, reason, r
		}
	}
	if r != InsufficientSize {
		return nil, "", r
	}
	return nil, nvmlproto.ReasonBuffer, Success
}

// utilization reads what processes used since the newest sample of the last time.
func (l *lists) utilization() Return {
	const symbol = "nvmlDeviceGetProcessUtilization"
	var memory []byte
	_, r := l.c.ask(l.d, call{name: symbol}, variant{symbol, func(string) Return {
		var r Return
		memory, r = l.samples(symbol)
		return r
	}})
	if r == NotFound { // no process has used the board since then
		return Success
	}
	if r != Success {
		return r
	}
	k := l.c.device(l.d)
	newest := map[uint32][]byte{}
	since := k.utilization
	for ; len(memory) >= utilizationSize; memory = memory[utilizationSize:] {
		pid, at := binary.LittleEndian.Uint32(memory), binary.LittleEndian.Uint64(memory[8:])
		// A process may have several samples. Places without one are empty.
		if at <= since || newest[pid] != nil && binary.LittleEndian.Uint64(newest[pid][8:]) >= at {
			continue
		}
		newest[pid] = memory[:utilizationSize]
		k.utilization = max(k.utilization, at)
	}
	for pid, sample := range newest {
		percent := func(at int) int { return int(binary.LittleEndian.Uint32(sample[at:])) }
		if percent(16) > 100 || percent(20) > 100 || percent(24) > 100 || percent(28) > 100 {
			l.refuse(symbol, nvmlproto.ReasonNumber)
			continue
		}
		l.processes.Busy = append(l.processes.Busy, nvmlproto.Utilization{
			PID: int(pid), SM: percent(16), Memory: percent(20), Encoder: percent(24), Decoder: percent(28),
		})
	}
	slices.SortFunc(l.processes.Busy, func(a, b nvmlproto.Utilization) int { return cmp.Compare(a.PID, b.PID) })
	if over := len(l.processes.Busy) - nvmlproto.MaxProcesses; over > 0 {
		l.processes.Busy = l.processes.Busy[:nvmlproto.MaxProcesses]
	}
	return Success
}

// samples reads the samples of processes: first their number, then themselves.
func (l *lists) samples(symbol string) ([]byte, Return) {
	since := l.c.device(l.d).utilization
	r := l.c.invoke(symbol, symbol+"(count)", uintptr(l.d), 0, l.c.clear(4), uintptr(since))
	n := uint32(l.c.memory[0])
	for range tries {
		if r != InsufficientSize {
			return nil, r
		}
		if n > maxListed {
			l.refuse(symbol, nvmlproto.ReasonLimit)
			return nil, Success
		}
		room := int(n + n/4 + 1)
		// Twice as much: a library with longer entries must not reach other memory.
		words := l.c.room(2 * room * utilizationSize / 8)
		l.c.memory[0] = uint64(room)
		r = l.c.invoke(symbol, symbol, uintptr(l.d), addressOf(words), l.c.at(0), uintptr(since))
		n = uint32(l.c.memory[0])
		if r == Success {
			return bytesOf(words)[:min(int(n), room)*utilizationSize], Success
		}
		n = max(n, uint32(room))
	}
	if r != InsufficientSize {
		return nil, r
	}
	l.refuse(symbol, nvmlproto.ReasonBuffer)
	return nil, Success
}

func (l *lists) refuse(call, reason string) {
	l.refused = append(l.refused, nvmlproto.Refused{Call: call, Reason: reason, N: 1})
}
