// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
)

// MIGBy is what the share of a MIG instance is measured by.
type MIGBy string

const (
	ByCompute MIGBy = "compute" // slices of its profile of those of the board
	ByMemory  MIGBy = "memory"  // memory slices of those of the board
	ByMean    MIGBy = "mean"    // of both
)

// Slices are how many compute and memory slices a board can be divided into.
type Slices struct {
	Compute int64 `mapstructure:"compute"`
	Memory  int64 `mapstructure:"memory"`
}

// ModelSlices are the slices of the boards with a part of a name in hw.model, in upper
// case.
type ModelSlices struct {
	Model string
	Slices
}

// known is NVIDIA's list of supported MIG profiles. The first that fits decides.
var known = []ModelSlices{
	{"A100", Slices{7, 8}},
	{"A800", Slices{7, 8}},
	{"H100", Slices{7, 8}},
	{"H800", Slices{7, 8}},
	{"GH200", Slices{7, 8}},
	{"H200", Slices{7, 8}},
	{"H20", Slices{7, 8}},
	{"GB200", Slices{7, 8}},
	{"B200", Slices{7, 8}},
	{"GB300", Slices{7, 8}},
	{"B300", Slices{7, 8}},
	{"A30", Slices{4, 4}},
	{"RTX PRO 6000", Slices{4, 4}},
	{"RTX PRO 5000", Slices{2, 2}},
	{"RTX PRO 4500", Slices{2, 2}},
}

// SlicesOf returns the slices of a model: of own, which come first, or of the table.
func SlicesOf(model string, own []ModelSlices) (Slices, bool) {
	for _, list := range [][]ModelSlices{own, known} {
		for _, m := range list {
			if NamesModel(model, m.Model) {
				return m.Slices, true
			}
		}
	}
	return Slices{}, false
}

// NamesModel reports whether hw.model contains a part of a name, not as the beginning of a
// longer number: an A30 is no A300, an H20 no H200.
func NamesModel(model, part string) bool {
	name, word := strings.ToUpper(model), strings.ToUpper(part)
	for from := 0; ; {
		i := strings.Index(name[from:], word)
		if i < 0 || word == "" {
			return false
		}
		start, end := from+i, from+i+len(word)
		if (end == len(name) || !isDigit(name[end])) && (start == 0 || !isLetter(name[start-1])) {
			return true
		}
		from = start + 1
	}
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' }

// Instance returns the share of a MIG instance of its board. memoryMiB is the memory of
// the board, 0 where it is not known. estimated is true where the slices of the model are
// not known and the share is that of the memory.
//
// ok is false where nothing is known that a share could be computed from.
func Instance(profile migprofile.Profile, slices Slices, by MIGBy, memoryMiB int64) (f Fraction, estimated, ok bool) {
	if slices.Compute <= 0 || slices.Memory <= 0 {
		if memoryMiB <= 0 {
			return Fraction{}, false, false
		}
		// The names of profiles round up.
		f, ok = Of(min(profile.MemoryGB*1024, memoryMiB), memoryMiB)
		return f, true, ok
	}
	compute := min(profile.Compute, slices.Compute)
	memory := min(memorySlices(profile, slices, memoryMiB), slices.Memory)
	switch by {
	case ByMemory:
		f, ok = Of(memory, slices.Memory)
	case ByMean:
		f, ok = Of(compute*slices.Memory+memory*slices.Compute, 2*slices.Compute*slices.Memory)
	default:
		f, ok = Of(compute, slices.Compute)
	}
	return f, false, ok
}

// memorySlices returns how many memory slices a profile has: by its gigabytes where the
// memory of the board is known, else as profiles of that many compute slices usually have.
func memorySlices(p migprofile.Profile, s Slices, memoryMiB int64) int64 {
	if memoryMiB > 0 {
		// Rounded to the nearest: 1g.18gb of 140 GiB is one slice of eight.
		return max(1, (p.MemoryGB*1024*s.Memory*2+memoryMiB)/(2*memoryMiB))
	}
	if s.Compute == 7 {
		switch p.Compute {
		case 3:
			return 4
		case 7:
			return 8
		}
	}
	return p.Compute
}

// VGPUBy is what the share of a software partition is measured by.
type VGPUBy string

const (
	VGPUByMemory VGPUBy = "memory"
	VGPUByCores  VGPUBy = "cores"
)

// Partition returns the share of a software partition (HAMi, Volcano, Koordinator, KAI).
// cores is the share of the cores, invalid where they are not limited: then the memory
// decides.
func Partition(memory, cores Fraction, by VGPUBy) Fraction {
	if by == VGPUByCores && cores.Valid() {
		return cores
	}
	return memory
}
