// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusysfs

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
)

const samples = "../../../shared/data/"

// withNodes is a host of which the compute nodes are a capture's.
func withNodes(t *testing.T, capture, below string, boards ...sysfstest.Board) *Snapshot {
	t.Helper()
	files := sysfstest.Files(boards...)
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasPrefix(name, "class/kfd") })
	maps.Copy(files, sysfstest.Captured(t, samples+"amd/"+capture, below))
	root := sysfstest.WriteFiles(t, files)
	s := Read(root, os.DirFS(root), time.Unix(1, 0))
	assert.Empty(t, s.Problems)
	return s
}

// The compute nodes of a real host with MI300X in CPX mode, of which the capture has the
// first two boards. Their unique_id, which all nodes have in common, is no identity.
func TestSamplePartitions(t *testing.T) {
	s := withNodes(t, "kfd-mi300x-cpx-nodes-0-17.log", "class/kfd/kfd",
		cpx("0000:05:00.0", 0xe3a9c1d200000001, 128, 7), cpx("0000:27:00.0", 0xe3a9c1d200000002, 136, 0))
	for n := range 8 {
		assert.Equal(t, []string{fmt.Sprintf("%s/%d", first, n), fmt.Sprintf("%s/%d", second, n)},
			ids(s, fmt.Sprintf("renderD%d", 128+n), fmt.Sprintf("renderD%d", 136+n)))
	}
	assert.Equal(t, []string{first, second, first + "/1", first + "/7", second + "/1", second + "/7"},
		ids(s, "0000:05:00.0", "0000:27:00.0", "amdgpu_xcp_7", "amdgpu_xcp_13", "amdgpu_xcp_0", "amdgpu_xcp_6"))
	for d := range s.Devices() {
		assert.Equal(t, 8, d.KFDNodes, d.PCI)
	}
}

// The compute nodes of a real host with MI210, which have no partitions.
func TestSampleBoards(t *testing.T) {
	var boards []sysfstest.Board
	var renders, want []string
	for i, bus := range []int{0x63, 0x43, 0x03, 0x26, 0xe3, 0xc3, 0x83, 0xa3} { // location_id, 25344 and so on
		b := board(fmt.Sprintf("0000:%02x:00.0", bus), 0xe3a9c1d200000000+uint64(bus))
		b.Compute, b.Memory, b.Card, b.Render = "", "", i, 128+i
		boards, renders = append(boards, b), append(renders, fmt.Sprintf("renderD%d", b.Render))
		want = append(want, fmt.Sprintf("GPU-e3a9c1d2000000%02x", bus))
	}
	s := withNodes(t, "kfd-mi210x8-nodes.log", "class/kfd/kfd/topology", boards...)
	assert.Equal(t, want, ids(s, renders...))
	for d := range s.Devices() {
		assert.Equal(t, 1, d.KFDNodes, d.PCI)
		assert.False(t, d.Partitioned())
	}
}

// Boards of real hosts by their cards. The captures lack the class, which uevent has.
func TestSampleCards(t *testing.T) {
	for capture, want := range map[string]Device{
		"amd/sysfs-rx6900xt.log":      {PCI: "0000:0c:00.0", Vendor: VendorAMD, UniqueID: 0x946d7e1ef9b172dd},
		"amd/sysfs-rx7800xt.log":      {PCI: "0000:03:00.0", Vendor: VendorAMD},
		"intel_gpu/sysfs-b580-xe.log": {PCI: "0000:09:00.0", Vendor: VendorIntel, DeviceID: 0xe20b},
	} {
		t.Run(capture, func(t *testing.T) {
			files := sysfstest.Captured(t, samples+capture, "class/drm")
			card := "card1"
			if files["class/drm/card1/device/vendor"] == "" {
				card = "card0"
			}
			device := "class/drm/" + card + "/device"
			files[device+"/class"], files[device+"/drm/"+card+"/dev"] = "0x030000\n", "226:0\n"
			root := sysfstest.WriteFiles(t, files)
			s := Read(root, os.DirFS(root), time.Unix(1, 0))
			assert.Empty(t, s.Problems)
			want.Path = root + "/" + device
			if d := s.ByCard(card); assert.NotNil(t, d) {
				assert.Equal(t, want, *d)
			}
		})
	}
}
