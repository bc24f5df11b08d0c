// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusysfs

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
)

const (
	first  = "GPU-e3a9c1d200000001"
	second = "GPU-e3a9c1d200000002"
)

func board(pci string, unique uint64) sysfstest.Board {
	return sysfstest.Board{PCI: pci, UniqueID: unique, Compute: "SPX", Memory: "NPS1", Card: 20, Render: 150, Serial: "69240900", Product: "AMD Instinct MI300X OAM"}
}

func cpx(pci string, unique uint64, render, xcp int) sysfstest.Board {
	b := board(pci, unique)
	b.Compute, b.Memory, b.Parts, b.Card, b.Render, b.XCP = "CPX", "NPS4", 8, render-128, render, xcp
	return b
}

func read(t *testing.T, boards ...sysfstest.Board) *Snapshot {
	root := sysfstest.Write(t, boards...)
	return Read(root, os.DirFS(root), time.Unix(1, 0))
}

// ids are the hw.ids of names; "-" where it is not known which device has the name.
func ids(s *Snapshot, names ...string) (out []string) {
	for _, name := range names {
		d := s.named(name)
		if d == nil {
			d = s.ByPCI(name)
		}
		switch {
		case d != nil:
			out = append(out, d.HwID("n1"))
		case s.Has(name):
			out = append(out, "-")
		default:
			out = append(out, "unknown")
		}
	}
	return out
}

func TestBoards(t *testing.T) {
	virtual := sysfstest.Board{PCI: "0000:03:00.1", Vendor: VendorIntel, Device: 0x56c0, Card: 4, Files: map[string]string{"physfn/vendor": "0x8086"}}
	s := read(t, board("0000:19:00.0", 0xe3a9c1d200000002), board("0003:05:00.0", 0xe3a9c1d200000001),
		sysfstest.Board{PCI: "0000:03:00.0", Vendor: VendorIntel, Device: 0x56c0, Class: "0x038000", Card: 3, Render: 140}, virtual,
		sysfstest.Board{PCI: "0000:b3:00.0", Vendor: VendorHabana, Device: 0x1020, Card: -1},
		sysfstest.Board{PCI: "0000:b4:00.0", Vendor: 0x10de, Device: 0x2330, Class: "0x030200", Card: 9})
	var addresses []string
	for d := range s.Devices() {
		addresses = append(addresses, d.PCI)
	}
	assert.Equal(t, []string{"0000:03:00.0", "0000:03:00.1", "0000:19:00.0", "0000:b3:00.0", "0003:05:00.0"}, addresses)
	assert.Empty(t, s.Problems)
	d := s.ByPCI("0000:19:00.0")
	assert.Equal(t, Device{
		PCI: "0000:19:00.0", Vendor: VendorAMD, DeviceID: 0x74a1, UniqueID: 0xe3a9c1d200000002, Serial: "69240900",
		Product: "AMD Instinct MI300X OAM", ComputePartition: "spx", MemoryPartition: "nps1", KFDNodes: 1, Path: d.Path,
	}, *d)
	assert.FileExists(t, d.Path+"/unique_id")
	assert.Equal(t, []string{"PCI-n1@0000:03:00.0", "PCI-n1@0000:03:00.0", "", "", "unknown", "unknown"},
		ids(s, "card3", "renderD140", "card4", "0000:b3:00.0", "card9", "0000:b4:00.0"))
	assert.Nil(t, s.BySerial("69240900"), "two boards have it")
	assert.Nil(t, s.BySerial(""))
	assert.Equal(t, first, read(t, board("0003:05:00.0", 0xe3a9c1d200000001)).BySerial("69240900").HwID("n1"))
	assert.Nil(t, (*Snapshot)(nil).ByPCI("0000:19:00.0"))
	assert.False(t, (*Snapshot)(nil).Has("card0"))
}

