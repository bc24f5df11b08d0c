// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// kind is how two readings of a quantity are compared.
type kind int

const (
	fixed   kind = iota // equal
	gauge               // within what nvidia-smi printed before and after, ± 5 % or one unit
	counter             // between what nvidia-smi printed before and after
	there               // both have it: it moves too fast to be compared
)

// quantity is one that nvidia-smi -q -x and the helper both have. Numbers are in the
// helper's units, which are NVML's.
type quantity struct {
	name string // the helper's reading, or what of a board's identity
	kind kind
	// smi are paths below <gpu>, the first that has a number counts; "a + b" is a sum.
	smi []string
	// page is the family of a Prometheus page, with the labels that matter; factor makes the
	// helper's unit of its value.
	page   string
	factor float64
}

// quantities of a board. memory.* and the layout are those of instances too.
var quantities = append([]quantity{
	{name: "driver"}, {name: "uuid"}, {name: "layout"},
	{name: "name", smi: paths("product_name")},
	{name: "serial", smi: paths("serial")},
	{name: "vbios", smi: paths("vbios_version")},
	{name: "pci", smi: paths("pci/pci_bus_id")},
	{name: "minor", smi: paths("minor_number")},
	{name: "mig.current", smi: paths("mig_mode/current_mig")},
	{name: "mig.pending", smi: paths("mig_mode/pending_mig")},
	{name: "recovery.action", smi: paths("gpu_recovery_action")},

	{name: "memory.total", smi: paths("fb_memory_usage/total"), page: "hw_gpu_memory_limit_bytes", factor: 1},
	{name: "memory.used", kind: gauge, smi: paths("fb_memory_usage/used"), page: "hw_gpu_memory_usage_bytes", factor: 1},
	{name: "memory.free", kind: gauge, smi: paths("fb_memory_usage/free")},
	{name: "memory.reserved", kind: gauge, smi: paths("fb_memory_usage/reserved"), page: "gpu_memory_reserved_bytes", factor: 1},

	{name: "utilization.gpu", kind: there, smi: paths("utilization/gpu_util"), page: "hw_gpu_utilization_ratio hw_gpu_task=general", factor: 100},
	{name: "utilization.memory", kind: there, smi: paths("utilization/memory_util"), page: "gpu_memory_controller_utilization_ratio", factor: 100},
	{name: "utilization.encoder", kind: there, smi: paths("utilization/encoder_util"), page: "hw_gpu_utilization_ratio hw_gpu_task=encoder", factor: 100},
	{name: "utilization.decoder", kind: there, smi: paths("utilization/decoder_util"), page: "hw_gpu_utilization_ratio hw_gpu_task=decoder", factor: 100},

	{name: "power.usage", kind: gauge, smi: power("average_power_draw", "power_draw"), page: "hw_power_watts", factor: 1000},
	{name: "power.limit.management", smi: power("current_power_limit", "power_limit"), page: "gpu_power_limit_watts gpu_power_limit_kind=management", factor: 1000},
	{name: "power.limit.enforced", smi: power("enforced_power_limit"), page: "gpu_power_limit_watts gpu_power_limit_kind=enforced", factor: 1000},

	{name: "temperature.gpu", kind: gauge, smi: paths("temperature/gpu_temp"), page: "hw_temperature_celsius hw_sensor_location=gpu", factor: 1},
	{name: "temperature.memory", kind: gauge, smi: paths("temperature/memory_temp"), page: "hw_temperature_celsius hw_sensor_location=memory", factor: 1},
	{name: "temperature.margin", kind: gauge, smi: paths("temperature/gpu_temp_tlimit"), page: "gpu_temperature_margin_celsius", factor: 1},
	{name: "temperature.limit.shutdown", smi: paths("temperature/gpu_temp_max_threshold")},
	{name: "temperature.limit.slowdown", smi: paths("temperature/gpu_temp_slow_threshold")},
	{name: "temperature.limit.memory_max", smi: paths("temperature/gpu_temp_max_mem_threshold")},
	{name: "temperature.limit.gpu_max", smi: paths("temperature/gpu_temp_max_gpu_threshold")},
	{name: "fan.speed", kind: gauge, smi: paths("fan_speed"), page: "hw_fan_speed_ratio gpu_fan=0", factor: 100},

	{name: "clock.sm", kind: gauge, smi: paths("clocks/sm_clock"), page: "gpu_clock_frequency_hertz gpu_clock_domain=sm", factor: 1e-6},
	{name: "clock.memory", kind: gauge, smi: paths("clocks/mem_clock"), page: "gpu_clock_frequency_hertz gpu_clock_domain=memory", factor: 1e-6},
	{name: "clock.video", kind: gauge, smi: paths("clocks/video_clock"), page: "gpu_clock_frequency_hertz gpu_clock_domain=video", factor: 1e-6},

	{name: "pcie.replays", kind: counter, smi: paths("pci/replay_counter"), page: "gpu_pcie_replays_total", factor: 1},
	{name: "ecc.volatile.corrected", kind: counter, smi: errors("volatile", "single_bit/total", "sram_correctable + dram_correctable"),
		page: "hw_errors_total error_type=corrected", factor: 1},
	{name: "ecc.volatile.uncorrected", kind: counter, smi: errors("volatile", "double_bit/total", "sram_uncorrectable_parity + sram_uncorrectable_secded + dram_uncorrectable", "sram_uncorrectable + dram_uncorrectable"),
		page: "hw_errors_total error_type=uncorrected", factor: 1},
	{name: "ecc.aggregate.corrected", kind: counter, smi: errors("aggregate", "single_bit/total", "sram_correctable + dram_correctable"),
		page: "gpu_ecc_lifetime_errors_total error_type=corrected", factor: 1},
	{name: "ecc.aggregate.uncorrected", kind: counter, smi: errors("aggregate", "double_bit/total", "sram_uncorrectable_parity + sram_uncorrectable_secded + dram_uncorrectable", "sram_uncorrectable + dram_uncorrectable"),
		page: "gpu_ecc_lifetime_errors_total error_type=uncorrected", factor: 1},
	{name: "retired.corrected", kind: counter, smi: paths("retired_pages/multiple_single_bit_retirement/retired_count")},
	{name: "retired.uncorrected", kind: counter, smi: paths("retired_pages/double_bit_retirement/retired_count")},
	{name: "retired.pending", smi: paths("retired_pages/pending_retirement", "retired_pages/pending_blacklist")},
	{name: "remapped.corrected", kind: counter, smi: paths("remapped_rows/remapped_row_corr"), page: "gpu_memory_remapped_rows_total error_type=corrected", factor: 1},
	{name: "remapped.uncorrected", kind: counter, smi: paths("remapped_rows/remapped_row_unc"), page: "gpu_memory_remapped_rows_total error_type=uncorrected", factor: 1},
	{name: "remapped.pending", smi: paths("remapped_rows/remapped_row_pending"), page: "gpu_memory_row_remap_pending", factor: 1},
	{name: "remapped.failure", smi: paths("remapped_rows/remapped_row_failure"), page: "gpu_memory_row_remap_failure", factor: 1},
}, reasons()...)

// reasonNames are those of nvidia-smi for the bits of clock.reasons, from bit 0 on.
var reasonNames = []string{
	"gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost",
	"sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "display_clocks_setting",
}

func reasons() (all []quantity) {
	for _, name := range reasonNames {
		all = append(all, quantity{name: "clock.reasons." + name, kind: gauge, smi: paths(
			"clocks_event_reasons/clocks_event_reason_"+name, "clocks_throttle_reasons/clocks_throttle_reason_"+name)})
	}
	return all
}

func paths(all ...string) []string { return all }

// power is below <gpu_power_readings>, of older drivers below <power_readings>.
func power(names ...string) (all []string) {
	for _, parent := range []string{"gpu_power_readings/", "power_readings/"} {
		for _, name := range names {
			all = append(all, parent+name)
		}
	}
	return all
}

func errors(since string, sums ...string) (all []string) {
	parent := "ecc_errors/" + since + "/"
	for _, sum := range sums {
		all = append(all, parent+strings.ReplaceAll(sum, " + ", " + "+parent))
	}
	return all
}
