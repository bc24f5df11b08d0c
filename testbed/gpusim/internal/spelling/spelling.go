// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package spelling has the names, units and types that fields have on the pages of the first
// and of the newest exporters, by their numbers in those between.
package spelling

import "math"

// Field is how a field is printed.
type Field struct {
	ID    int // the exporter sorts by it
	Name  string
	Help  string // with the unit
	Float bool   // printed with six decimals, else as an integer
	// Of turns the value, in the unit of the exporters between, into that of the page.
	Of func(float64) float64
}

// First are the names until DCGM 1.7; units are those of later versions.
var First = map[int]string{
	100: "dcgm_sm_clock", 101: "dcgm_memory_clock", 102: "dcgm_video_clock",
	140: "dcgm_memory_temp", 150: "dcgm_gpu_temp",
	155: "dcgm_power_usage", 156: "dcgm_total_energy_consumption",
	160: "dcgm_power_management_limit", 164: "dcgm_enforced_power_limit",
	202: "dcgm_pcie_replay_counter",
	203: "dcgm_gpu_utilization", 204: "dcgm_mem_copy_utilization", 206: "dcgm_enc_utilization", 207: "dcgm_dec_utilization",
	230: "dcgm_xid_errors",
	240: "dcgm_power_violation", 241: "dcgm_thermal_violation", 242: "dcgm_sync_boost_violation",
	243: "dcgm_board_limit_violation", 244: "dcgm_low_util_violation", 245: "dcgm_reliability_violation",
	250: "dcgm_fb_total", 251: "dcgm_fb_free", 252: "dcgm_fb_used",
	310: "dcgm_ecc_sbe_volatile_total", 311: "dcgm_ecc_dbe_volatile_total", 312: "dcgm_ecc_sbe_aggregate_total", 313: "dcgm_ecc_dbe_aggregate_total",
	390: "dcgm_retired_pages_sbe", 391: "dcgm_retired_pages_dbe", 392: "dcgm_retired_pages_pending",
	409: "dcgm_nvlink_flit_crc_error_count_total", 419: "dcgm_nvlink_data_crc_error_count_total",
	429: "dcgm_nvlink_replay_error_count_total", 439: "dcgm_nvlink_recovery_error_count_total", 449: "dcgm_nvlink_bandwidth_total",
	1001: "dcgm_fi_prof_gr_engine_active", 1002: "dcgm_fi_prof_sm_active", 1003: "dcgm_fi_prof_sm_occupancy",
	1004: "dcgm_fi_prof_pipe_tensor_active", 1005: "dcgm_fi_prof_dram_active",
	1006: "dcgm_fi_prof_pipe_fp64_active", 1007: "dcgm_fi_prof_pipe_fp32_active", 1008: "dcgm_fi_prof_pipe_fp16_active",
	1009: "dcgm_fi_prof_pcie_tx_bytes", 1010: "dcgm_fi_prof_pcie_rx_bytes", 1011: "dcgm_fi_prof_nvlink_tx_bytes", 1012: "dcgm_fi_prof_nvlink_rx_bytes",
}

func times(f float64) func(float64) float64 { return func(v float64) float64 { return v * f } }

func by(f float64) func(float64) float64 { return func(v float64) float64 { return v / f } }

func same(v float64) float64 { return v }

const mib = 1 << 20

// newest are the fields of DCGM 4.7 that replace others.
var newest = map[int]Field{
	90: {1600, "DCGM_FI_DEV_BAR1_CAPACITY_BYTES", "BAR1 memory total (in bytes).", false, times(mib)},
	92: {1601, "DCGM_FI_DEV_BAR1_USED_BYTES", "BAR1 memory used (in bytes).", false, times(mib)},
	93: {1602, "DCGM_FI_DEV_BAR1_FREE_BYTES", "BAR1 memory free (in bytes).", false, times(mib)},

	100: {1603, "DCGM_FI_DEV_SM_CLOCK_HERTZ", "SM clock frequency (in Hz).", false, times(1e6)},
	101: {1604, "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", "Memory clock frequency (in Hz).", false, times(1e6)},
	102: {1605, "DCGM_FI_DEV_VIDEO_CLOCK_HERTZ", "Video clock frequency (in Hz).", false, times(1e6)},
	113: {1608, "DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ", "Maximum SM clock frequency (in Hz).", false, times(1e6)},
	114: {1609, "DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ", "Maximum memory clock frequency (in Hz).", false, times(1e6)},
	115: {1610, "DCGM_FI_DEV_VIDEO_MAX_CLOCK_HERTZ", "Maximum video clock frequency (in Hz).", false, times(1e6)},

	156: {1611, "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", "Total energy consumption since the driver was loaded (in J).", false, by(1000)},
	203: {1613, "DCGM_FI_DEV_GPU_UTIL_RATIO", "GPU utilization (0 to 1).", true, by(100)},
	204: {1614, "DCGM_FI_DEV_MEMORY_UTIL_RATIO", "Memory utilization (0 to 1).", true, by(100)},
	206: {1615, "DCGM_FI_DEV_ENC_UTIL_RATIO", "Encoder utilization (0 to 1).", true, by(100)},
	207: {1616, "DCGM_FI_DEV_DEC_UTIL_RATIO", "Decoder utilization (0 to 1).", true, by(100)},

	240: {1617, "DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", "Throttling duration due to power constraints (in s).", true, by(1e9)},
	241: {1618, "DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL", "Throttling duration due to thermal constraints (in s).", true, by(1e9)},
	242: {1619, "DCGM_FI_DEV_GPU_SYNC_BOOST_THROTTLE_SECONDS_TOTAL", "Throttling duration due to sync-boost constraints (in s).", true, by(1e9)},
	243: {1620, "DCGM_FI_DEV_GPU_LIMIT_THROTTLE_SECONDS_TOTAL", "Throttling duration due to board limit constraints (in s).", true, by(1e9)},
	244: {1621, "DCGM_FI_DEV_GPU_LOW_UTIL_THROTTLE_SECONDS_TOTAL", "Throttling duration due to low utilization (in s).", true, by(1e9)},
	245: {1622, "DCGM_FI_DEV_GPU_RELIABILITY_THROTTLE_SECONDS_TOTAL", "Throttling duration due to reliability constraints (in s).", true, by(1e9)},

	250: {1625, "DCGM_FI_DEV_FB_CAPACITY_BYTES", "Framebuffer memory total (in bytes).", false, times(mib)},
	251: {1626, "DCGM_FI_DEV_FB_FREE_BYTES", "Framebuffer memory free (in bytes).", false, times(mib)},
	252: {1627, "DCGM_FI_DEV_FB_USED_BYTES", "Framebuffer memory used (in bytes).", false, times(mib)},
	253: {1628, "DCGM_FI_DEV_FB_RESERVED_BYTES", "Framebuffer memory reserved (in bytes).", false, times(mib)},

	// The driver counts KiB; the fields before are that divided by 1000.
	449: {1648, "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", "NVLink throughput of all lanes (in bytes per second).", false, kib},
	440: {1630, "DCGM_FI_DEV_NVLINK_THROUGHPUT_L0_BYTES_PER_SECOND", "NVLink throughput of lane 0 (in bytes per second).", false, kib},
}

