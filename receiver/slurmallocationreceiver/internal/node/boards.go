// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package node reads what a node has: its boards in the orders that Slurm may count them in, and
// the control groups of its jobs.
package node

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
)

const maxBoards = 1024

// Board is a GPU of the node.
type Board struct {
	ID    string // hw.id; "" while the driver does not know it
	Minor int    // of its device file; -1: not known
	PCI   string
	// Parts: it consists of MIG instances or partitions, which have indices of their own.
	Parts bool
}

// Boards are the boards of a node. The zero value is that nothing is known.
type Boards struct {
	ByPCI []Board // in the order of their addresses
	// Agree: the order of the addresses is that of the minors, which count from 0.
	Agree bool
	// Parts: a board has them, so that an index is not that of a board.
	Parts bool
}

// NVIDIA reads the boards that NVIDIA's driver has, below the root of a node. It is the zero value
// where there is no such driver.
func NVIDIA(root string) Boards {
	folders, err := filepath.Glob(filepath.Join(escape(root), "proc/driver/nvidia/gpus/*"))
	if err != nil || len(folders) > maxBoards {
		return Boards{}
	}
	var all []Board
	for _, folder := range folders {
		b := Board{Minor: -1, PCI: deviceid.PCIAddress(filepath.Base(folder))}
		text, _ := readSome(filepath.Join(folder, "information"))
		for line := range strings.Lines(text) {
			key, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimSpace(value); key {
			case "GPU UUID":
				// Question marks, until the driver has started the board.
				if deviceid.IsGPU(value) {
					b.ID = value
				}
			case "Device Minor":
				if n, err := strconv.ParseUint(value, 10, 16); err == nil {
					b.Minor = int(n)
				}
			}
		}
		if b.Minor >= 0 {
			parts, _ := filepath.Glob(filepath.Join(escape(root), "proc/driver/nvidia/capabilities/gpu"+strconv.Itoa(b.Minor), "mig/gi*"))
			b.Parts = len(parts) > 0
		}
		all = append(all, b)
	}
	return inOrder(all)
}

// Sysfs are the boards of AMD.
func Sysfs(s *gpusysfs.Snapshot) Boards {
	var all []Board
	for d := range s.Devices() {
		if d.Vendor != gpusysfs.VendorAMD || d.Virtual {
			continue
		}
		all = append(all, Board{ID: d.HwID(""), Minor: -1, PCI: d.PCI, Parts: d.Partitioned()})
	}
	minor := 0
	for n := 128; n < 128+maxBoards && minor < len(all); n++ {
		d := s.ByRender("renderD" + strconv.Itoa(n))
		if d == nil {
			continue
		}
		if i := slices.IndexFunc(all, func(b Board) bool { return b.PCI == d.PCI && b.Minor < 0 }); i >= 0 {
			all[i].Minor = minor
			minor++
		}
	}
	return inOrder(all)
}

func inOrder(all []Board) Boards {
	slices.SortFunc(all, func(a, b Board) int { return cmp.Or(cmp.Compare(len(a.PCI), len(b.PCI)), cmp.Compare(a.PCI, b.PCI)) })
	out := Boards{ByPCI: all, Agree: len(all) > 0}
	for i, b := range all {
		out.Agree = out.Agree && b.Minor == i
		out.Parts = out.Parts || b.Parts
	}
	return out
}

// Known reports whether anything is known of the boards.
func (b *Boards) Known() bool { return len(b.ByPCI) > 0 }

// OfMinor is the board of a device file, nil where there is none.
func (b *Boards) OfMinor(minor int) *Board {
	for i := range b.ByPCI {
		if b.ByPCI[i].Minor == minor {
			return &b.ByPCI[i]
		}
	}
	return nil
}

// OfPCI is the board at a place in the order of addresses, nil where there is none.
func (b *Boards) OfPCI(index int) *Board {
	if index >= len(b.ByPCI) {
		return nil
	}
	return &b.ByPCI[index]
}

func escape(root string) string {
	return strings.NewReplacer("*", "\\*", "?", "\\?", "[", "\\[", "\\", "\\\\").Replace(root)
}

// readSome is at most 64 KiB of a file.
func readSome(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	return string(text), err
}
