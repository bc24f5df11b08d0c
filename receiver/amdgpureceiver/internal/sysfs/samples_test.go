// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver/internal/amd"
)

// mapped is what captures of a real board become, where they are at hand.
func mapped(t *testing.T, card, capture, metrics string) pagetexttest.Result {
	t.Helper()
	const samples = "../../../../../shared/data/amd/"
	files := sysfstest.Captured(t, samples+capture, "class/drm")
	binary, err := os.ReadFile(samples + metrics)
	require.NoError(t, err)
	maps.Copy(files, map[string]string{
		"class/drm/" + card + "/device/gpu_metrics": string(binary),
		"class/drm/" + card + "/device/class":       "0x030000\n", // which uevent has
	})
	snapshot := read(t, sysfstest.WriteFiles(t, files))
	host := func() *gpusysfs.Snapshot { return snapshot }
	page, err := New(host, func(u Unread) { assert.Fail(t, "unread", "%v", u) }).Page(t.Context(), nil)
	require.NoError(t, err)
	return pagetexttest.New(t, amd.NewVendor(host), devicemap.Options{}).ScrapePage(page)
}

func TestSampleBoard(t *testing.T) {
	const id = "GPU-946d7e1ef9b172dd"
	r := mapped(t, "card0", "sysfs-rx6900xt.log", "gpu_metrics-v1_3-page-padded-rx6900xt.bin")
	require.Equal(t, []string{id}, r.IDs(t))
	assert.Equal(t, "0000:0c:00.0", r.Resource(id)["gpu.pci.address"])
	want := []string{
		"gpu.clock.frequency{gpu.clock.domain=memory} 1000000000", "gpu.clock.frequency{gpu.clock.domain=sm} 500000000",
		"gpu.memory_controller.utilization{} 0", "gpu.pcie.replays{} 0",
		"gpu.power.limit{gpu.power.limit.kind=enforced} 289", // 289,000,000 µW
		"hw.energy{} 269.9536438",                            // 17,691,682 steps of 2^-16 J
		"hw.gpu.memory.limit{} 1.716309197e+10", "hw.gpu.memory.usage{} 668274688", "hw.gpu.memory.utilization{} 0.03893673059",
		"hw.gpu.utilization{hw.gpu.task=general} 0.03",
		"hw.power{} 36", // 36,000,000 µW
		"hw.temperature{hw.sensor_location=gpu} 59",    // the junction, not the edge's 56
		"hw.temperature{hw.sensor_location=memory} 54", // 54,000 m°C
	}
	slices.Sort(want)
	assert.Equal(t, want, r.Points(id))
	assert.Empty(t, r.Refusals())
}

// The capture has no unique_id and no serial number: nothing says which board it is.
func TestSampleWithoutIdentity(t *testing.T) {
	r := mapped(t, "card1", "sysfs-rx7800xt.log", "gpu_metrics-v1_3-rx7800xt.bin")
	assert.Empty(t, r.IDs(t))
	// Two clocks, three temperatures, power and its limit, two activities; and an energy of 0.
	assert.Equal(t, map[string]int{"no_device": 9, "no_sensor": 1}, r.Refusals())
}
