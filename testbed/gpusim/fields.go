// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"cmp"
	"math"
)

// field is one DCGM field as the exporter's CSV file names it.
type field struct {
	id    int
	name  string
	typ   string // TYPE line, right or wrong
	help  string
	float bool // printed with six decimals, else as an integer
	all   bool // only with fields: all
	value func(*reading) (float64, bool)
}

// byProcess is whether an exporter with virtual GPUs takes the field from
// NVML's processes.
func (f *field) byProcess() bool { return f.id == 203 || f.id == 252 }

// ofItsOwn is whether only boards with memory and supply of their own have the field.
func (f *field) ofItsOwn() bool {
	switch f.id {
	case 90, 92, 93, 101, 114, 160, 161, 162, 163, 164, 250, 251, 252, 253, 254:
		return true
	}
	return f.id >= 1001 && f.id < 1100
}

func always(f func(*reading) float64) func(*reading) (float64, bool) {
	return func(r *reading) (float64, bool) { return f(r), true }
}

// wholeOnly is for fields that do not exist on a MIG instance.
func wholeOnly(f func(*reading) float64) func(*reading) (float64, bool) {
	return func(r *reading) (float64, bool) { return f(r), r.mig == nil }
}

// when is for fields that only some boards have.
func when(has func(*Model) bool, f func(*reading) float64) func(*reading) (float64, bool) {
	return func(r *reading) (float64, bool) { return f(r), r.mig == nil && has(r.board.model) }
}

func zero(*reading) float64 { return 0 }

func constant(f func(*Model) float64) func(*reading) (float64, bool) {
	return always(func(r *reading) float64 { return f(r.board.model) })
}

func hasNVLink(m *Model) bool { return m.NVLinks > 0 }
func oldNVLink(m *Model) bool { return m.NVLinks > 0 && !m.NVLink5 }
func newNVLink(m *Model) bool { return m.NVLink5 }
func rowRemap(m *Model) bool  { return m.RowRemap }
func pageRetire(m *Model) bool {
	return m.ECC && !m.RowRemap
}

// withECC is for fields that a board without ECC does not have.
func withECC(f func(*reading) float64) func(*reading) (float64, bool) {
	return func(r *reading) (float64, bool) { return f(r), r.board.model.ECC }
}

func hasFabric(m *Model) bool { return m.NVLinks >= 18 }