func TestPartitions(t *testing.T) {
	old := func(b sysfstest.Board) sysfstest.Board { b.Old = true; return b }
	// The order of the numbers has no meaning: the second board's names come first.
	boards := []sysfstest.Board{cpx("0000:05:00.0", 0xe3a9c1d200000001, 128, 7), cpx("0000:27:00.0", 0xe3a9c1d200000002, 136, 0)}
	names := []string{"0000:05:00.0", "amdgpu_xcp_7", "amdgpu_xcp_13", "amdgpu_xcp_0", "renderD128", "renderD130", "card8", "card15", "amdgpu_xcp_14"}
	want := []string{first, first + "/1", first + "/7", second + "/1", first + "/0", first + "/2", second + "/0", second + "/7", "unknown"}
	s := read(t, boards...)
	assert.Equal(t, want, ids(s, names...))
	assert.Equal(t, 8, s.ByPCI("0000:05:00.0").KFDNodes)
	assert.Equal(t, 8, s.ByXCP("amdgpu_xcp_7").KFDNodes)
	assert.Equal(t, "cpx", s.ByXCP("amdgpu_xcp_7").ComputePartition)
	assert.Equal(t, want, ids(read(t, old(boards[0]), old(boards[1])), names...), "partitions in the bits of the function")

	// A virtual function: the bits of the function are its own.
	vf := cpx("0000:01:02.3", 0xe3a9c1d200000001, 128, 0)
	assert.Equal(t, []string{first, first + "/1", first + "/0"}, ids(read(t, vf), "0000:01:02.3", "amdgpu_xcp_0", "card0"))
	assert.Equal(t, []string{first, "-", first + "/0"}, ids(read(t, old(vf)), "0000:01:02.3", "amdgpu_xcp_0", "card0"))
	// Two of them, of which one could be a partition of the other.
	two := []sysfstest.Board{cpx("0000:01:02.0", 0xe3a9c1d200000001, 128, 0), cpx("0000:01:02.1", 0xe3a9c1d200000002, 136, 7)}
	assert.Equal(t, []string{first + "/1", second + "/1"}, ids(read(t, two...), "amdgpu_xcp_0", "amdgpu_xcp_7"))
	assert.Equal(t, []string{"-", "-"}, ids(read(t, old(two[0]), old(two[1])), "amdgpu_xcp_0", "amdgpu_xcp_7"))
}

// What cannot be read is counted by its cause, and leaves the rest.
func TestProblems(t *testing.T) {
	root := sysfstest.Write(t, cpx("0000:05:00.0", 0xe3a9c1d200000001, 128, 0), cpx("0000:27:00.0", 0xe3a9c1d200000002, 136, 7))
	names := []string{"0000:05:00.0", "card0", "amdgpu_xcp_0", "0000:27:00.0", "amdgpu_xcp_7"}
	for name, tt := range map[string]struct {
		path    string
		err     syscall.Errno
		problem Problem
		want    []string
	}{
		"all compute nodes": {"/properties", syscall.EPERM, Problem{Denied, OfPartitions, 17, "class/kfd/kfd/topology/nodes/0/properties"}, []string{first, first + "/0", "-", second, "-"}},
		"one compute node":  {"nodes/2/properties", syscall.EPERM, Problem{Denied, OfPartitions, 1, "class/kfd/kfd/topology/nodes/2/properties"}, []string{first, first + "/0", "-", second, second + "/1"}},
		"a hung board":      {"05:00.0/current_compute", syscall.EIO, Problem{Failed, OfBoards, 1, "bus/pci/devices/0000:05:00.0/current_compute_partition"}, []string{first, "-", "-", second, second + "/1"}},
		"a busy board":      {"05:00.0/unique_id", syscall.EBUSY, Problem{Busy, OfBoards, 1, "bus/pci/devices/0000:05:00.0/unique_id"}, []string{"", "", "", second, second + "/1"}},
		"no device":         {"05:00.0/vendor", syscall.ENODEV, Problem{}, []string{"unknown", "unknown", "-", second, second + "/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Read("", sysfstest.Refusing{FS: os.DirFS(root), Path: tt.path, Error: tt.err}, time.Unix(1, 0))
			assert.Equal(t, tt.want, ids(s, names...))
			if tt.problem == (Problem{}) {
				assert.Empty(t, s.Problems)
				return
			}
			assert.Equal(t, []Problem{tt.problem}, s.Problems)
			if tt.problem.Of == OfPartitions {
				assert.Zero(t, s.ByPCI("0000:27:00.0").KFDNodes, "not known, as long as one cannot be read")
			}
		})
	}
}

func TestLimit(t *testing.T) {
	files := fstest.MapFS{}
	for i := range MaxDevices + 3 {
		dir := fmt.Sprintf("bus/pci/devices/%04x:00:00.0/", i)
		files[dir+"vendor"], files[dir+"class"] = &fstest.MapFile{Data: []byte("0x1002\n")}, &fstest.MapFile{Data: []byte("0x120000\n")}
	}
	s := Read("", files, time.Unix(1, 0))
	assert.Len(t, slices.Collect(s.Devices()), MaxDevices)
	assert.Equal(t, []Problem{{Limited, OfBoards, 1, "bus/pci/devices"}}, s.Problems)
}

