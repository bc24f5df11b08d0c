// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intel

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

const samples = "../../../../../shared/data/intel_gpu/"

// A page of a real host with two Arc Pro B60 of 24,480 MiB, where it is at hand.
func TestSamplePage(t *testing.T) {
	page, err := os.ReadFile(samples + "xpumd2-b60x2.prom")
	if err != nil {
		t.Skip("samples are not there")
	}
	r := pagetexttest.New(t, NewVendor("n", ""), devicemap.Options{}).ScrapePage(page)
	const one, two = "PCI-n@0000:03:00.0", "PCI-n@0000:05:00.0"
	assert.Equal(t, []string{one, two}, r.IDs(t))
	assert.Equal(t, map[string]int{"dropped": 2}, r.Refusals(), "hw_gpu_info has the model alone")
	assert.Equal(t, "Intel(R) Arc(TM) Pro B60 Graphics", r.Resource(one)["hw.model"])
	assert.Equal(t, []string{
		"gpu.clock.frequency{gpu.clock.domain=sm} 960000000",
		"gpu.memory.io{network.io.direction=receive} 5000", "gpu.memory.io{network.io.direction=transmit} 6000",
		"hw.gpu.io{gpu.io.link=pcie,network.io.direction=receive} 1000", "hw.gpu.io{gpu.io.link=pcie,network.io.direction=transmit} 2000",
		"hw.gpu.memory.limit{} 2.566914048e+10", "hw.gpu.memory.usage{} 8589934592", "hw.gpu.memory.utilization{} 0.3346405229", // 8,192 MiB of 24,480
		"hw.power{} 31.5", "hw.temperature{hw.sensor_location=gpu} 36", "hw.temperature{hw.sensor_location=memory} 40",
	}, r.Points(one))
	assert.Equal(t, []string{"hw.gpu.memory.utilization{} 0.1673202614"}, r.Only(two, "hw.gpu.memory.utilization"), "4,096 MiB of 24,480")
	assert.Equal(t, []string{"hw.power{} 29.5"}, r.Only(two, "hw.power"))
	assert.Len(t, r.Points(two), 11)
}

// The energies of a real B580, where the card's is less than its package's: the package
// stands for the GPU.
func TestSampleDomains(t *testing.T) {
	files := sysfstest.Captured(t, samples+"sysfs-b580-xe.log", "")
	const hwmon = "/card1/device/hwmon/hwmon2/"
	var page []string
	domains := map[string]string{"card": "card", "pkg": "package"} // by label
	for _, sensor := range []string{"energy1", "energy2"} {
		domain := domains[strings.TrimSpace(files[hwmon+sensor+"_label"])]
		microjoules, err := strconv.ParseFloat(strings.TrimSpace(files[hwmon+sensor+"_input"]), 64)
		require.NoError(t, err)
		page = append(page, row(energy, at(domain), microjoules/1e6))
	}
	assert.Equal(t, []string{"hw.energy{} 19014.24811"}, scrape(t, page...).Points(board))
}
