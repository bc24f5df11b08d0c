// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

// conversions has rows of every family, with what they become, worked out by hand.
var conversions = []struct {
	rows []string // family{labels} value
	want []string
}{
	{[]string{"gpu_gfx_activity 37"}, []string{"hw.gpu.utilization{hw.gpu.task=general} 0.37"}},
	{[]string{`gpu_gfx_busy_instantaneous{xcc_index="0"} 20`, `gpu_gfx_busy_instantaneous{xcc_index="1"} 70`}, []string{"hw.gpu.utilization{hw.gpu.task=general} 0.45"}},
	{[]string{"gpu_gfx_activity 37", `gpu_gfx_busy_instantaneous{xcc_index="0"} 20`}, []string{"hw.gpu.utilization{hw.gpu.task=general} 0.37"}},
	{[]string{`gpu_vcn_busy_instantaneous{xcc_index="0"} 10`, `gpu_vcn_busy_instantaneous{xcc_index="1"} 30`}, []string{"hw.gpu.utilization{hw.gpu.task=decoder} 0.2"}},
	{[]string{`gpu_jpeg_busy_instantaneous{xcc_index="0"} 8`}, []string{"hw.gpu.utilization{hw.gpu.task=jpeg} 0.08"}},
	{[]string{`gpu_vcn_activity{vcn_index="0"} 50`, `gpu_vcn_activity{vcn_index="1"} 0`}, []string{"hw.gpu.utilization{hw.gpu.task=decoder} 0.25"}},
	{[]string{`gpu_jpeg_activity{jpeg_index="0"} 4`, `gpu_jpeg_activity{jpeg_index="1"} 8`}, []string{"hw.gpu.utilization{hw.gpu.task=jpeg} 0.06"}},
	{[]string{`gpu_vcn_activity{vcn_index="0"} 50`, `gpu_vcn_busy_instantaneous{xcc_index="0"} 10`}, []string{"hw.gpu.utilization{hw.gpu.task=decoder} 0.1"}},
	{[]string{"gpu_umc_activity 12"}, []string{"gpu.memory_controller.utilization{} 0.12"}},
	// 283 MiB are 296747008 bytes, 196592 MiB 206141652992.
	{[]string{"gpu_used_vram 283"}, []string{"hw.gpu.memory.usage{} 296747008"}},
	{[]string{"gpu_total_vram 196592"}, []string{"hw.gpu.memory.limit{} 2.06141653e+11"}},
	{[]string{"gpu_total_memory 68702"}, []string{"hw.gpu.memory.limit{} 6.8702e+10"}}, // decimal
	{[]string{"gpu_used_vram 50", "gpu_total_vram 200"}, []string{"hw.gpu.memory.limit{} 209715200", "hw.gpu.memory.usage{} 52428800", "hw.gpu.memory.utilization{} 0.25"}},
	{[]string{"gpu_package_power 412"}, []string{"hw.power{} 412"}},
	{[]string{"gpu_average_package_power 41"}, []string{"hw.power{} 41"}},
	{[]string{"gpu_power_usage 40"}, []string{"hw.power{} 40"}},
	{[]string{"gpu_package_power 0", "gpu_average_package_power 41", "gpu_power_usage 40"}, []string{"hw.power{} 41"}},
	// 65536 steps are 1 J. The library prints 65536 × 15.3 µJ = 1002700.8 µJ for them.
	{[]string{"gpu_energy_consumed 1002700.8"}, []string{"hw.energy{} 1"}},
	{[]string{"gpu_energy_consumed 1e12"}, []string{"hw.energy{} 997306.4747"}},
	{[]string{"gpu_junction_temperature 61"}, []string{"hw.temperature{hw.sensor_location=gpu} 61"}},
	{[]string{"gpu_edge_temperature 55"}, []string{"hw.temperature{hw.sensor_location=gpu} 55"}},
	{[]string{"gpu_junction_temperature 0", "gpu_edge_temperature 55"}, []string{"hw.temperature{hw.sensor_location=gpu} 55"}},
	{[]string{"gpu_memory_temperature 48"}, []string{"hw.temperature{hw.sensor_location=memory} 48"}},
	{[]string{`gpu_hbm_temperature{hbm_index="0"} 44`, `gpu_hbm_temperature{hbm_index="1"} 47`, `gpu_hbm_temperature{hbm_index="2"} 41`}, []string{"hw.temperature{hw.sensor_location=memory} 47"}},
	{[]string{`gpu_clock{clock_index="0",clock_type="system"} 132`, `gpu_clock{clock_index="1",clock_type="system"} 2100`, `gpu_clock{clock_index="2",clock_type="GPU_CLOCK_TYPE_SYSTEM"} 2000`},
		[]string{"gpu.clock.frequency{gpu.clock.domain=sm} 2100000000"}},
	{[]string{`gpu_clock{clock_index="8",clock_type="memory"} 900`, `gpu_clock{clock_index="9",clock_type="video"} 29`, `gpu_clock{clock_index="14",clock_type="data"} 22`, `gpu_clock{clock_index="9",clock_type="soc"} 30`},
		[]string{"gpu.clock.frequency{gpu.clock.domain=data} 22000000", "gpu.clock.frequency{gpu.clock.domain=memory} 900000000", "gpu.clock.frequency{gpu.clock.domain=soc} 30000000", "gpu.clock.frequency{gpu.clock.domain=video} 29000000"}},
	{[]string{`gpu_clock{clock_index="8",clock_type="GPU_CLOCK_TYPE_MEMORY"} 900`}, []string{"gpu.clock.frequency{gpu.clock.domain=memory} 900000000"}},
	{[]string{"gpu_ecc_correct_total 3"}, []string{"hw.errors{error.type=corrected} 3"}},
	{[]string{"gpu_ecc_uncorrect_total 0"}, []string{"hw.errors{error.type=uncorrected} 0"}},
	{[]string{"gpu_ecc_deferred_total 2"}, []string{"hw.errors{error.type=deferred} 2"}},
	{[]string{`gpu_afid_errors{afid_index="1",severity="fatal"} 25`, `gpu_afid_errors{afid_index="0",severity="fatal"} 30`, `gpu_afid_errors{afid_index="0",severity="CPER_SEVERITY_NON_FATAL_CORRECTED"} 24`},
		[]string{"gpu.ras.last{gpu.ras.severity=fatal} 30", "gpu.ras.last{gpu.ras.severity=non_fatal_corrected} 24"}},
	{[]string{"gpu_health 1"}, health("pass")},
	{[]string{"gpu_health 0"}, health("fail")},
	{[]string{"pcie_replay_count 7"}, []string{"gpu.pcie.replays{} 7"}},
	{[]string{"pcie_recovery_count 1", "pcie_replay_rollover_count 2", "pcie_nack_sent_count 3", "pcie_nack_received_count 4"},
		[]string{"gpu.pcie.errors{gpu.pcie.error.type=nack_received} 4", "gpu.pcie.errors{gpu.pcie.error.type=nack_sent} 3", "gpu.pcie.errors{gpu.pcie.error.type=recovery} 1", "gpu.pcie.errors{gpu.pcie.error.type=replay_rollover} 2"}},
	{[]string{"pcie_bandwidth 24"}, []string{"gpu.pcie.throughput{} 3000000"}}, // 24 Mb/s
	{[]string{"pcie_rx 123456789", "pcie_tx 5"}, []string{"hw.gpu.io{gpu.io.link=pcie,network.io.direction=receive} 123456789", "hw.gpu.io{gpu.io.link=pcie,network.io.direction=transmit} 5"}},
	{[]string{"pcie_rx 0", "pcie_tx 0"}, nil},
	{[]string{`gpu_xgmi_link_rx{link_index="1"} 3`, `gpu_xgmi_link_rx{link_index="2"} 0`, `gpu_xgmi_link_tx{link_index="1"} 10`},
		[]string{"hw.gpu.io{gpu.io.link=xgmi,gpu.link.index=1,network.io.direction=receive} 3072", "hw.gpu.io{gpu.io.link=xgmi,gpu.link.index=1,network.io.direction=transmit} 10240", "hw.gpu.io{gpu.io.link=xgmi,gpu.link.index=2,network.io.direction=receive} 0"}},
	{[]string{"gpu_violation_processor_hot_residency_percentage 5"}, throttle("prochot", "0.05", 1)},
	{[]string{"gpu_violation_ppt_residency_percentage 100"}, throttle("power_cap", "1", 1)},
	{[]string{"gpu_violation_socket_thermal_residency_percentage 0"}, throttle("hw_thermal", "0", 0)},
	{[]string{"gpu_violation_vr_thermal_residency_percentage 1"}, throttle("vr_thermal", "0.01", 1)},
	{[]string{"gpu_violation_hbm_thermal_residency_percentage 50"}, throttle("memory_thermal", "0.5", 1)},
	{[]string{`gpu_violation_gfx_clock_below_host_limit_power_percentage{xcc_index="0"} 10`, `gpu_violation_gfx_clock_below_host_limit_power_percentage{xcc_index="1"} 20`}, throttle("host_power", "0.15", 1)},
	{[]string{`gpu_violation_gfx_clock_below_host_limit_thermal_percentage{xcc_index="0"} 0`}, throttle("host_thermal", "0", 0)},
	{[]string{`gpu_violation_low_utilization_percentage{xcc_index="0"} 90`}, []string{"gpu.throttle.ratio{gpu.throttle.reason=low_util} 0.9"}},
	{[]string{"gpu_prof_tensor_active_percent 12.5"}, []string{"gpu.pipe.active{gpu.pipe=tensor} 0.125"}},
	{[]string{"gpu_prof_sm_active 80"}, []string{"gpu.sm.active{} 0.8"}},
	{[]string{"gpu_prof_occupancy_percent 25"}, []string{"gpu.sm.occupancy{} 0.25"}},
	{[]string{"gpu_prof_simd_utilization 0.75"}, []string{"gpu.engine.active{} 0.75"}},
	{[]string{"sysfs_power1_cap 750000000"}, []string{"gpu.power.limit{gpu.power.limit.kind=enforced} 750"}},
	{[]string{"sysfs_vram_bad_pages_retired 3", "sysfs_vram_bad_pages_pending 1", "sysfs_vram_bad_pages_failed 0"},
		[]string{"gpu.memory.retired_pages.failure{} 0", "gpu.memory.retired_pages.pending{} 1", "gpu.memory.retired_pages{} 3"}},
}

