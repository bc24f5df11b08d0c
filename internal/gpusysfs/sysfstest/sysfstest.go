// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package sysfstest writes trees like the kernel's sysfs from a short description, for tests.
package sysfstest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Board is a PCI device.
type Board struct {
	PCI            string // 0000:19:00.0
	Vendor, Device uint16 // 0: AMD, MI300X
	Class          string // "": 0x120000, a processing accelerator

	UniqueID        uint64 // 0: no file
	Serial, Product string // "": no file
	// Compute and Memory are the mode, as "CPX" and "NPS4"; "": no file.
	Compute, Memory string
	// Parts is how many partitions, each with a compute node; 0: 1 for AMD.
	Parts int
	// Card and Render are the numbers of the board's names, and of the partitions behind it.
	// A negative Card: it has none.
	Card, Render int
	// XCP is the number of the name of the second partition.
	XCP int
	// Old kernels have the partition in the function bits of location_id.
	Old bool
	// Files are further files of the PCI device by their path below it.
	Files map[string]string
}

// Write writes a tree into a new folder, and returns its path.
func Write(t testing.TB, boards ...Board) string {
	t.Helper()
	return WriteFiles(t, Files(boards...))
}

// WriteFiles is Write of files by their path below the root.
func WriteFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		write(t, filepath.Join(root, name), content)
	}
	return root
}

// Captured are the files of a capture of a real host, below a folder of the tree: a line
// "==> path <==" is before each. It skips the test where the capture is not there.
func Captured(t testing.TB, capture, below string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(capture)
	if err != nil {
		t.Skip("samples are not there")
	}
	files, name := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "==> "); ok {
			name = below + "/" + strings.TrimSuffix(strings.TrimSpace(path), " <==")
			files[name] = ""
		} else {
			files[name] += line
		}
	}
	return files
}

func write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Files are the files of a tree by their path below its root.
func Files(boards ...Board) map[string]string {
	files := map[string]string{
		// Not a GPU, and a processor.
		"bus/pci/devices/0000:00:00.0/vendor":          "0x1022\n",
		"bus/pci/devices/0000:00:00.0/class":           "0x060000\n",
		"class/kfd/kfd/topology/nodes/0/properties":    properties(0, 0, 0),
		"devices/platform/serial8250/driver_override":  "(null)\n",
		"bus/pci/devices/0000:00:01.1/vendor":          "0x1002\n",
		"bus/pci/devices/0000:00:01.1/class":           "0x040300\n",
		"bus/pci/devices/0000:00:01.1/uevent":          "DRIVER=snd_hda_intel\n",
		"class/drm/version":                            "drm 1.1.0 20060810\n",
		"class/kfd/kfd/topology/nodes/0/io_links/.dir": "",
	}
	node := 1
	for _, b := range boards {
		maps.Copy(files, b.files())
		for part := range b.parts() {
			dir := fmt.Sprintf("class/kfd/kfd/topology/nodes/%d/properties", node)
			node++
			files[dir] = b.node(part)
			if part == 0 {
				continue
			}
			xcp := fmt.Sprintf("devices/platform/amdgpu_xcp_%d/drm", b.XCP+part-1)
			files[fmt.Sprintf("%s/card%d/dev", xcp, b.Card+part)] = ""
			files[fmt.Sprintf("%s/renderD%d/dev", xcp, b.Render+part)] = ""
		}
	}
	return files
}

func (b Board) parts() int {
	if b.Vendor != 0 && b.Vendor != 0x1002 {
		return 0
	}
	return max(b.Parts, 1)
}

func (b Board) files() map[string]string {
	below := map[string]string{"class": or(b.Class, "0x120000")}
	if b.Vendor == 0 {
		b.Vendor, b.Device = 0x1002, 0x74a1
	}
	below["vendor"], below["device"] = fmt.Sprintf("0x%04x", b.Vendor), fmt.Sprintf("0x%04x", b.Device)
	below["uevent"] = "PCI_SLOT_NAME=" + b.PCI
	if b.UniqueID != 0 {
		below["unique_id"] = fmt.Sprintf("%016x", b.UniqueID)
	}
	below["serial_number"], below["product_name"] = b.Serial, b.Product
	below["current_compute_partition"], below["current_memory_partition"] = b.Compute, b.Memory
	if b.Card >= 0 {
		below[fmt.Sprintf("drm/card%d/dev", b.Card)] = "226:0"
		below[fmt.Sprintf("drm/card%d-DP-1/status", b.Card)] = "disconnected"
	}
	if b.Render > 0 {
		below[fmt.Sprintf("drm/renderD%d/dev", b.Render)] = "226:128"
	}
	out := map[string]string{}
	for name, content := range below {
		if content != "" {
			out["bus/pci/devices/"+b.PCI+"/"+name] = content + "\n"
		}
	}
	for name, content := range b.Files {
		out["bus/pci/devices/"+b.PCI+"/"+name] = content
	}
	return out
}

// node is the compute node of a partition.
func (b Board) node(part int) string {
	var domain, bus, device, function int
	if _, err := fmt.Sscanf(b.PCI, "%x:%x:%x.%x", &domain, &bus, &device, &function); err != nil {
		panic(err)
	}
	location := bus<<8 | device<<3 | function
	if b.Old {
		location |= part
	} else {
		location |= part << 28
	}
	return properties(domain, location, b.Render+part)
}

func properties(domain, location, render int) string {
	return fmt.Sprintf("cpu_cores_count 0\nsimd_count 152\nlocation_id %d\ndomain %d\ndrm_render_minor %d\nunique_id 16404946649897475633\n",
		location, domain, render)
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Refusing is a file system in which reading fails for files with a text in their path.
type Refusing struct {
	fs.FS
	Path  string
	Error syscall.Errno
}

// Open fails if it is to fail.
func (r Refusing) Open(name string) (fs.File, error) {
	if strings.Contains(name, r.Path) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: r.Error}
	}
	return r.FS.Open(name)
}
