// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import "github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"

// The entries of a list of processes had 16 bytes (pid@0, memory@8), then 24 (and GPU
// instance@16, compute instance@20), then 32 in drivers 535.43 to 535.86 (and protected
// memory@24), and 24 again, under one symbol; a library of a later driver filled 16
// (XuehaiPan/nvitop #226). So the length is found from what was written.
var strides = []int{2, 3, 4} // in words

const (
	longestEntry = 4 // words
	guardWords   = 8 // behind the entries, which no library may write
)

// process is an entry of a list.
type process struct {
	pid    uint32
	memory uint64 // bytes, all ones: unknown
	gi     uint32
}

// processBuffer is room for a list, filled with a pattern.
type processBuffer struct {
	words []uint64
	room  int // entries
}

// bufferWords are those of a buffer for so many entries. What is behind the longest ones is as
// large again, so that an even longer entry is seen and does not reach other memory.
func bufferWords(room int) int { return 2*room*longestEntry + guardWords }

// newProcessBuffer fills bufferWords words.
func newProcessBuffer(words []uint64, room int) processBuffer {
	for i := range words {
		words[i] = pattern(i)
	}
	return processBuffer{words: words, room: room}
}

// pattern is what a word has that was not written: another value for each word, none of
// which is likely in a list.
func pattern(i int) uint64 { return (uint64(i) + 1) * 0x9e3779b97f4a7c15 }

// written is whether a word was written.
func (b processBuffer) written(word int) bool { return b.words[word] != pattern(word) }

// decode reads the entries that the library reports as written, or returns why it cannot.
func (b processBuffer) decode(entries uint32) (processes []process, reason string) {
	if int64(entries) > int64(b.room) {
		return nil, nvmlproto.ReasonOverrun
	}
	for word := b.room * longestEntry; word < len(b.words); word++ {
		if b.written(word) {
			return nil, nvmlproto.ReasonOverrun
		}
	}
	if entries == 0 {
		return nil, ""
	}
	for _, stride := range strides {
		if b.fits(stride, int(entries)) {
			return b.entries(stride, int(entries)), ""
		}
	}
	return nil, nvmlproto.ReasonStride
}

// fits is whether so many entries of so many words were written: of each of them the same
// words, the first two among them, and nothing behind.
func (b processBuffer) fits(stride, entries int) bool {
	for word := range b.words {
		switch of := word % stride; {
		case word >= entries*stride:
			if b.written(word) {
				return false
			}
		case of < 2:
			if !b.written(word) {
				return false
			}
		case b.written(word) != b.written(of):
			return false
		}
	}
	return true
}

// entries reads entries of so many words.
func (b processBuffer) entries(stride, entries int) []process {
	processes := make([]process, entries)
	for i := range processes {
		at := i * stride
		p := process{pid: uint32(b.words[at]), memory: b.words[at+1], gi: NoInstance}
		if stride > 2 && b.written(at+2) {
			p.gi = uint32(b.words[at+2])
		}
		processes[i] = p
	}
	return processes
}
