// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package host reads what the kernel knows of a host's NVIDIA boards. Nothing that it reads
// wakes a board.
package host

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

const (
	vendor    = "0x10de"
	display   = "0x03" // class of VGA, 3D and other controllers of displays
	maxFile   = 4 << 10
	maxFound  = 4 * nvmlproto.MaxBoards
	maxText   = 128
	ours      = "nvidia"   // the driver's name on the PCI bus
	passed    = "vfio-pci" // boards of virtual machines are not this host's to read
	suspended = "suspended"
)

// Board is a PCI function of NVIDIA that is a board.
type Board struct {
	PCI    string // as in deviceid.PCIAddress
	Driver string // that is bound to it, empty for none
	// Managed is that the kernel may suspend the board while nothing uses it, and Suspended
	// that it has.
	Managed, Suspended bool
}

// Snapshot is what a host had at a time.
type Snapshot struct {
	Boards []Board // sorted by address
	// Driver is the version of the loaded kernel module, empty where it is not loaded or
	// not visible.
	Driver string
	// Hardware is that there is something that the driver may read: a board that is not
	// given to a virtual machine, or the driver's own device.
	Hardware bool
	// Device is that the driver's own device is there.
	Device bool
}

// Bound are the addresses of the boards that NVIDIA's driver has.
func (s *Snapshot) Bound() []string {
	var bound []string
	for _, b := range s.Boards {
		if b.Driver == ours {
			bound = append(bound, b.PCI)
		}
	}
	return bound
}

// Reader reads a host. It is for one goroutine.
type Reader struct {
	root  string
	known map[string]bool // PCI functions by their folder, true for boards
}

// New returns the reader of the host that has its /sys and /dev below root.
func New(root string) *Reader { return &Reader{root: root, known: map[string]bool{}} }

// Read reads the host.
func (r *Reader) Read() *Snapshot {
	s := &Snapshot{
		Driver: r.text("sys/module/nvidia/version"),
		Device: r.exists("dev/nvidiactl") || r.exists("dev/dxg"),
	}
	s.Hardware = s.Device
	const all = "sys/bus/pci/devices"
	entries, err := os.ReadDir(filepath.Join(r.root, all))
	if err != nil {
		return s
	}
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		folder := filepath.Join(all, e.Name())
		board, known := r.known[folder]
		if !known {
			board = r.text(folder, "vendor") == vendor && strings.HasPrefix(r.text(folder, "class"), display)
		}
		seen[folder] = board
		address := deviceid.PCIAddress(e.Name())
		if !board || !deviceid.IsPCI(address) || len(s.Boards) >= maxFound {
			continue
		}
		if r.exists(filepath.Join(folder, "physfn")) {
			continue // a part of a board for a virtual machine: not a board of its own to the library
		}
		b := Board{PCI: address, Driver: r.driver(folder)}
		if b.Driver == passed {
			continue
		}
		b.Managed = r.text(folder, "power/control") == "auto"
		b.Suspended = r.text(folder, "power/runtime_status") == suspended
		s.Hardware = true
		s.Boards = append(s.Boards, b)
	}
	r.known = seen
	return s
}

func (r *Reader) driver(folder string) string {
	target, err := os.Readlink(filepath.Join(r.root, folder, "driver"))
	if err != nil {
		return ""
	}
	return safetext.Strip(filepath.Base(target), maxText)
}

// text is a file's content without the space around it, empty where it cannot be read.
func (r *Reader) text(name ...string) string {
	f, err := os.Open(filepath.Join(append([]string{r.root}, name...)...))
	if err != nil {
		return ""
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return safetext.Strip(strings.TrimSpace(string(content)), maxText)
}

func (r *Reader) exists(name string) bool {
	_, err := os.Stat(filepath.Join(r.root, name))
	return err == nil
}
