// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gpumetrics decodes the file gpu_metrics, which amdgpu, the driver of AMD's
// GPUs, has for each board below its PCI device in sysfs.
//
// The file is a C structure of the kernel in the byte order of the host, which is
// little-endian wherever these boards are. It begins with a header: the size of the
// structure (16 bits), the format and the content (8 bits each). Format 1 is for boards,
// 2 and 3 are for processors with graphics. Contents 3 to 8 are read; from content 9 on
// the file is a list of attributes. The structures are gpu_metrics_v1_3 to v1_8 in
// drivers/gpu/drm/amd/include/kgd_pp_interface.h of the Linux kernel.
package gpumetrics

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Quantity is a reading that every structure has.
type Quantity uint8

const (
	Hotspot        Quantity = iota // junction temperature, °C
	Memory                         // temperature of the memory, °C
	Power                          // of the socket, W
	Activity                       // of the graphics engine, %
	MemoryActivity                 // of the memory controller, %
	Energy                         // since the driver was loaded, J
	quantities
)

// EnergyStep is the unit of the energy accumulator in joules: 2^-16 J, about 15.26 µJ.
const EnergyStep = 1.0 / (1 << 16)

// Why a file cannot be decoded.
var (
	// ErrTruncated is a file without a whole header, or shorter than the size in it.
	ErrTruncated = errors.New("the file is shorter than its header and the size there")
	// ErrFormat is a structure that is not of a board, or that this package does not know.
	ErrFormat = errors.New("this format is not decoded: format 1 with content 3 to 8 is")
	// ErrSize is a size that the structure of this format and content has in no kernel, so
	// that its fields may be elsewhere.
	ErrSize = errors.New("no kernel writes this format with this size")
)

// Metrics are the readings of one file. The zero value has none.
type Metrics struct {
	values [quantities]float64
	known  [quantities]bool
}

// Get returns a reading; false where the board does not measure it, which the driver
// writes with all bits set.
func (m *Metrics) Get(q Quantity) (v float64, known bool) { return m.values[q], m.known[q] }

// layout is where a structure has its fields, in bytes from its start.
type layout struct {
	hotspot, memory, power, activity, memoryActivity, energy int
}

// of returns the layout of a content from 4 on: they differ in the place of the energy
// alone.
func of(energy int) layout {
	return layout{hotspot: 4, memory: 6, power: 10, activity: 12, memoryActivity: 14, energy: energy}
}

// layouts are by content and size. An early content 6 had the engines' activity before
// the energy, as content 5 has, and was released with some kernels.
var layouts = map[[2]int]layout{
	{3, 120}:  {hotspot: 6, memory: 8, power: 22, activity: 16, memoryActivity: 18, energy: 24},
	{4, 288}:  of(24),
	{5, 360}:  of(88), // after 4 video and 32 JPEG engines of 16 bits each
	{6, 384}:  of(88),
	{6, 1664}: of(16),
	{7, 2208}: of(24),
	{8, 3872}: of(24),
}

const headerSize = 4

// Decode decodes a file. What follows the structure is ignored: some kernels fill the
// page. An error is one of the three above, with what the header contains.
func Decode(file []byte) (Metrics, error) {
	var m Metrics
	if len(file) < headerSize {
		return m, fmt.Errorf("%w: %d bytes", ErrTruncated, len(file))
	}
	size, format, content := int(binary.LittleEndian.Uint16(file)), file[2], int(file[3])
	if format != 1 || content < 3 || content > 8 {
		return m, fmt.Errorf("%w: format %d, content %d", ErrFormat, format, content)
	}
	if size > len(file) {
		return m, fmt.Errorf("%w: %d bytes of %d", ErrTruncated, len(file), size)
	}
	at, ok := layouts[[2]int{content, size}]
	if !ok {
		return m, fmt.Errorf("%w: format 1, content %d, %d bytes", ErrSize, content, size)
	}
	m.read16(Hotspot, file[at.hotspot:])
	m.read16(Memory, file[at.memory:])
	m.read16(Power, file[at.power:])
	m.read16(Activity, file[at.activity:])
	m.read16(MemoryActivity, file[at.memoryActivity:])
	if steps := binary.LittleEndian.Uint64(file[at.energy:]); steps != math.MaxUint64 {
		m.values[Energy], m.known[Energy] = float64(steps)*EnergyStep, true
	}
	return m, nil
}

func (m *Metrics) read16(q Quantity, at []byte) {
	if v := binary.LittleEndian.Uint16(at); v != math.MaxUint16 {
		m.values[q], m.known[q] = float64(v), true
	}
}