func health(in string) (lines []string) {
	for _, state := range []string{"fail", "pass", "warn"} {
		lines = append(lines, fmt.Sprintf("gpu.health.status{gpu.health.state=%s,gpu.health.watch=exporter} %d", state, map[bool]int{true: 1}[state == in]))
	}
	return lines
}

func throttle(reason, ratio string, active int) []string {
	return []string{fmt.Sprintf("gpu.throttle.active{gpu.throttle.reason=%s} %d", reason, active), fmt.Sprintf("gpu.throttle.ratio{gpu.throttle.reason=%s} %s", reason, ratio)}
}

// withBoard adds the labels of the board to a row.
func withBoard(line string) string {
	name, v, _ := strings.Cut(line, " ")
	family, labels, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
	if labels == "" {
		return row(family, v)
	}
	return row(family, v, labels)
}

// TestConversions: every family becomes what it is, in base units, under each of its names.
func TestConversions(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range conversions {
		var plain, prefixed, upper []string
		for _, line := range c.rows {
			name, rest, _ := strings.Cut(withBoard(line), "{")
			seen[name] = true
			plain = append(plain, name+"{"+rest)
			prefixed = append(prefixed, "amd_"+name+"{"+rest)
			upper = append(upper, strings.ToUpper(name)+"{"+rest)
		}
		for _, page := range [][]string{plain, prefixed, upper} {
			assert.ElementsMatch(t, c.want, scrape(t, page...).Points(board0), "%v", page)
		}
	}
	for id, f := range Table.Fields {
		switch id := devicetable.ID(id); {
		case f.Computed, id >= firstECCBlock, id == NodesTotal: // in tests of their own
		case id >= ProcessorHotTotal && id <= ViolationCounter:
		default:
			assert.True(t, seen[f.Name], "no conversion of %s", f.Name)
		}
	}
}

