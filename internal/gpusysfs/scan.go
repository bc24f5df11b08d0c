// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusysfs

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
)

const maxFile = 64 << 10 // bytes; the files have a page at most

// scanner reads a host once.
type scanner struct {
	root string
	fsys fs.FS
	out  *Snapshot
	// names are those of a board's own card and render node.
	names    map[string]*Device
	problems map[Problem]Problem // by Cause and Of
}

// Read reads a host once. root is what the paths of devices begin with; at is when.
func Read(root string, fsys fs.FS, at time.Time) *Snapshot {
	s := &scanner{
		root: root, fsys: fsys, names: map[string]*Device{}, problems: map[Problem]Problem{},
		out: &Snapshot{At: at, byPCI: map[string]*Device{}, bySerial: map[string]*Device{}, byName: map[string]*Device{}},
	}
	s.boards()
	s.partitions()
	s.out.Problems = slices.SortedFunc(maps.Values(s.problems), func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Cause, b.Cause))
	})
	return s.out
}

// boards reads the PCI devices that are GPUs, and their names.
func (s *scanner) boards() {
	found := s.devices()
	if len(found) > MaxDevices {
		s.problem(OfBoards, Limited, "bus/pci/devices")
		found = found[:MaxDevices]
	}
	slices.SortFunc(found, func(a, b Device) int { return cmp.Compare(a.PCI, b.PCI) })
	s.out.devices = found
	for i := range found {
		d := &found[i]
		s.out.byPCI[d.PCI] = d
		if _, twice := s.out.bySerial[d.Serial]; twice {
			s.out.bySerial[d.Serial] = nil
		} else if d.Serial != "" {
			s.out.bySerial[d.Serial] = d
		}
		for _, name := range s.list(OfBoards, path.Join(s.inside(d.Path), "drm")) {
			if isNode(name) {
				s.names[name] = d
			}
		}
	}
}

func (s *scanner) devices() (found []Device) {
	const all, cards = "bus/pci/devices", "class/drm"
	for _, name := range s.list(OfBoards, all) {
		if address := deviceid.PCIAddress(name); deviceid.IsPCI(address) {
			if d, ok := s.board(address, path.Join(all, name)); ok {
				found = append(found, d)
			}
		}
	}
	if len(found) > 0 {
		return found
	}
	for _, name := range s.list(OfBoards, cards) { // where a container has no more of the host
		if !isNode(name) || !strings.HasPrefix(name, "card") {
			continue
		}
		dir := path.Join(cards, name, "device")
		uevent, _ := s.text(OfBoards, path.Join(dir, "uevent"))
		_, rest, _ := strings.Cut(uevent, "PCI_SLOT_NAME=")
		address, _, _ := strings.Cut(rest, "\n")
		if address = deviceid.PCIAddress(address); deviceid.IsPCI(address) {
			if d, ok := s.board(address, dir); ok {
				found = append(found, d)
			}
		}
	}
	return found
}

// first is what the names of a board itself mean: its first partition, if it is partitioned.
func (s *scanner) first(d *Device) *Device {
	switch {
	case d.ModeUnknown:
		return nil
	case d.Partitioned():
		return partition(d, 0)
	}
	return d
}

func partition(d *Device, number int) *Device {
	part := *d
	part.Part = strconv.Itoa(number)
	return &part
}

// board reads a PCI device; false if it is no GPU.
func (s *scanner) board(address, dir string) (Device, bool) {
	d := Device{PCI: address, Path: filepath.Join(s.root, dir)}
	d.Vendor = s.id(path.Join(dir, "vendor"))
	switch d.Vendor {
	case VendorAMD, VendorIntel, VendorHabana:
	default:
		return d, false
	}
	// 0x03....: display controller; 0x12....: processing accelerator.
	class, _ := s.text(OfBoards, path.Join(dir, "class"))
	if !strings.HasPrefix(class, "0x03") && !strings.HasPrefix(class, "0x12") {
		return d, false
	}
	d.DeviceID = s.id(path.Join(dir, "device"))
	_, err := fs.Stat(s.fsys, path.Join(dir, "physfn"))
	d.Virtual = err == nil
	if d.Vendor != VendorAMD {
		return d, true
	}
	unique, _ := s.text(OfBoards, path.Join(dir, "unique_id"))
	d.UniqueID = deviceid.UniqueID(unique)
	d.Serial, _ = s.text(OfBoards, path.Join(dir, "serial_number"))
	d.Product, _ = s.text(OfBoards, path.Join(dir, "product_name"))
	d.ComputePartition, err = s.text(OfBoards, path.Join(dir, "current_compute_partition"))
	d.ComputePartition = strings.ToLower(d.ComputePartition)
	d.ModeUnknown = err != nil && !errors.Is(err, fs.ErrNotExist)
	d.MemoryPartition, _ = s.text(OfBoards, path.Join(dir, "current_memory_partition"))
	d.MemoryPartition = strings.ToLower(d.MemoryPartition)
	return d, true
}

func (s *scanner) id(name string) uint16 {
	text, _ := s.text(OfBoards, name)
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}

// isNode reports whether a name is card<N> or renderD<N>: other entries are connectors.
func isNode(name string) bool {
	number, ok := strings.CutPrefix(name, "card")
	if !ok {
		number, ok = strings.CutPrefix(name, "renderD")
	}
	_, err := strconv.ParseUint(number, 10, 32)
	return ok && err == nil
}

// inside is the path in the file system of a path of a device.
func (s *scanner) inside(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, s.root), "/")
}

// list gives the sorted names in a folder; none if it does not exist.
func (s *scanner) list(of Part, dir string) []string {
	entries, err := fs.ReadDir(s.fsys, dir)
	if err != nil {
		s.fault(of, err, dir)
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// text gives the content of a file without the space around it. That it does not exist is no
// problem: what files there are depends on board and driver.
func (s *scanner) text(of Part, name string) (string, error) {
	f, err := s.fsys.Open(name)
	if err != nil {
		s.fault(of, err, name)
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		s.fault(of, err, name)
		return "", err
	}
	return strings.TrimSpace(string(content)), nil
}

func (s *scanner) fault(of Part, err error, name string) {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENODEV):
	case errors.Is(err, fs.ErrPermission):
		s.problem(of, Denied, name)
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EAGAIN):
		s.problem(of, Busy, name)
	default:
		s.problem(of, Failed, name)
	}
}

func (s *scanner) problem(of Part, cause Cause, name string) {
	key := Problem{Cause: cause, Of: of}
	p, ok := s.problems[key]
	if !ok {
		p = key
		p.Path = filepath.Join(s.root, name)
	}
	p.Count++
	s.problems[key] = p
}