func flag(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func linkErrors(mode string) func(*reading) float64 {
	return func(r *reading) float64 { return float64(r.linkErrors[mode]) }
}

func percent(v float64) float64 { return math.Round(v * 100) }

// legacyLinkUnit is the unit of DCGM's NVLINK_BANDWIDTH fields: 1000 KiB/s. The values here
// are in bytes per second.
const legacyLinkUnit = 1000 * 1024

func (f *field) link() bool { return f.id == 440 || f.id == 449 }

// fields stand in the order of dcp-metrics-included.csv, commented lines
// included; further fields are where a user would add them.
var fields = []field{
	{100, "DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).", false, false, always(func(r *reading) float64 { return float64(r.smClock) })},
	{101, "DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", false, false, always(func(r *reading) float64 { return float64(r.memClock) })},
	{102, "DCGM_FI_DEV_VIDEO_CLOCK", "gauge", "Video clock frequency (in MHz).", false, true, constant(func(m *Model) float64 { return float64(m.VideoClock) })},
	{113, "DCGM_FI_DEV_MAX_SM_CLOCK", "gauge", "Maximum SM clock frequency (in MHz).", false, true, constant(func(m *Model) float64 { return float64(m.SMClock) })},
	{114, "DCGM_FI_DEV_MAX_MEM_CLOCK", "gauge", "Maximum memory clock frequency (in MHz).", false, true, constant(func(m *Model) float64 { return float64(m.MemClock) })},
	{115, "DCGM_FI_DEV_MAX_VIDEO_CLOCK", "gauge", "Maximum video clock frequency (in MHz).", false, true, constant(func(m *Model) float64 { return float64(m.VideoClock) })},
	{190, "DCGM_FI_DEV_PSTATE", "gauge", "Performance state, 0 is the fastest.", false, true, always(func(r *reading) float64 { return map[bool]float64{true: 8, false: 0}[r.clocks&reasonIdle != 0] })},
	{112, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "gauge", "Bit mask of the reasons that hold the clocks down.", false, true, always(func(r *reading) float64 { return float64(r.clocks) })},

	{140, "DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature (in C).", false, false, func(r *reading) (float64, bool) { return r.memTemp, r.board.model.HBM }},
	{150, "DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", false, false, always(func(r *reading) float64 { return r.temp })},
	{152, "DCGM_FI_DEV_GPU_MAX_OP_TEMP", "gauge", "Maximum operating temperature of the GPU (in C).", false, true, always(func(*reading) float64 { return 85 })},
	{153, "DCGM_FI_DEV_GPU_TEMP_LIMIT", "gauge", "Margin to the nearest slowdown temperature (in C).", false, true, always(func(r *reading) float64 { return 87 - r.temp })},
	{158, "DCGM_FI_DEV_SLOWDOWN_TEMP", "gauge", "Slowdown temperature (in C).", false, true, always(func(*reading) float64 { return 89 })},
	{159, "DCGM_FI_DEV_SHUTDOWN_TEMP", "gauge", "Shutdown temperature (in C).", false, true, always(func(*reading) float64 { return 94 })},

	{155, "DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", true, false, always(func(r *reading) float64 { return r.power })},
	{156, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Total energy consumption since boot (in mJ).", false, false, always(func(r *reading) float64 { return r.energy })},
	{157, "DCGM_FI_DEV_POWER_USAGE_INSTANT", "gauge", "Instantaneous power draw (in W).", true, true, always(func(r *reading) float64 { return r.power })},
	{160, "DCGM_FI_DEV_POWER_MGMT_LIMIT", "gauge", "Power limit that was set (in W).", true, true, constant(func(m *Model) float64 { return m.TDPWatts })},
	{161, "DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", "gauge", "Lowest power limit that can be set (in W).", true, true, constant(func(m *Model) float64 { return m.MinWatts })},
	{162, "DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", "gauge", "Highest power limit that can be set (in W).", true, true, constant(func(m *Model) float64 { return m.TDPWatts })},
	{163, "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", "gauge", "Power limit after boot (in W).", true, true, constant(func(m *Model) float64 { return m.TDPWatts })},
	{164, "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", "Power limit in force (in W).", true, true, constant(func(m *Model) float64 { return m.TDPWatts })},

	{202, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "Total number of PCIe retries.", false, false, always(func(r *reading) float64 { return float64(r.replays) })},
	{235, "DCGM_FI_DEV_PCIE_MAX_LINK_GEN", "gauge", "Maximum PCIe generation of the link.", false, true, constant(func(m *Model) float64 { return float64(m.PCIeGen) })},
	{236, "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", "gauge", "Maximum PCIe width of the link.", false, true, always(func(*reading) float64 { return 16 })},
	{237, "DCGM_FI_DEV_PCIE_LINK_GEN", "gauge", "PCIe generation of the link.", false, true, always(func(r *reading) float64 { return float64(cmp.Or(r.generation, r.board.model.PCIeGen)) })},
	{238, "DCGM_FI_DEV_PCIE_LINK_WIDTH", "gauge", "PCIe width of the link.", false, true, always(func(r *reading) float64 { return float64(cmp.Or(r.lanes, 16)) })},

	{203, "DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", false, false, wholeOnly(func(r *reading) float64 { return percent(r.util) })},
	{204, "DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilization (in %).", false, false, wholeOnly(func(r *reading) float64 { return percent(r.memCopy) })},
	{206, "DCGM_FI_DEV_ENC_UTIL", "gauge", "Encoder utilization (in %).", false, false, wholeOnly(zero)},
	{207, "DCGM_FI_DEV_DEC_UTIL", "gauge", "Decoder utilization (in %).", false, false, wholeOnly(zero)},

	{230, "DCGM_FI_DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered.", false, false, always(func(r *reading) float64 { return float64(r.xid) })},
	{240, "DCGM_FI_DEV_POWER_VIOLATION", "counter", "Throttling duration due to power constraints (in ns).", false, true, always(func(r *reading) float64 { return r.powerNS })},
	{241, "DCGM_FI_DEV_THERMAL_VIOLATION", "counter", "Throttling duration due to thermal constraints (in ns).", false, true, always(func(r *reading) float64 { return r.thermalNS })},
	{242, "DCGM_FI_DEV_SYNC_BOOST_VIOLATION", "counter", "Throttling duration due to sync-boost constraints (in ns).", false, true, always(zero)},
	{243, "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", "counter", "Throttling duration due to board limit constraints (in ns).", false, true, always(zero)},
	{244, "DCGM_FI_DEV_LOW_UTIL_VIOLATION", "counter", "Throttling duration due to low utilization (in ns).", false, true, always(zero)},
	{245, "DCGM_FI_DEV_RELIABILITY_VIOLATION", "counter", "Throttling duration due to reliability constraints (in ns).", false, true, always(zero)},

	{250, "DCGM_FI_DEV_FB_TOTAL", "gauge", "Framebuffer memory total (in MiB).", false, true, always(func(r *reading) float64 { return float64(r.total) })},
	{251, "DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", false, false, always(func(r *reading) float64 { return float64(r.free) })},
	{252, "DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", false, false, always(func(r *reading) float64 { return float64(r.used) })},
	{253, "DCGM_FI_DEV_FB_RESERVED", "gauge", "Framebuffer memory reserved (in MiB).", false, false, wholeOnly(func(r *reading) float64 { return float64(r.reserved) })},
	{254, "DCGM_FI_DEV_FB_USED_PERCENT", "gauge", "Framebuffer memory used, as a ratio.", true, true, always(func(r *reading) float64 { return ratio(float64(r.used) / float64(r.total-r.reserved)) })},
	{90, "DCGM_FI_DEV_BAR1_TOTAL", "gauge", "BAR1 memory total (in MiB).", false, true, constant(func(m *Model) float64 { return float64(m.BAR1MiB) })},
	{92, "DCGM_FI_DEV_BAR1_USED", "gauge", "BAR1 memory used (in MiB).", false, true, always(func(*reading) float64 { return 2 })},
	{93, "DCGM_FI_DEV_BAR1_FREE", "gauge", "BAR1 memory free (in MiB).", false, true, constant(func(m *Model) float64 { return float64(m.BAR1MiB - 2) })},

	{300, "DCGM_FI_DEV_ECC_CURRENT", "gauge", "Whether ECC is on.", false, true, withECC(func(*reading) float64 { return 1 })},
	{310, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "Total number of single-bit volatile ECC errors.", false, true, withECC(func(r *reading) float64 { return float64(r.corrected) })},
	{311, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "Total number of double-bit volatile ECC errors.", false, true, withECC(func(r *reading) float64 { return float64(r.ecc) })},
	{312, "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "counter", "Total number of single-bit persistent ECC errors.", false, true, withECC(func(r *reading) float64 { return float64(r.correctedEver) })},
	{313, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "counter", "Total number of double-bit persistent ECC errors.", false, true, withECC(func(r *reading) float64 { return float64(r.eccEver) })},
	{390, "DCGM_FI_DEV_RETIRED_SBE", "counter", "Total number of retired pages due to single-bit errors.", false, true, when(pageRetire, func(r *reading) float64 { return float64(r.correctedPages) })},
	{391, "DCGM_FI_DEV_RETIRED_DBE", "counter", "Total number of retired pages due to double-bit errors.", false, true, when(pageRetire, func(r *reading) float64 { return float64(r.uncorrectedPages) })},
	{392, "DCGM_FI_DEV_RETIRED_PENDING", "counter", "Total number of pages pending retirement.", false, true, when(pageRetire, func(r *reading) float64 { return flag(r.remapPending) })},

	{409, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "counter", "Total number of NVLink flow-control CRC errors.", false, true, when(oldNVLink, linkErrors("crc_flit"))},
	{419, "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "counter", "Total number of NVLink data CRC errors.", false, true, when(oldNVLink, linkErrors("crc_data"))},
	{429, "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "counter", "Total number of NVLink retries.", false, true, when(oldNVLink, linkErrors("replay"))},
	{439, "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "counter", "Total number of NVLink recovery errors.", false, true, when(oldNVLink, linkErrors("recovery"))},
	{449, nvlinkTotal, "counter", "Total number of NVLink bandwidth counters for all lanes.", false, false, func(r *reading) (float64, bool) {
		return 2 * r.nvlink, hasNVLink(r.board.model)
	}},
	{440, "DCGM_FI_DEV_NVLINK_BANDWIDTH_L0", "counter", "The number of bytes of active NVLink rx or tx data including both header and payload.", false, true, when(hasNVLink, func(r *reading) float64 {
		return 2 * r.nvlink / float64(r.board.model.NVLinks)
	})},
	{1204, "DCGM_FI_DEV_NVLINK_COUNT_RX_MALFORMED_PACKET_ERRORS", "counter", "Total number of malformed packets received over NVLink.", false, true, when(newNVLink, zero)},
	{1206, "DCGM_FI_DEV_NVLINK_COUNT_RX_ERRORS", "counter", "Total number of packets received with errors over NVLink.", false, true, when(newNVLink, zero)},

	{526, "DCGM_FI_DEV_VGPU_LICENSE_STATUS", "gauge", "vGPU License status", false, false, wholeOnly(zero)},
	{393, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Number of remapped rows for uncorrectable errors", false, false, when(rowRemap, func(r *reading) float64 { return float64(r.rows) })},
	{394, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "Number of remapped rows for correctable errors", false, false, when(rowRemap, zero)},
	{395, "DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether remapping of rows has failed", false, false, when(rowRemap, func(r *reading) float64 { return flag(r.remapFailed) })},
	{396, "DCGM_FI_DEV_ROW_REMAP_PENDING", "gauge", "Whether a remapping of rows waits for a reset", false, true, when(rowRemap, func(r *reading) float64 { return flag(r.remapPending) })},
	{385, "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX", "gauge", "Memory banks with all spare rows.", false, true, when(rowRemap, func(r *reading) float64 { return 640 - flag(r.noSpare) })},
	{386, "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_HIGH", "gauge", "Memory banks with many spare rows.", false, true, when(rowRemap, zero)},
	{387, "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL", "gauge", "Memory banks with some spare rows.", false, true, when(rowRemap, zero)},
	{388, "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW", "gauge", "Memory banks with few spare rows.", false, true, when(rowRemap, zero)},
	{389, "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", "gauge", "Memory banks without a spare row.", false, true, when(rowRemap, func(r *reading) float64 { return flag(r.noSpare) })},
	{346, "DCGM_FI_DEV_THRESHOLD_SRM", "gauge", "Whether SRAM errors are above the threshold.", false, true, when(rowRemap, func(r *reading) float64 { return flag(r.sram) })},
	{175, "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", "gauge", "Health of the fabric.", false, true, when(hasFabric, func(r *reading) float64 { return float64(cmp.Or(r.fabric, 1)) })},
	{1523, recoveryField, "gauge", "Action that the driver asks for.", false, true, always(func(r *reading) float64 { return float64(r.recovery) })},

	{1001, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Ratio of time the graphics engine is active.", true, false, always(func(r *reading) float64 { return r.util })},
	{1002, "DCGM_FI_PROF_SM_ACTIVE", "gauge", "The ratio of cycles an SM has at least 1 warp assigned.", true, true, always(func(r *reading) float64 { return r.sm })},
	{1003, "DCGM_FI_PROF_SM_OCCUPANCY", "gauge", "The ratio of number of warps resident on an SM.", true, true, always(func(r *reading) float64 { return r.occupancy })},
	{1004, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "Ratio of cycles the tensor (HMMA) pipe is active.", true, false, always(func(r *reading) float64 { return r.tensor })},
	{1005, "DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "Ratio of cycles the device memory interface is active sending or receiving data.", true, false, always(func(r *reading) float64 { return r.dram })},
	{1006, "DCGM_FI_PROF_PIPE_FP64_ACTIVE", "gauge", "Ratio of cycles the fp64 pipes are active.", true, true, always(func(r *reading) float64 { return r.fp64 })},
	{1007, "DCGM_FI_PROF_PIPE_FP32_ACTIVE", "gauge", "Ratio of cycles the fp32 pipes are active.", true, true, always(func(r *reading) float64 { return r.fp32 })},
	{1008, "DCGM_FI_PROF_PIPE_FP16_ACTIVE", "gauge", "Ratio of cycles the fp16 pipes are active.", true, true, always(func(r *reading) float64 { return r.fp16 })},
	{1014, "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", "gauge", "Ratio of cycles the tensor HMMA pipe is active.", true, true, always(func(r *reading) float64 { return r.tensor })},
	{1013, "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", "gauge", "Ratio of cycles the tensor IMMA pipe is active.", true, true, always(zero)},
	{1016, "DCGM_FI_PROF_PIPE_INT_ACTIVE", "gauge", "Ratio of cycles the integer pipe is active.", true, true, always(func(r *reading) float64 { return r.integer })},
	{1009, "DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", "The rate of data transmitted over the PCIe bus - including both protocol headers and data payloads - in bytes per second.", false, false, wholeOnly(func(r *reading) float64 { return r.pcieTx })},
	{1010, "DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", "The rate of data received over the PCIe bus - including both protocol headers and data payloads - in bytes per second.", false, false, wholeOnly(func(r *reading) float64 { return r.pcieRx })},
	{1011, "DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge", "The rate of data transmitted over NVLink, in bytes per second.", false, true, when(hasNVLink, func(r *reading) float64 { return r.nvlink })},
	{1012, "DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge", "The rate of data received over NVLink, in bytes per second.", false, true, when(hasNVLink, func(r *reading) float64 { return r.nvlink })},
}