// TestOldNames: families that were renamed.
func TestOldNames(t *testing.T) {
	assert.Equal(t, []string{"gpu.pcie.errors{gpu.pcie.error.type=nack_received} 4", "gpu.pcie.errors{gpu.pcie.error.type=nack_sent} 3"},
		scrape(t, row("pcie_nac_sent_count", 3), row("pcie_nac_received_count", 4)).Points(board0))
	e := newExporter(t)
	e.Scrape(row("gpu_violation_proc_hot_residency_accumulated", 0), row("gpu_violation_soc_thermal_residency_accumulated", 0), row("gpu_violation_vr_thermal_tracking_accumulated", 0), row("gpu_violation_current_accumulated_counter", 100))
	r := e.Scrape(row("gpu_violation_proc_hot_residency_accumulated", 10), row("gpu_violation_soc_thermal_residency_accumulated", 20), row("gpu_violation_vr_thermal_tracking_accumulated", 0), row("gpu_violation_current_accumulated_counter", 200))
	assert.Equal(t, []string{"gpu.throttle.ratio{gpu.throttle.reason=hw_thermal} 0.2", "gpu.throttle.ratio{gpu.throttle.reason=prochot} 0.1", "gpu.throttle.ratio{gpu.throttle.reason=vr_thermal} 0"}, r.Only(board0, "gpu.throttle.ratio"))
}

