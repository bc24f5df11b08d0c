// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gpusysfs reads which boards of AMD and Intel a host has, and by which names its
// kernel and its device plugins know them and their partitions.
package gpusysfs

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
)

// PCI ids of vendors.
const (
	VendorAMD    = 0x1002
	VendorIntel  = 0x8086
	VendorHabana = 0x1da3
)

// MaxDevices bounds the boards of a snapshot, and MaxNames the names that partitions have.
const (
	MaxDevices = 1024
	MaxNames   = 16 * MaxDevices
)

// Device is a PCI device that is a board, or one of its partitions. What the kernel does not
// have, or does not show, is "" or 0.
type Device struct {
	PCI              string // 0000:19:00.0
	Vendor, DeviceID uint16 // of PCI: 0x1002, 0x74a1
	UniqueID         uint64 // of AMD
	Serial, Product  string // of AMD: serial_number, product_name
	// ComputePartition and MemoryPartition are the mode of a board of AMD, in lower case:
	// spx, dpx, tpx, qpx, cpx; nps1, nps2, nps4, nps8. "" without such modes.
	ComputePartition, MemoryPartition string
	// ModeUnknown: the board has a compute partition mode that could not be read.
	ModeUnknown bool
	// Virtual: the board is a virtual function of another on this host.
	Virtual bool
	// KFDNodes is how many compute nodes the kernel has for the board, one per partition.
	// It is 0 where not all nodes of the host can be read.
	KFDNodes int
	// Path is the folder of the PCI device.
	Path string
	// Part is the number of the partition that a name means; "" for the board.
	Part string
}

// Partitioned reports whether the board consists of partitions.
func (d *Device) Partitioned() bool {
	switch d.ComputePartition {
	case "", "spx", "none", "n/a":
		return false
	}
	return true
}

// HwID is the hw.id of the device; "" where it is not known, and for virtual functions, of which
// no exporter reports anything. node is the name of the node, which ids of Intel contain.
func (d *Device) HwID(node string) string {
	id := ""
	switch {
	case d.Virtual:
	case d.Vendor == VendorAMD:
		id = deviceid.AMD(d.UniqueID)
	case d.Vendor == VendorIntel:
		id = deviceid.Intel(node, d.PCI)
	}
	if id != "" && d.Part != "" {
		id = deviceid.Partition(id, d.Part)
	}
	return id
}

// Snapshot is what a host had at a time. It is immutable. A nil Snapshot knows nothing.
type Snapshot struct {
	At       time.Time // when the reading began
	Problems []Problem // sorted

	devices  []Device // sorted by address
	byPCI    map[string]*Device
	bySerial map[string]*Device // nil for a serial number that several boards have
	byName   map[string]*Device // amdgpu_xcp_<N>, card<N>, renderD<N>; nil: not known which
}

// Problem is why part of a host could not be read.
type Problem struct {
	Cause Cause
	Of    Part   // what could not be read
	Count int    // of files
	Path  string // the first of them
}

// Cause is why a file could not be read.
type Cause string

// The causes.
const (
	Denied    Cause = "denied"    // EPERM, EACCES
	Busy      Cause = "busy"      // EBUSY, EAGAIN
	Failed    Cause = "io"        // EIO and other errors
	Malformed Cause = "malformed" // the file does not have what it should have
	Limited   Cause = "limit"     // more than MaxDevices, MaxNames
	Blocked   Cause = "blocked"   // no reading has ended for ten seconds
)

// Part is a part of sysfs.
type Part string

// The parts that are read.
const (
	OfBoards     Part = "boards"     // bus/pci/devices, class/drm
	OfPartitions Part = "partitions" // class/kfd, devices/platform
)

// Devices are the boards in the order of their addresses.
func (s *Snapshot) Devices() iter.Seq[*Device] {
	return func(yield func(*Device) bool) {
		if s == nil {
			return
		}
		for i := range s.devices {
			if !yield(&s.devices[i]) {
				return
			}
		}
	}
}

// ByPCI is the board with a PCI address, in any form that deviceid.PCIAddress reads, or nil.
func (s *Snapshot) ByPCI(address string) *Device {
	if s == nil {
		return nil
	}
	return s.byPCI[deviceid.PCIAddress(address)]
}

// BySerial is the only board with a serial number, or nil.
func (s *Snapshot) BySerial(serial string) *Device {
	if s == nil {
		return nil
	}
	return s.bySerial[serial]
}

// ByXCP is the partition that the kernel names amdgpu_xcp_<N>, or nil where that is not known:
// the order of the numbers has no meaning.
func (s *Snapshot) ByXCP(name string) *Device { return s.named(name) }

// ByCard is the board or partition that the kernel names card<N>, or nil.
func (s *Snapshot) ByCard(name string) *Device { return s.named(name) }

// ByRender is the board or partition that the kernel names renderD<N>, or nil.
func (s *Snapshot) ByRender(name string) *Device { return s.named(name) }

func (s *Snapshot) named(name string) *Device {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// Has reports whether the host has something with a name, or a board with a PCI address, even
// if it is not known what it is: to read again would not help.
func (s *Snapshot) Has(name string) bool {
	if s == nil {
		return false
	}
	if _, ok := s.byName[name]; ok {
		return true
	}
	return s.ByPCI(name) != nil
}

// blocked is s with a problem more: a reading does not end.
func (s *Snapshot) blocked() *Snapshot {
	out := &Snapshot{}
	if s != nil {
		*out = *s
	}
	p := Problem{Cause: Blocked, Of: OfBoards, Count: 1}
	out.Problems = append(slices.Clone(out.Problems), p)
	return out
}

// equal reports whether both know the same.
func (s *Snapshot) equal(o *Snapshot) bool {
	if s == nil || o == nil {
		return s == o
	}
	return slices.Equal(s.devices, o.devices) && slices.Equal(s.Problems, o.Problems) &&
		maps.EqualFunc(s.byName, o.byName, func(a, b *Device) bool { return a == b || a != nil && b != nil && *a == *b })
}
