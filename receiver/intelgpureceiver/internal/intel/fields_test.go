// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

const (
	board  = "PCI-host-1@0000:4d:00.0"
	labels = `pci_bdf="0000:4d:00.0"`
)

// row is a line of a page about the board.
func row(family, more string, v any) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf("%s{%s%s} %v", family, labels, more, v)
}

func scrape(t testing.TB, lines ...string) pagetexttest.Result {
	return newExporter(t).Scrape(lines...)
}

func newExporter(t testing.TB) *pagetexttest.Exporter {
	return pagetexttest.New(t, NewVendor("", "host-1"), devicemap.Options{})
}

// TestFields has every family with a value on the page and what it becomes, worked out by
// hand.
func TestFields(t *testing.T) {
	cases := []struct{ family, labels, in, want string }{
		{"xpum_engine_ratio", "", "0.29", "hw.gpu.utilization{hw.gpu.task=general} 0.29"},
		{"xpum_engine_group_ratio", `type="compute"`, "0.5", "hw.gpu.utilization{hw.gpu.task=compute} 0.5"},
		{"xpum_engine_group_ratio", `type="media"`, "0.25", "hw.gpu.utilization{hw.gpu.task=media} 0.25"},
		{"xpum_engine_group_ratio", `type="copy"`, "0.125", "hw.gpu.utilization{hw.gpu.task=copy} 0.125"},
		{"xpum_engine_group_ratio", `type="render"`, "0", "hw.gpu.utilization{hw.gpu.task=render} 0"},
		{"xpum_eu_active_ratio", "", "0.4", "gpu.sm.active{} 0.4"},
		{"xpum_memory_used_bytes", "", "27262976", "hw.gpu.memory.usage{} 27262976"},
		{"xpum_memory_ratio", "", "0.4", ""},
		{"xpum_memory_bandwidth_ratio", "", "0.12", "gpu.memory.bandwidth.utilization{} 0.12"},
		{"xpum_memory_read_bytes_total", "", "5e9", "gpu.memory.io{network.io.direction=receive} 5000000000"},
		{"xpum_memory_write_bytes_total", "", "6e9", "gpu.memory.io{network.io.direction=transmit} 6000000000"},
		{"xpum_power_watts", "", "44.5", "hw.power{} 44.5"},
		{"xpum_energy_joules_total", "", "5245.05", "hw.energy{} 5245.05"},
		{"xpum_temperature_celsius", `location="gpu"`, "45", "hw.temperature{hw.sensor_location=gpu} 45"},
		{"xpum_temperature_celsius", `location="mem"`, "-3", "hw.temperature{hw.sensor_location=memory} -3"},
		{"xpum_max_temperature_celsius", `location="gpu"`, "52", "hw.temperature{hw.sensor_location=gpu} 52"},
		{"xpum_frequency_mhz", `location="gpu",type="actual"`, "2050", "gpu.clock.frequency{gpu.clock.domain=sm} 2050000000"},
		{"xpum_frequency_mhz", `location="media",type="actual"`, "1025", "gpu.clock.frequency{gpu.clock.domain=media} 1025000000"},
		{"xpum_frequency_mhz", `location="gpu",type="request"`, "2100", ""},
		{"xpum_cache_errors_total", `type="correctable"`, "3", "gpu.ecc.errors{error.type=corrected,gpu.ecc.block=cache} 3 hw.errors{error.type=corrected} 3"},
		{"xpum_non_compute_errors_total", `type="uncorrectable"`, "2", "gpu.ecc.errors{error.type=uncorrected,gpu.ecc.block=non_compute} 2 hw.errors{error.type=uncorrected} 2"},
		{"xpum_programming_errors_total", "", "4", "gpu.device.errors{error.type=programming} 4"},
		{"xpum_driver_errors_total", "", "5", "gpu.device.errors{error.type=driver} 5"},
		{"xpum_resets_total", "", "1", "gpu.device.resets{} 1"},
		{"xpum_pcie_read_bytes_total", "", "7e9", "hw.gpu.io{gpu.io.link=pcie,network.io.direction=receive} 7000000000"},
		{"xpum_pcie_write_bytes_total", "", "8e9", "hw.gpu.io{gpu.io.link=pcie,network.io.direction=transmit} 8000000000"},
		{"xpum_fabric_tx_bytes_total", `dst_sub_dev="1"`, "9e9", "hw.gpu.io{gpu.io.link=xelink,network.io.direction=transmit} 9000000000"},
		{"xpum_xelink_port_status", `description="All ports are up"`, "1", "gpu.link.up{gpu.link.kind=internal} 1"},
		{"xpum_xelink_port_status", "", "2", "gpu.link.up{gpu.link.kind=internal} 1"},
		{"xpum_xelink_port_status", "", "3", "gpu.link.up{gpu.link.kind=internal} 0"},
		{"xpum_xelink_port_status", "", "0", ""},

		{"hw_gpu_utilization_ratio", `hw_gpu_task="all"`, "0.11", "hw.gpu.utilization{hw.gpu.task=general} 0.11"},
		{"hw_gpu_utilization_ratio", `hw_gpu_task="compute-all"`, "0.4", "hw.gpu.utilization{hw.gpu.task=compute} 0.4 hw.gpu.utilization{hw.gpu.task=general} 0.4"},
		{"hw_gpu_utilization_ratio", `hw_gpu_task="media-all"`, "0.2", "hw.gpu.utilization{hw.gpu.task=media} 0.2"},
		{"hw_gpu_utilization_ratio", `hw_gpu_task="copy-all"`, "0.3", "hw.gpu.utilization{hw.gpu.task=copy} 0.3"},
		{"hw_gpu_utilization_ratio", `hw_gpu_task="render-all"`, "1.04", "hw.gpu.utilization{hw.gpu.task=render} 1"},
		{"hw_gpu_utilization_ratio", `hw_gpu_task="compute-single"`, "0.9", ""},
		{"hw_memory_usage_bytes", `hw_memory_location="device"`, "8589934592", "hw.gpu.memory.usage{} 8589934592"},
		{"hw_memory_usage_bytes", `hw_memory_location="system"`, "8589934592", ""},
		{"hw_memory_size_bytes", `hw_memory_location="device"`, "8589934592", "hw.gpu.memory.limit{} 8589934592"},
		{"hw_memory_bandwidth_utilization_ratio", `hw_memory_location="device"`, "0.21", "gpu.memory.bandwidth.utilization{} 0.21"},
		{"hw_memory_io_bytes_total", `hw_memory_location="device",network_io_direction="receive"`, "5000", "gpu.memory.io{network.io.direction=receive} 5000"},
		{"hw_memory_io_bytes_total", `hw_memory_location="device",network_io_direction="transmit"`, "6000", "gpu.memory.io{network.io.direction=transmit} 6000"},
		{"hw_power_watts", `hw_sensor_location="card"`, "31.5", "hw.power{} 31.5"},
		{"hw_power_watts", `hw_sensor_location="memory"`, "31.5", ""},
		{"hw_energy_joules_total", `hw_sensor_location="package"`, "19014.25", "hw.energy{} 19014.25"},
		{"hw_temperature_celsius", `hw_sensor_location="gpu",statistic="max"`, "36", "hw.temperature{hw.sensor_location=gpu} 36"},
		{"hw_temperature_celsius", `hw_sensor_location="memory",statistic="mean"`, "40", "hw.temperature{hw.sensor_location=memory} 40"},
		{"hw_temperature_celsius", `hw_sensor_location="gpu",statistic="min"`, "30", ""},
		{"hw_frequency_hertz", `aggregation="avg",hw_frequency_domain="gpu"`, "960000000", "gpu.clock.frequency{gpu.clock.domain=sm} 960000000"},
		{"hw_frequency_hertz", `aggregation="avg",hw_frequency_domain="media"`, "1025000000", "gpu.clock.frequency{gpu.clock.domain=media} 1025000000"},
		{"hw_frequency_hertz", `aggregation="avg",hw_frequency_domain="memory"`, "2000000000", "gpu.clock.frequency{gpu.clock.domain=memory} 2000000000"},
		{"hw_frequency_hertz", `aggregation="max",hw_frequency_domain="gpu"`, "960000000", ""},
		{"hw_errors_total", `error_type="uncorrectable",error_category="cache_errors"`, "2", "gpu.ecc.errors{error.type=uncorrected,gpu.ecc.block=cache} 2 hw.errors{error.type=uncorrected} 2"},
		{"hw_errors_total", `error_type="correctable",error_category="l3fabric_errors"`, "2", "gpu.ecc.errors{error.type=corrected,gpu.ecc.block=l3fabric} 2 hw.errors{error.type=corrected} 2"},
		{"hw_errors_total", `error_type="uncorrectable",error_category="programming_errors"`, "3", "gpu.device.errors{error.type=programming} 3"},
		{"hw_errors_total", `error_type="uncorrectable",error_category="driver_errors"`, "4", "gpu.device.errors{error.type=driver} 4"},
		{"hw_errors_total", `error_type="uncorrectable",error_category="reset"`, "5", "gpu.device.resets{} 5"},
		{"hw_gpu_io_bytes_total", `network_io_direction="receive"`, "1000", "hw.gpu.io{gpu.io.link=pcie,network.io.direction=receive} 1000"},
		{"hw_gpu_io_bytes_total", `network_io_direction="transmit"`, "2000", "hw.gpu.io{gpu.io.link=pcie,network.io.direction=transmit} 2000"},
		{"hw_status", `hw_type="gpu",hw_state="reset_needed"`, "1", "gpu.health.status{gpu.health.state=fail,gpu.health.watch=gpu} 1 gpu.health.status{gpu.health.state=pass,gpu.health.watch=gpu} 0 gpu.health.status{gpu.health.state=warn,gpu.health.watch=gpu} 0"},
		{"hw_frequency_throttle_status", `com_intel_speed_throttle_reason="thermal_limit"`, "1", "gpu.throttle.active{gpu.throttle.reason=hw_thermal} 1"},
	}
	tested := map[string]bool{}
	for _, c := range cases {
		tested[c.family] = true
		r := scrape(t, row(c.family, c.labels, c.in))
		assert.Equal(t, c.want, strings.Join(r.Points(board), " "), "%s{%s} %s", c.family, c.labels, c.in)
		id, known := Table.ByName(c.family)
		require.True(t, known, c.family)
		for _, alias := range Table.Fields[id].Aliases {
			assert.Equal(t, r.Points(board), scrape(t, row(alias, c.labels, c.in)).Points(board), alias)
		}
	}
	for _, f := range Table.Fields {
		assert.True(t, f.Computed || tested[f.Name], "%s has no case", f.Name)
	}
	for _, family := range Table.Dropped {
		r := scrape(t, row(family, "", 1))
		assert.Equal(t, map[string]int{"dropped": 1}, r.Refusals(), family)
		assert.Empty(t, r.IDs(t), family)
	}
}