// TestRefused: what stands for no value is counted by its cause.
func TestRefused(t *testing.T) {
	for line, want := range map[string]map[string]int{
		row("gpu_package_power", 0):                                   {"no_sensor": 1},
		row("gpu_package_power", "3.69e12"):                           {"implausible": 1},
		row("gpu_junction_temperature", 0):                            {"no_sensor": 1},
		row("gpu_memory_temperature", 201):                            {"implausible": 1},
		row("gpu_gfx_activity", 106):                                  {"implausible": 1},
		row("gpu_gfx_activity", "NaN"):                                {"not_a_number": 1},
		row("gpu_used_vram", -1):                                      {"negative": 1},
		row("gpu_total_vram", "1e303"):                                {"implausible": 1},
		row("pcie_replay_count", "18446744073709551615"):              {"implausible": 1},
		row("gpu_free_vram", 1):                                       {"dropped": 1},
		row("amd_gpu_max_clock", 1):                                   {"dropped": 1},
		row("gpu_process_cu_occupancy", 1, `process_id="4"`):          {"dropped": 1},
		row("pcie_bidirectional_bandwidth", 1):                        {"dropped": 1},
		row("go_goroutines", 1):                                       {"not_amd_gpu": 1},
		row("gpu_used_vram", 211) + "\n" + row("gpu_total_vram", 200): {"implausible": 1},
	} {
		r := scrape(t, line)
		assert.Equal(t, want, r.Refusals(), line)
	}
	assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 1"}, scrape(t, row("gpu_gfx_activity", 104)).Points(board0), "cut")
}

// TestTwoNamesOnOnePage: two exporters behind one address are one device, of which the
// first rows count.
func TestTwoNamesOnOnePage(t *testing.T) {
	r := scrape(t, row("gpu_package_power", 400), row("gpu_ecc_uncorrect_total", 1), row("amd_gpu_package_power", 401), row("amd_gpu_ecc_uncorrect_total", 2),
		row("gpu_gfx_busy_instantaneous", 10, `xcc_index="0"`), row("amd_gpu_gfx_busy_instantaneous", 90, `xcc_index="0"`))
	assert.Equal(t, []string{"hw.errors{error.type=uncorrected} 1", "hw.gpu.utilization{hw.gpu.task=general} 0.1", "hw.power{} 400"}, r.Points(board0))
	assert.Equal(t, map[string]int{"repeated": 3}, r.Refusals())
}

// TestUnmapped: families that the table does not know, with the labels that keep rows
// apart, and none that a user or a process adds.
func TestUnmapped(t *testing.T) {
	r := scrape(t, row("gpu_total_gtt", 515000, `team="a"`, `kfd_process_id="1,2"`), row("amd_gpu_voltage", 800),
		row("gpu_xyz", 1, `hbm_index="0"`), row("gpu_xyz", 2, `hbm_index="1"`), row("GPU_PROF_GRBM_COUNT", 3), row("xgmi_neighbor_0_nop_tx", 4))
	assert.Equal(t, []string{
		"amd.gpu_prof_grbm_count{} 3", "amd.gpu_total_gtt{} 515000", "amd.gpu_voltage{} 800",
		"amd.gpu_xyz{hbm_index=0} 1", "amd.gpu_xyz{hbm_index=1} 2", "amd.xgmi_neighbor_0_nop_tx{} 4",
	}, r.Points(board0))
}

// TestNodesTotal: the exporter counts devices that it has no row of.
func TestNodesTotal(t *testing.T) {
	for count, missing := range map[int]int{1: 0, 3: 2} {
		r := scrape(t, row("gpu_package_power", 400), fmt.Sprintf("gpu_nodes_total %d", count))
		assert.Equal(t, missing, r.Missing)
		assert.Empty(t, r.Refusals())
	}
	r := scrape(t, "gpu_nodes_total 8", "promhttp_metric_handler_requests_total 1")
	assert.Equal(t, devicemap.LacksPage, r.Lack)
	assert.Contains(t, r.Points(""), "gpu.exporter.up{} 0")
	asIs := pagetexttest.New(t, NewVendor(nil), devicemap.Options{AsIs: true}).Scrape(row("gpu_package_power", 400), "gpu_nodes_total 1")
	assert.Contains(t, asIs.Points(""), "gpu_nodes_total{} 1", "under the exporter's names, too")
}

// TestEveryFieldIsUsed: a family of the table becomes something.
func TestEveryFieldIsUsed(t *testing.T) {
	used := map[devicetable.ID]bool{NodesTotal: true}
	for _, s := range Table.Series {
		for _, id := range s.From {
			used[id] = true
		}
	}
	for _, d := range Table.Derived {
		for _, id := range d.From {
			used[id] = true
		}
	}
	for id, f := range Table.Fields {
		assert.True(t, used[devicetable.ID(id)], f.Name)
	}
}

// TestManyProcesses: a label with a value for each process makes no series.
func TestManyProcesses(t *testing.T) {
	var lines []string
	for pid := range 20_000 {
		process := fmt.Sprintf(`process_id="%d"`, pid)
		lines = append(lines, row("gpu_process_cu_occupancy", 1, process), row("gpu_something", 1, process))
	}
	r := scrape(t, lines...)
	assert.Equal(t, []string{"amd.gpu_something{} 1"}, r.Points(board0))
	assert.Equal(t, map[string]int{"dropped": 20_000}, r.Refusals())
}