// On random hosts, in all modes, on old and recent kernels, with and without privilege: no name
// means another device than it is, and what is readable is resolved.
func TestRandomHosts(t *testing.T) {
	order := rand.New(rand.NewPCG(1, 2))
	parts := map[string]int{"SPX": 1, "DPX": 2, "TPX": 3, "QPX": 4, "CPX": 8}
	modes := slices.Sorted(maps.Keys(parts))
	resolved := 0
	for range 400 {
		old, denied := order.IntN(2) == 0, order.IntN(4) == 0
		var boards []sysfstest.Board
		truth := map[string]string{}
		numbers := order.Perm(8) // the order in which the driver found the boards
		for i, at := range order.Perm(8) {
			mode := modes[order.IntN(len(modes))]
			b := cpx(fmt.Sprintf("%04x:%02x:00.0", order.IntN(2), 5+16*at), order.Uint64()|1, 128+8*i, 8*numbers[i])
			b.Compute, b.Parts, b.Old = mode, parts[mode], old
			boards = append(boards, b)
			id := fmt.Sprintf("GPU-%016x", b.UniqueID)
			truth[b.PCI] = id
			for part := 1; part < b.Parts; part++ {
				truth[fmt.Sprintf("amdgpu_xcp_%d", b.XCP+part-1)] = fmt.Sprintf("%s/%d", id, part)
			}
		}
		tree := fstest.MapFS{}
		for name, content := range sysfstest.Files(boards...) {
			tree[name] = &fstest.MapFile{Data: []byte(content)}
		}
		var fsys fs.FS = tree
		if denied {
			fsys = sysfstest.Refusing{FS: tree, Path: fmt.Sprintf("nodes/%d/properties", 1+order.IntN(30)), Error: syscall.EPERM}
		}
		s := Read("", fsys, time.Unix(1, 0))
		for name, want := range truth {
			got := ids(s, name)[0]
			if got == "-" && denied && len(s.Problems) > 0 {
				continue
			}
			assert.Equal(t, want, got, name)
			resolved++
		}
	}
	assert.Greater(t, resolved, 9000)
}

// A container that shows class/drm alone has the boards by their cards.
func TestCardsAlone(t *testing.T) {
	s := Read("", fstest.MapFS{
		"class/drm/card1/device/uevent":      {Data: []byte("DRIVER=xe\nPCI_SLOT_NAME=0000:03:00.0\nMODALIAS=x\n")},
		"class/drm/card1/device/vendor":      {Data: []byte("0x8086\n")},
		"class/drm/card1/device/class":       {Data: []byte("0x030000\n")},
		"class/drm/card1/device/drm/card1/x": {},
		"class/drm/card1-DP-1/device/uevent": {Data: []byte("PCI_SLOT_NAME=0000:04:00.0\n")},
	}, time.Unix(1, 0))
	assert.Equal(t, []string{"PCI-n1@0000:03:00.0", "unknown"}, ids(s, "card1", "0000:04:00.0"))
}

// FuzzScan: whatever the files contain, nothing panics, and no name means two devices.
func FuzzScan(f *testing.F) {
	all := sysfstest.Files(cpx("0000:05:00.0", 0xe3a9c1d200000001, 128, 0), cpx("0000:27:00.0", 0xe3a9c1d200000002, 136, 7))
	names := slices.Sorted(maps.Keys(all))
	f.Add(uint(3), "location_id 1280\ndomain 0\ndrm_render_minor 130\n")
	f.Add(uint(40), "location_id 4294967295\ndomain 4294967295\ndrm_render_minor 4294967295\n")
	f.Add(uint(7), "location_id -1\n")
	f.Add(uint(5), "CPX\x00\xff")
	f.Fuzz(func(t *testing.T, which uint, content string) {
		tree := fstest.MapFS{}
		for name, text := range all {
			tree[name] = &fstest.MapFile{Data: []byte(text)}
		}
		tree[names[which%uint(len(names))]] = &fstest.MapFile{Data: []byte(content)}
		s := Read("", tree, time.Unix(1, 0))
		seen := map[string]string{}
		for name, d := range s.byName {
			if d == nil || !strings.HasPrefix(name, "amdgpu_xcp_") || d.HwID("n") == "" {
				continue
			}
			if other, twice := seen[d.HwID("n")]; twice {
				t.Errorf("%s is both %s and %s", d.HwID("n"), name, other)
			}
			seen[d.HwID("n")] = name
		}
	})
}

var _ fs.FS = sysfstest.Refusing{}

// A host with eight boards in CPX.
func BenchmarkRead(b *testing.B) {
	var boards []sysfstest.Board
	for i := range 8 {
		boards = append(boards, cpx(fmt.Sprintf("0000:%02x:00.0", 5+16*i), uint64(i+1), 128+8*i, 8*i))
	}
	root := sysfstest.Write(b, boards...)
	for b.Loop() {
		Read(root, os.DirFS(root), time.Unix(1, 0))
	}
}