// specified are the families that the table must know.
var specified = []string{
	"xpum_engine_ratio", "xpum_engine_group_ratio", "xpum_memory_used_bytes", "xpum_memory_ratio", "xpum_memory_bandwidth_ratio",
	"xpum_memory_read_bytes", "xpum_memory_write_bytes", "xpum_power_watts", "xpum_energy_joules", "xpum_energy_joules_total",
	"xpum_temperature_celsius", "xpum_frequency_mhz", "xpum_cache_errors", "xpum_non_compute_errors", "xpum_programming_errors",
	"xpum_driver_errors", "xpum_resets", "xpum_pcie_read_bytes", "xpum_pcie_write_bytes", "xpum_fabric_tx_bytes",
	"xpum_xelink_port_status", "xpum_eu_active_ratio",
	"hw_gpu_utilization_ratio", "hw_memory_usage_bytes", "hw_memory_size_bytes", "hw_memory_bandwidth_utilization_ratio",
	"hw_memory_io_bytes_total", "hw_power_watts", "hw_energy_joules_total", "hw_temperature_celsius", "hw_frequency_hertz",
	"hw_errors_total", "hw_gpu_io_bytes_total", "hw_status", "hw_frequency_throttle_status",
}

func TestSpecified(t *testing.T) {
	for _, family := range specified {
		_, known := Table.ByName(family)
		assert.True(t, known, family)
	}
}
