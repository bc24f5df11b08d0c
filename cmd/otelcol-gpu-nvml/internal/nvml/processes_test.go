// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

const compute = "nvmlDeviceGetComputeRunningProcesses"

// entry is a process of so many bytes, of which the library writes some.
func entry(p process, bytes int) []byte {
	b := make([]byte, 32)
	binary.LittleEndian.PutUint32(b, p.pid)
	binary.LittleEndian.PutUint64(b[8:], p.memory)
	binary.LittleEndian.PutUint32(b[16:], p.gi)
	binary.LittleEndian.PutUint32(b[20:], 0)
	return b[:bytes]
}

// listing is a function that lists processes with a stride, and writes so many bytes of each.
func listing(stride, bytes int, processes ...process) function {
	return func(a ...uintptr) Return {
		room := int(get32(a[1], 0))
		put32(a[1], 0, uint32(len(processes)))
		if room < len(processes) {
			return InsufficientSize
		}
		for i, p := range processes {
			copy(at(a[2]+uintptr(i*stride), bytes), entry(p, bytes))
		}
		return Success
	}
}

func TestProcesses(t *testing.T) {
	gi := 3
	three := []process{{pid: 10, memory: 1 << 30, gi: 3}, {pid: 11, memory: allOnes64, gi: NoInstance}, {pid: 12, memory: 0, gi: NoInstance}}
	without := []nvmlproto.Process{{PID: 10, Type: "compute", Memory: 1 << 30}, {PID: 11, Type: "compute", Memory: -1}, {PID: 12, Type: "compute"}}
	with := append([]nvmlproto.Process(nil), without...)
	with[0].GI = &gi
	refused := func(reason string) []nvmlproto.Refused {
		return []nvmlproto.Refused{{Call: compute, Reason: reason, N: 1}}
	}
	for _, c := range []struct {
		name    string
		symbol  string
		do      function
		want    []nvmlproto.Process
		refused []nvmlproto.Refused
		kept    bool // the refusal
	}{
		{name: "none", symbol: compute, do: returns(0)},
		{name: "16 bytes", symbol: compute, do: listing(16, 16, three...), want: without},
		{name: "24 bytes", symbol: compute + "_v2", do: listing(24, 24, three...), want: with},
		{name: "24 bytes of the newest", symbol: compute + "_v3", do: listing(24, 24, three...), want: with},
		{name: "32 bytes of the newest", symbol: compute + "_v3", do: listing(32, 32, three...), want: with},
		{name: "16 bytes of the newest", symbol: compute + "_v3", do: listing(16, 16, three...), want: without},
		{name: "32 bytes, with the last not written", symbol: compute + "_v3", do: listing(32, 24, three...), want: with},
		{name: "24 bytes, with the last not written", symbol: compute + "_v3", do: listing(24, 16, three...), want: without},
		{name: "one of 24 bytes", symbol: compute + "_v3", do: listing(24, 24, three[0]), want: with[:1]},
		{name: "one of 32 bytes", symbol: compute + "_v3", do: listing(32, 32, three[0]), want: with[:1]},
		{name: "20 bytes", symbol: compute + "_v3", do: listing(20, 20, three...), refused: refused(nvmlproto.ReasonStride), kept: true},
		{name: "beyond the entries", symbol: compute + "_v3", do: func(a ...uintptr) Return {
			r := listing(24, 24, three...)(a...)
			if r == Success {
				put64(a[2], 4*32+8, 1) // there is room for four
			}
			return r
		}, refused: refused(nvmlproto.ReasonOverrun), kept: true},
		{name: "more than there is room for", symbol: compute + "_v3", do: func(a ...uintptr) Return {
			r := listing(24, 24, three...)(a...)
			put32(a[1], 0, 100)
			if len(a) > 2 && a[2] == 0 {
				put32(a[1], 0, 3)
			}
			return r
		}, refused: refused(nvmlproto.ReasonOverrun), kept: true},
		{name: "the list grows", symbol: compute, do: func(a ...uintptr) Return {
			put32(a[1], 0, get32(a[1], 0)+1)
			return InsufficientSize
		}, refused: refused(nvmlproto.ReasonBuffer)},
		{name: "a length beyond belief", symbol: compute, do: func(a ...uintptr) Return {
			put32(a[1], 0, 1<<31)
			return InsufficientSize
		}, refused: refused(nvmlproto.ReasonLimit)},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, caller := newFake(map[string]function{c.symbol: c.do})
			got, refusals, r := caller.Processes(board)
			require.Equal(t, Success, r)
			assert.Equal(t, c.want, got.List)
			assert.Equal(t, c.refused, refusals)
			f.taken()
			caller.Forget(board)
			_, _, _ = caller.Processes(board)
			assert.Equal(t, c.kept, len(f.taken()) == 0, "a list without a known layout is not asked for again")
		})
	}
}

