// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
)

// tree are files by their paths below the PCI device.
type tree map[string]string

func (t tree) write(tb testing.TB, device string) {
	for path, text := range t {
		path = filepath.Join(device, path)
		require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(tb, os.WriteFile(path, []byte(text), 0o600))
	}
}

// metrics13 and metrics14 are files gpu_metrics; the first fills its page.
func metrics13() string {
	b := make([]byte, 4096)
	binary.LittleEndian.PutUint16(b, 120)
	b[2], b[3] = 1, 3
	for at, v := range map[int]uint16{4: 50, 6: 61, 8: 44, 16: 7, 18: 3, 22: 41} {
		binary.LittleEndian.PutUint16(b[at:], v)
	}
	binary.LittleEndian.PutUint64(b[24:], 2<<16) // 2 J
	return string(b)
}

func metrics14() string {
	b := make([]byte, 288)
	binary.LittleEndian.PutUint16(b, 288)
	b[2], b[3] = 1, 4
	for at, v := range map[int]uint16{4: 71, 6: 63, 10: 742, 12: 88, 14: 12} {
		binary.LittleEndian.PutUint16(b[at:], v)
	}
	binary.LittleEndian.PutUint64(b[24:], 1_000_000<<16) // a million joules
	return string(b)
}

// instinct is a board as the driver shows it, and radeon one with other sensors.
var (
	instinct = tree{
		"gpu_busy_percent": "93\n", "mem_busy_percent": "41\n", "pcie_replay_count": "7\n",
		"mem_info_vram_used": "1048576000\n", "mem_info_vram_total": "206141652992\n",
		"hwmon/hwmon3/name": "nvme\n", "hwmon/hwmon3/temp1_input": "1000\n", "hwmon/hwmon3/temp1_label": "junction\n",
		"hwmon/hwmon9/name": "amdgpu\n", "hwmon/hwmon9/power1_input": "742000000\n", "hwmon/hwmon9/power1_cap": "750000000\n",
		"hwmon/hwmon9/temp2_input": "71000\n", "hwmon/hwmon9/temp2_label": "junction\n",
		"hwmon/hwmon9/temp3_input": "63000\n", "hwmon/hwmon9/temp3_label": "mem\n",
		"hwmon/hwmon9/freq1_input": "2100000000\n", "hwmon/hwmon9/freq1_label": "sclk\n",
		"hwmon/hwmon9/freq2_input": "1300000000\n", "hwmon/hwmon9/freq2_label": "mclk\n",
		"gpu_metrics":            metrics14(),
		"ras/umc_err_count":      "ue: 1\nce: 12\nde: 3\n",
		"ras/pcie_bif_err_count": "ue: 2\nce: 0\n",
		"ras/new_err_count":      "ue: 4\nce: 5\nde: 6\n",
		"ras/gpu_vram_bad_pages": "0x00000001 : 0x00001000 : R\n0x00000002 : 0x00001000 : R\n0x00000003 : 0x00001000 : P\n0x00000004 : 0x00001000 : P\n",
		"ras/features":           "feature mask: 0x3\n",
		"pcie_bw":                "it blocks for a second\n",
	}
	radeon = tree{
		"gpu_busy_percent": "3\n", "mem_info_vram_used": "512\n", "mem_info_vram_total": "1024\n",
		"hwmon/hwmon5/name":           "amdgpu\n",
		"hwmon/hwmon5/power1_average": "36000000\n", "hwmon/hwmon5/power1_input": "99000000\n",
		"hwmon/hwmon5/temp1_input": "56000\n", "hwmon/hwmon5/temp1_label": "edge\n",
		"hwmon/hwmon5/temp2_input": "-3000\n", "hwmon/hwmon5/temp2_label": "mem\n",
		"hwmon/hwmon5/fan1_input": "0\n",
		"gpu_metrics":             metrics13(),
	}
)

const labels = `pci_bus_id="0000:19:00.0",gpu_uuid="c3ff74a1-0000-1000-80ff-88426fc31c9e",serial_number="692251",card_series="AMD Instinct MI300X",gpu_partition_profile="cpx_nps4"`

// host writes a host with a board for each of the trees, which have the labels above but
// for their addresses. It returns the folders of the boards, too.
func host(t testing.TB, trees ...tree) (snapshot func() *gpusysfs.Snapshot, folders []string) {
	var boards []sysfstest.Board
	for i, tree := range trees {
		boards = append(boards, sysfstest.Board{
			PCI: fmt.Sprintf("0000:%02x:00.0", 0x19+i), UniqueID: 0xc3ff88426fc31c9e, Serial: "692251", Product: "AMD Instinct MI300X",
			Compute: "CPX", Memory: "NPS4", Files: tree,
		})
	}
	boards = append(boards, sysfstest.Board{PCI: "0000:03:00.0", Vendor: gpusysfs.VendorIntel, Device: 0xe20b, Files: instinct})
	s := read(t, sysfstest.Write(t, boards...))
	for d := range s.Devices() {
		if d.Vendor == gpusysfs.VendorAMD {
			folders = append(folders, d.Path)
		}
	}
	require.Len(t, folders, len(trees))
	return func() *gpusysfs.Snapshot { return s }, folders
}

func read(t testing.TB, root string) *gpusysfs.Snapshot {
	r := gpusysfs.New(root)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		r.Run(ctx)
		close(ended)
	}()
	r.Ask()
	<-r.Changed()
	stop()
	<-ended
	return r.Snapshot()
}

// without cuts the labels that all rows of a page have.
func without(page []byte) []string {
	var lines []string
	for line := range strings.Lines(string(page)) {
		line = strings.Replace(line, labels, "", 1)
		line = strings.Replace(strings.Replace(line, "{,", "{", 1), "{}", "", 1)
		lines = append(lines, strings.TrimSpace(line))
	}
	slices.Sort(lines)
	return lines
}

var wholeInstinct = []string{
	`gpu_clock{clock_type="GPU_CLOCK_TYPE_MEMORY"} 1300`, `gpu_clock{clock_type="GPU_CLOCK_TYPE_SYSTEM"} 2100`,
	"gpu_ecc_correct_bif 0", "gpu_ecc_correct_total 17", "gpu_ecc_correct_umc 12",
	"gpu_ecc_deferred_total 9", "gpu_ecc_deferred_umc 3",
	"gpu_ecc_uncorrect_bif 2", "gpu_ecc_uncorrect_total 7", "gpu_ecc_uncorrect_umc 1",
	"gpu_energy_consumed 1.0027008e+12", // a million joules, which AMD's library has as 15.3 µJ a step of 2^-16 J
	"gpu_gfx_activity 93", "gpu_junction_temperature 71", "gpu_memory_temperature 63",
	"gpu_package_power 742", "gpu_total_vram 196592", "gpu_umc_activity 41", "gpu_used_vram 1000",
	"pcie_replay_count 7", "sysfs_power1_cap 7.5e+08",
	"sysfs_vram_bad_pages_failed 0", "sysfs_vram_bad_pages_pending 1", "sysfs_vram_bad_pages_retired 2",
}