func kib(v float64) float64 { return math.Floor(v/1024) * 1024 }

// renamed are the names of DCGM 4.7 of fields that are as before.
var renamed = map[int]string{
	140: "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", 150: "DCGM_FI_DEV_GPU_TEMP_CELSIUS",
	152: "DCGM_FI_DEV_GPU_MAX_OP_TEMP_CELSIUS", 153: "DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS",
	158: "DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS", 159: "DCGM_FI_DEV_GPU_TEMP_SHUTDOWN_CELSIUS",
	155: "DCGM_FI_DEV_BOARD_POWER_WATTS", 157: "DCGM_FI_DEV_BOARD_POWER_RAW_WATTS",
	160: "DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS", 161: "DCGM_FI_DEV_BOARD_POWER_LIMIT_MIN_WATTS",
	162: "DCGM_FI_DEV_BOARD_POWER_LIMIT_MAX_WATTS", 163: "DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS",
	164: "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS",
	190: "DCGM_FI_DEV_GPU_PSTATE", 202: "DCGM_FI_DEV_PCIE_REPLAY_TOTAL", 230: "DCGM_FI_DEV_XID_ERROR",
	254: "DCGM_FI_DEV_FB_USED_RATIO", 300: "DCGM_FI_DEV_ECC_MODE", 346: "DCGM_FI_DEV_SRAM_EXCEEDED",
	385: "DCGM_FI_DEV_BANK_REMAP_AVAIL_MAX", 386: "DCGM_FI_DEV_BANK_REMAP_AVAIL_HIGH", 387: "DCGM_FI_DEV_BANK_REMAP_AVAIL_PARTIAL",
	388: "DCGM_FI_DEV_BANK_REMAP_AVAIL_LOW", 389: "DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE",
	390: "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL", 391: "DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL", 392: "DCGM_FI_DEV_PAGE_RETIRED_PENDING",
	393: "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", 394: "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", 395: "DCGM_FI_DEV_ROW_REMAP_FAILED",
	409: "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL", 419: "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL",
	429: "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL", 439: "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL",
	1001: "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 1002: "DCGM_FI_PROF_SM_UTIL_RATIO", 1003: "DCGM_FI_PROF_SM_OCCUPANCY_RATIO",
	1004: "DCGM_FI_PROF_TENSOR_UTIL_RATIO", 1005: "DCGM_FI_PROF_DRAM_UTIL_RATIO", 1006: "DCGM_FI_PROF_FP64_UTIL_RATIO",
	1007: "DCGM_FI_PROF_FP32_UTIL_RATIO", 1008: "DCGM_FI_PROF_FP16_UTIL_RATIO", 1013: "DCGM_FI_PROF_IMMA_UTIL_RATIO",
	1014: "DCGM_FI_PROF_HMMA_UTIL_RATIO", 1016: "DCGM_FI_PROF_INT_UTIL_RATIO", 1204: "DCGM_FI_DEV_NVLINK_RX_PACKET_MALFORMED_TOTAL",
	1206: "DCGM_FI_DEV_NVLINK_RX_ERROR_TOTAL", 1523: "DCGM_FI_DEV_GPU_RECOVERY_ACTION",
}

// Newest is how DCGM 4.7 prints a field, given how it was printed before.
func Newest(f Field) Field {
	if n, replaced := newest[f.ID]; replaced {
		return n
	}
	if name := renamed[f.ID]; name != "" {
		f.Name = name
	}
	f.Of = same
	return f
}