func TestALongListIsCut(t *testing.T) {
	many := make([]process, nvmlproto.MaxProcesses+5)
	for i := range many {
		many[i] = process{pid: uint32(i + 1), gi: NoInstance}
	}
	_, caller := newFake(map[string]function{compute + "_v3": listing(24, 24, many...)})
	got, _, r := caller.Processes(board)
	assert.Equal(t, Success, r)
	assert.Len(t, got.List, nvmlproto.MaxProcesses)
	assert.Equal(t, 5, got.Left)
}

func TestProcessesThatFail(t *testing.T) {
	f, caller := newFake(map[string]function{
		compute: returns(999), "nvmlDeviceGetGraphicsRunningProcesses": returns(3),
		"nvmlDeviceGetMPSComputeRunningProcesses_v3": listing(24, 24, process{pid: 4, gi: NoInstance}),
	})
	got, _, r := caller.Processes(board)
	assert.Equal(t, Unknown, r)
	assert.Equal(t, []nvmlproto.Process{{PID: 4, Type: "mps"}}, got.List, "the other lists are there")
	f.set(compute, returns(15))
	f.taken()
	_, _, r = caller.Processes(board)
	assert.True(t, r.Lost())
	assert.Len(t, f.taken(), 1)
}

func TestProcessUtilization(t *testing.T) {
	type sample struct {
		pid, sm uint32
		at      uint64
	}
	var samples []sample
	since := uint64(0)
	_, caller := newFake(map[string]function{"nvmlDeviceGetProcessUtilization": func(a ...uintptr) Return {
		since = uint64(a[3])
		room := int(get32(a[2], 0))
		put32(a[2], 0, uint32(len(samples)))
		switch {
		case len(samples) == 0:
			return NotFound
		case a[1] == 0 || room < len(samples):
			return InsufficientSize
		}
		for i, s := range samples {
			e := a[1] + uintptr(i*utilizationSize)
			put32(e, 0, s.pid)
			put64(e, 8, s.at)
			put32(e, 16, s.sm)
			put32(e, 20, 5)
		}
		return Success
	}})
	busy := func() ([]nvmlproto.Utilization, []nvmlproto.Refused) {
		got, refused, r := caller.Processes(board)
		require.Equal(t, Success, r)
		return got.Busy, refused
	}
	got, _ := busy()
	assert.Empty(t, got)
	samples = []sample{{pid: 9, sm: 50, at: 100}, {pid: 7, sm: 20, at: 90}, {pid: 9, sm: 40, at: 80}, {}}
	got, _ = busy()
	assert.Equal(t, []nvmlproto.Utilization{{PID: 7, SM: 20, Memory: 5}, {PID: 9, SM: 50, Memory: 5}}, got, "the newest of each process")
	samples = []sample{{pid: 9, sm: 50, at: 100}, {pid: 8, sm: 101, at: 110}}
	got, refused := busy()
	assert.Equal(t, uint64(100), since, "since the newest of the last time")
	assert.Empty(t, got)
	assert.Equal(t, []nvmlproto.Refused{{Call: "nvmlDeviceGetProcessUtilization", Reason: nvmlproto.ReasonNumber, N: 1}}, refused)
}

// Whatever a library writes into the buffer is either a list with one stride or refused, and
// reading it stays inside.
func FuzzDecodeProcesses(f *testing.F) {
	for _, stride := range []int{16, 24, 32, 40} {
		var list []byte
		for pid := range 3 {
			list = append(list, make([]byte, stride)...)
			copy(list[pid*stride:], entry(process{pid: uint32(pid) + 1, memory: 1 << 20, gi: 1}, min(stride, 32)))
		}
		f.Add(list, uint32(3), uint8(3))
	}
	f.Add([]byte{}, uint32(0), uint8(0))
	f.Fuzz(func(t *testing.T, list []byte, entries uint32, room uint8) {
		b := newProcessBuffer(make([]uint64, bufferWords(int(room))), int(room))
		copy(bytesOf(b.words), list)
		processes, reason := b.decode(entries)
		if reason != "" {
			assert.Empty(t, processes)
			return
		}
		assert.Len(t, processes, int(entries))
		assert.LessOrEqual(t, entries, uint32(room))
		for word := int(room) * longestEntry; word < len(b.words); word++ {
			if b.written(word) {
				t.Fatalf("word %d was written", word)
			}
		}
		for i, p := range processes {
			if p.pid != uint32(b.words[i*2]) && p.pid != uint32(b.words[i*3]) && p.pid != uint32(b.words[i*4]) {
				t.Fatalf("process %d has another pid than any stride gives it", i)
			}
		}
	})
}
