// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

// sample is a file that a real host or the exporter's documentation has, where it is at hand.
func sample(t *testing.T, name string) []byte {
	t.Helper()
	const samples = "../../../../../shared/data/amd"
	if _, err := os.Stat(samples); err != nil {
		t.Skip("samples are not there")
	}
	text, err := os.ReadFile(filepath.Join(samples, name))
	require.NoError(t, err)
	return text
}

func scrapeSample(t *testing.T, name string) pagetexttest.Result {
	t.Helper()
	return newExporter(t).ScrapePage(sample(t, name))
}

// The smallest page of the exporter's sources, with labels in upper case.
func TestSampleMini(t *testing.T) {
	const id = "GPU-667ff97e6cae0f09"
	r := scrapeSample(t, "dme-metrics_mini.prom")
	assert.Equal(t, []string{id}, r.IDs(t))
	assert.Equal(t, []string{"amd.gpu_usage{} 0", "hw.gpu.memory.limit{} 6.8702e+10", "hw.power{} 41"}, r.Points(id))
	assert.Equal(t, "692247001282", r.Resource(id)["hw.serial_number"])
	assert.Empty(t, r.Refusals())
}

// Three real rows: a board without owner, a partition whose pod is the exporter's own, and a
// board that a pod has.
func TestSampleRows(t *testing.T) {
	const free, parent, busy = board0, "GPU-c3ff88426fc31c9e", "GPU-3dd30c4c1df1df58"
	r := scrapeSample(t, "dme-kaiwo-mi300x-lines.prom")
	assert.Equal(t, []string{busy, free}, r.IDs(t), "gpu_gfx_activity is not defined for a partitioned board")
	assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 0"}, r.Points(free))
	assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 1"}, r.Points(busy))

	// The same labels with a family that partitions have.
	r = newExporter(t).ScrapePage(bytes.ReplaceAll(sample(t, "dme-kaiwo-mi300x-lines.prom"), []byte("gpu_gfx_activity"), []byte("gpu_used_vram")))
	assert.Equal(t, []string{busy, parent + "/0", free}, r.IDs(t))
	assert.Equal(t, []string{"hw.gpu.memory.usage{} 104857600"}, r.Points(busy))
	part := r.Resource(parent + "/0")
	assert.Equal(t, []any{parent, int64(0), "cpx_nps4", int64(47)}, []any{part["hw.parent"], part["gpu.partition.id"], part["gpu.partition.profile"], part["gpu.index"]})
	assert.NotContains(t, part, "pod")
	assert.NotContains(t, r.Resource(free), "pod")
	got := r.Resource(busy)
	assert.Equal(t, []any{"high-utilization-57ls6", "default", "workload"}, []any{got["pod"], got["namespace"], got["container"]})
	assert.Equal(t, "AMD Instinct MI300X OAM", got["hw.model"])
}

// Rows of the documentation, in which all boards have the serial number xxxx, and two rows are
// cut short: nothing of them is data.
func TestSampleWithoutIdentity(t *testing.T) {
	r := scrapeSample(t, "dme-doc-array-fields.prom")
	assert.Empty(t, r.IDs(t))
	assert.Equal(t, map[string]int{"no_device": 21, "unparsable": 2}, r.Refusals())
}

// A guest of a real host: its UUID has the unique_id, and what is printed as MB are MiB, the
// memory in the table of models.
func TestSampleGuest(t *testing.T) {
	text := string(sample(t, "amd-smi-mi300x-guest.log"))
	unique, pciID := parseUUID(regexp.MustCompile(`UUID: (\S+)`).FindStringSubmatch(text)[1])
	assert.Equal(t, "GPU-b56f3d3e7b684465", deviceid.AMD(unique))
	assert.Equal(t, uint16(0x74a1), pciID)
	size, err := strconv.ParseFloat(regexp.MustCompile(`/(\d+) MB`).FindStringSubmatch(text)[1], 64)
	require.NoError(t, err)
	assert.InDelta(t, findModel(pciID, "").memory, size*1048576, 0)

	// An MI300A has its memory in common with the processor.
	text = string(sample(t, "amd-smi-cli-doc-static.log"))
	require.Contains(t, text, "DEVICE_ID: 0x74a0")
	require.Contains(t, text, "SIZE: 64289 MB")
	assert.Greater(t, findModel(0x74a0, "").memory, 64289.*mib)
	assert.True(t, findModel(0x74a0, "").shared)
}
