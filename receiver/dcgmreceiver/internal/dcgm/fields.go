// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvidia"
)

const (
	mib = 1 << 20
	// NVML counts NVLink data in KiB; DCGM divides the rate by 1000 (field 449).
	kibPerSecond1000 = 1000 * 1024
)

// fields are the known fields, by their quantities. Units, types and the devices that they belong to are those of DCGM's
// dcgm_fields.h and dcgm_fields.cpp (4.6). They are the true ones: the TYPE and HELP lines
// of a page are only what was written into the exporter's counters file. Variants are the
// fields in base units of DCGM 4.6.1 (1600 to 1612) and 4.7.
var fields = []devicetable.Field{
	// Utilization and memory. In MIG mode memory belongs to the instance. NVML measures no
	// utilization of an instance: exporters before 3.2 print 0 (dcgm-exporter#216), and what
	// counts is the activity of its engine.
	nvidia.GPUUtil: {Name: "DCGM_FI_DEV_GPU_UTIL", Aliases: []string{"dcgm_gpu_utilization"}, Number: 203, Scope: devicetable.Undivided, Unit: "%", Div: 100, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_GPU_UTIL_RATIO", Number: 1613, Type: devicetable.Double, Unit: "1", Ambiguous: true},
	}},
	nvidia.MemCopyUtil: {Name: "DCGM_FI_DEV_MEM_COPY_UTIL", Aliases: []string{"dcgm_mem_copy_utilization"}, Number: 204, Scope: devicetable.Undivided, Unit: "%", Div: 100, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_MEMORY_UTIL_RATIO", Number: 1614, Type: devicetable.Double, Unit: "1"},
	}},
	nvidia.EncUtil: {Name: "DCGM_FI_DEV_ENC_UTIL", Aliases: []string{"dcgm_enc_utilization"}, Number: 206, Scope: devicetable.Undivided, Unit: "%", Div: 100, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_ENC_UTIL_RATIO", Number: 1615, Type: devicetable.Double, Unit: "1"},
	}},
	nvidia.DecUtil: {Name: "DCGM_FI_DEV_DEC_UTIL", Aliases: []string{"dcgm_dec_utilization"}, Number: 207, Scope: devicetable.Undivided, Unit: "%", Div: 100, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_DEC_UTIL_RATIO", Number: 1616, Type: devicetable.Double, Unit: "1"},
	}},
	nvidia.FBTotal: {Name: "DCGM_FI_DEV_FB_TOTAL", Aliases: []string{"dcgm_fb_total"}, Number: 250, Unit: "MiB", Mul: mib, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_FB_CAPACITY_BYTES", Number: 1625, Unit: "By", Bounds: devicetable.Memory, Finer: true},
	}},
	nvidia.FBFree: {Name: "DCGM_FI_DEV_FB_FREE", Aliases: []string{"dcgm_fb_free"}, Number: 251, Unit: "MiB", Mul: mib, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_FB_FREE_BYTES", Number: 1626, Unit: "By", Bounds: devicetable.Memory, Finer: true},
	}},
	nvidia.FBUsed: {Name: "DCGM_FI_DEV_FB_USED", Aliases: []string{"dcgm_fb_used"}, Number: 252, Unit: "MiB", Mul: mib, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_FB_USED_BYTES", Number: 1627, Unit: "By", Bounds: devicetable.Memory, Finer: true},
	}},
	nvidia.FBReserved: {Name: "DCGM_FI_DEV_FB_RESERVED", Aliases: []string{"dcgm_fb_reserved"}, Number: 253, Unit: "MiB", Mul: mib, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_FB_RESERVED_BYTES", Number: 1628, Unit: "By", Bounds: devicetable.Memory, Finer: true},
	}},
	nvidia.BAR1Total: {Name: "DCGM_FI_DEV_BAR1_TOTAL", Number: 90, Scope: devicetable.Board, Unit: "MiB", Mul: mib, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_BAR1_CAPACITY_BYTES", Number: 1600, Unit: "By", Bounds: devicetable.Memory, Finer: true},
	}},
	nvidia.BAR1Used: {Name: "DCGM_FI_DEV_BAR1_USED", Number: 92, Scope: devicetable.Board, Unit: "MiB", Mul: mib, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_BAR1_USED_BYTES", Number: 1601, Unit: "By", Bounds: devicetable.Memory, Finer: true},
	}},
	nvidia.BAR1Free: {Name: "DCGM_FI_DEV_BAR1_FREE", Number: 93, Scope: devicetable.Board, Unit: "MiB", Mul: mib, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_BAR1_FREE_BYTES", Number: 1602, Unit: "By", Bounds: devicetable.Memory, Finer: true},
	}},

	// Profiling.
	nvidia.GREngineActive:   {Name: "DCGM_FI_PROF_GR_ENGINE_ACTIVE", Aliases: []string{"DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", "dcgm_fi_prof_gr_engine_active"}, Number: 1001, Type: devicetable.Double, Unit: "1"},
	nvidia.SMActive:         {Name: "DCGM_FI_PROF_SM_ACTIVE", Aliases: []string{"DCGM_FI_PROF_SM_UTIL_RATIO", "dcgm_fi_prof_sm_active"}, Number: 1002, Type: devicetable.Double, Unit: "1"},
	nvidia.SMOccupancy:      {Name: "DCGM_FI_PROF_SM_OCCUPANCY", Aliases: []string{"DCGM_FI_PROF_SM_OCCUPANCY_RATIO", "dcgm_fi_prof_sm_occupancy"}, Number: 1003, Type: devicetable.Double, Unit: "1"},
	nvidia.PipeTensorActive: {Name: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Aliases: []string{"DCGM_FI_PROF_TENSOR_UTIL_RATIO", "dcgm_fi_prof_pipe_tensor_active"}, Number: 1004, Type: devicetable.Double, Unit: "1"},
	nvidia.DRAMActive:       {Name: "DCGM_FI_PROF_DRAM_ACTIVE", Aliases: []string{"DCGM_FI_PROF_DRAM_UTIL_RATIO", "dcgm_fi_prof_dram_active"}, Number: 1005, Type: devicetable.Double, Unit: "1"},
	nvidia.PipeFP64Active:   {Name: "DCGM_FI_PROF_PIPE_FP64_ACTIVE", Aliases: []string{"DCGM_FI_PROF_FP64_UTIL_RATIO", "dcgm_fi_prof_pipe_fp64_active"}, Number: 1006, Type: devicetable.Double, Unit: "1"},
	nvidia.PipeFP32Active:   {Name: "DCGM_FI_PROF_PIPE_FP32_ACTIVE", Aliases: []string{"DCGM_FI_PROF_FP32_UTIL_RATIO", "dcgm_fi_prof_pipe_fp32_active"}, Number: 1007, Type: devicetable.Double, Unit: "1"},
	nvidia.PipeFP16Active:   {Name: "DCGM_FI_PROF_PIPE_FP16_ACTIVE", Aliases: []string{"DCGM_FI_PROF_FP16_UTIL_RATIO", "dcgm_fi_prof_pipe_fp16_active"}, Number: 1008, Type: devicetable.Double, Unit: "1"},
	nvidia.PipeIMMAActive:   {Name: "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", Aliases: []string{"DCGM_FI_PROF_IMMA_UTIL_RATIO"}, Number: 1013, Type: devicetable.Double, Unit: "1"},
	nvidia.PipeHMMAActive:   {Name: "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", Aliases: []string{"DCGM_FI_PROF_HMMA_UTIL_RATIO"}, Number: 1014, Type: devicetable.Double, Unit: "1"},
	nvidia.PipeDFMAActive:   {Name: "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", Aliases: []string{"DCGM_FI_PROF_DFMA_UTIL_RATIO"}, Number: 1015, Type: devicetable.Double, Unit: "1"},
	nvidia.PipeIntActive:    {Name: "DCGM_FI_PROF_PIPE_INT_ACTIVE", Aliases: []string{"DCGM_FI_PROF_INT_UTIL_RATIO"}, Number: 1016, Type: devicetable.Double, Unit: "1"},

	// Power, temperature and clocks of the board.
	nvidia.PowerUsage:         {Name: "DCGM_FI_DEV_POWER_USAGE", Aliases: []string{"DCGM_FI_DEV_BOARD_POWER_WATTS", "dcgm_power_usage"}, Number: 155, Type: devicetable.Double, Scope: devicetable.Board, Unit: "W"},
	nvidia.PowerMgmtLimit:     {Name: "DCGM_FI_DEV_POWER_MGMT_LIMIT", Aliases: []string{"DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS", "dcgm_power_management_limit"}, Number: 160, Type: devicetable.Double, Scope: devicetable.Board, Unit: "W"},
	nvidia.EnforcedPowerLimit: {Name: "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", Aliases: []string{"DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS", "dcgm_enforced_power_limit"}, Number: 164, Type: devicetable.Double, Scope: devicetable.Board, Unit: "W"},
	nvidia.Energy: {Name: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Aliases: []string{"dcgm_total_energy_consumption"}, Number: 156, Scope: devicetable.Board, Unit: "mJ", Div: 1000, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", Number: 1611, Unit: "J", Step: 1},
		{Name: "DCGM_FI_GPU_ENERGY_JOULES_TOTAL", Number: 1611, Unit: "J", Step: 1},
	}},
	nvidia.GPUTemp:    {Name: "DCGM_FI_DEV_GPU_TEMP", Aliases: []string{"DCGM_FI_DEV_GPU_TEMP_CELSIUS", "dcgm_gpu_temp"}, Number: 150, Scope: devicetable.Board, Unit: "Cel", Signed: true},
	nvidia.MemoryTemp: {Name: "DCGM_FI_DEV_MEMORY_TEMP", Aliases: []string{"DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", "dcgm_memory_temp"}, Number: 140, Scope: devicetable.Board, Unit: "Cel", Signed: true, ZeroIsAbsent: true},
	nvidia.FanSpeed: {Name: "DCGM_FI_DEV_FAN_SPEED", Number: 191, Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Fan, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_FAN_SPEED_RATIO", Number: 1612, Type: devicetable.Double, Unit: "1", Bounds: devicetable.Fan},
	}},
	nvidia.SMClock: {Name: "DCGM_FI_DEV_SM_CLOCK", Aliases: []string{"dcgm_sm_clock"}, Number: 100, Scope: devicetable.Board, Unit: "MHz", Mul: 1e6, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_SM_CLOCK_HERTZ", Number: 1603, Unit: "Hz", Finer: true},
	}},
	nvidia.MemClock: {Name: "DCGM_FI_DEV_MEM_CLOCK", Aliases: []string{"dcgm_memory_clock"}, Number: 101, Scope: devicetable.Board, Unit: "MHz", Mul: 1e6, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", Number: 1604, Unit: "Hz", Finer: true},
	}},
	nvidia.VideoClock: {Name: "DCGM_FI_DEV_VIDEO_CLOCK", Aliases: []string{"dcgm_video_clock"}, Number: 102, Scope: devicetable.Board, Unit: "MHz", Mul: 1e6, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_VIDEO_CLOCK_HERTZ", Number: 1605, Unit: "Hz", Finer: true},
	}},
	nvidia.AppSMClock: {Name: "DCGM_FI_DEV_APP_SM_CLOCK", Number: 110, Scope: devicetable.Board, Unit: "MHz", Mul: 1e6, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_SM_APP_CLOCK_HERTZ", Number: 1606, Unit: "Hz", Finer: true},
	}},
	nvidia.AppMemClock: {Name: "DCGM_FI_DEV_APP_MEM_CLOCK", Number: 111, Scope: devicetable.Board, Unit: "MHz", Mul: 1e6, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_MEMORY_APP_CLOCK_HERTZ", Number: 1607, Unit: "Hz", Finer: true},
	}},
	nvidia.MaxSMClock: {Name: "DCGM_FI_DEV_MAX_SM_CLOCK", Number: 113, Scope: devicetable.Board, Unit: "MHz", Mul: 1e6, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_SM_MAX_CLOCK_HERTZ", Number: 1608, Unit: "Hz", Finer: true},
	}},
	nvidia.MaxMemClock: {Name: "DCGM_FI_DEV_MAX_MEM_CLOCK", Number: 114, Scope: devicetable.Board, Unit: "MHz", Mul: 1e6, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_MEMORY_MAX_CLOCK_HERTZ", Number: 1609, Unit: "Hz", Finer: true},
	}},
	nvidia.MaxVideoClock: {Name: "DCGM_FI_DEV_MAX_VIDEO_CLOCK", Number: 115, Scope: devicetable.Board, Unit: "MHz", Mul: 1e6, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_VIDEO_MAX_CLOCK_HERTZ", Number: 1610, Unit: "Hz", Finer: true},
	}},

	// Throttling of the board. The violation counters hold nanoseconds in every
	// version; older headers and HELP texts state microseconds.
	nvidia.ThrottleReasons: {Name: "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", Aliases: []string{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS"}, Number: 112, Scope: devicetable.Board, Unit: "bit mask"},
	nvidia.PowerViolation: {Name: "DCGM_FI_DEV_POWER_VIOLATION", Aliases: []string{"dcgm_power_violation"}, Number: 240, Scope: devicetable.Board, Unit: "ns", Div: 1e9, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", Number: 1617, Type: devicetable.Double, Unit: "s", Step: 1e-6},
	}},
	nvidia.ThermalViolation: {Name: "DCGM_FI_DEV_THERMAL_VIOLATION", Aliases: []string{"dcgm_thermal_violation"}, Number: 241, Scope: devicetable.Board, Unit: "ns", Div: 1e9, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL", Number: 1618, Type: devicetable.Double, Unit: "s", Step: 1e-6},
	}},
	nvidia.SyncBoostViolation: {Name: "DCGM_FI_DEV_SYNC_BOOST_VIOLATION", Aliases: []string{"dcgm_sync_boost_violation"}, Number: 242, Scope: devicetable.Board, Unit: "ns", Div: 1e9, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_GPU_SYNC_BOOST_THROTTLE_SECONDS_TOTAL", Number: 1619, Type: devicetable.Double, Unit: "s", Step: 1e-6},
	}},
	nvidia.BoardLimitViolation: {Name: "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", Aliases: []string{"dcgm_board_limit_violation"}, Number: 243, Scope: devicetable.Board, Unit: "ns", Div: 1e9, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_GPU_LIMIT_THROTTLE_SECONDS_TOTAL", Number: 1620, Type: devicetable.Double, Unit: "s", Step: 1e-6},
	}},
	nvidia.LowUtilViolation: {Name: "DCGM_FI_DEV_LOW_UTIL_VIOLATION", Aliases: []string{"dcgm_low_util_violation"}, Number: 244, Scope: devicetable.Board, Unit: "ns", Div: 1e9, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_GPU_LOW_UTIL_THROTTLE_SECONDS_TOTAL", Number: 1621, Type: devicetable.Double, Unit: "s", Step: 1e-6},
	}},
	nvidia.ReliabilityViolation: {Name: "DCGM_FI_DEV_RELIABILITY_VIOLATION", Aliases: []string{"dcgm_reliability_violation"}, Number: 245, Scope: devicetable.Board, Unit: "ns", Div: 1e9, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_GPU_RELIABILITY_THROTTLE_SECONDS_TOTAL", Number: 1622, Type: devicetable.Double, Unit: "s", Step: 1e-6},
	}},
	nvidia.AppClocksViolation: {Name: "DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION", Number: 246, Scope: devicetable.Board, Unit: "ns", Div: 1e9, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_GPU_APP_THROTTLE_SECONDS_TOTAL", Number: 1623, Type: devicetable.Double, Unit: "s", Step: 1e-6},
	}},
	nvidia.BaseClocksViolation: {Name: "DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION", Number: 247, Scope: devicetable.Board, Unit: "ns", Div: 1e9, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_GPU_BASE_THROTTLE_SECONDS_TOTAL", Number: 1624, Type: devicetable.Double, Unit: "s", Step: 1e-6},
	}},
	nvidia.ClockEventsCount: {Name: "DCGM_EXP_CLOCK_EVENTS_COUNT", Scope: devicetable.Board, Unit: "samples in a sliding window", Label: "clock_event"},
	nvidia.ClockEventsTotal: {Name: "DCGM_EXP_CLOCK_EVENTS_TOTAL", Scope: devicetable.Board, Unit: "samples", Label: "clock_event"},

	// PCIe and NVLink of the board. The PROF fields are rates whatever their HELP
	// states; NVLINK_BANDWIDTH_TOTAL is typed counter by the exporter and is a rate.
	nvidia.PCIeTX:   {Name: "DCGM_FI_PROF_PCIE_TX_BYTES", Aliases: []string{"dcgm_fi_prof_pcie_tx_bytes"}, Number: 1009, Scope: devicetable.Board, Unit: "By/s"},
	nvidia.PCIeRX:   {Name: "DCGM_FI_PROF_PCIE_RX_BYTES", Aliases: []string{"dcgm_fi_prof_pcie_rx_bytes"}, Number: 1010, Scope: devicetable.Board, Unit: "By/s"},
	nvidia.NVLinkTX: {Name: "DCGM_FI_PROF_NVLINK_TX_BYTES", Aliases: []string{"dcgm_fi_prof_nvlink_tx_bytes"}, Number: 1011, Scope: devicetable.Board, Unit: "By/s"},
	nvidia.NVLinkRX: {Name: "DCGM_FI_PROF_NVLINK_RX_BYTES", Aliases: []string{"dcgm_fi_prof_nvlink_rx_bytes"}, Number: 1012, Scope: devicetable.Board, Unit: "By/s"},
	nvidia.NVLinkBandwidth: {Name: "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", Aliases: []string{"DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", "dcgm_nvlink_bandwidth_total"}, Number: 449, Scope: devicetable.Board, Unit: "1000 KiBy/s", Mul: kibPerSecond1000, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", Number: 1648, Unit: "By/s", Finer: true},
	}},
	// Lanes 0 to 17; the numbers of the fields have gaps, and the first is that of lane 0.
	nvidia.NVLinkLanes: {Name: "DCGM_FI_DEV_NVLINK_BANDWIDTH_L%d", Aliases: []string{"DCGM_FI_DEV_NVLINK_THROUGHPUT_L%d"}, Numbered: 18, Label: "lane", Number: 440, Scope: devicetable.Board, Unit: "1000 KiBy/s", Mul: kibPerSecond1000, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_NVLINK_THROUGHPUT_L%d_BYTES_PER_SECOND", Number: 1630, Unit: "By/s", Finer: true},
	}},
	nvidia.C2CBandwidthMax: {Name: "DCGM_FI_DEV_C2C_MAX_BANDWIDTH", Number: 287, Scope: devicetable.Board, Unit: "MBy/s", Mul: 1e6, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_C2C_MAX_BANDWIDTH_BYTES_PER_SECOND", Number: 1629, Unit: "By/s", Finer: true},
	}},
	nvidia.PCIeTXTotal:       {Name: "DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL", Number: 1091, Scope: devicetable.Board, Unit: "By"},
	nvidia.PCIeRXTotal:       {Name: "DCGM_FI_PROF_PCIE_RX_BYTES_TOTAL", Number: 1092, Scope: devicetable.Board, Unit: "By"},
	nvidia.NVLinkTXTotal:     {Name: "DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES", Aliases: []string{"DCGM_FI_DEV_NVLINK_TX_BYTES_TOTAL"}, Number: 1201, Scope: devicetable.Board, Unit: "By"},
	nvidia.NVLinkRXTotal:     {Name: "DCGM_FI_DEV_NVLINK_COUNT_RX_BYTES", Aliases: []string{"DCGM_FI_DEV_NVLINK_RX_BYTES_TOTAL"}, Number: 1203, Scope: devicetable.Board, Unit: "By"},
	nvidia.PCIeReplays:       {Name: "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", Aliases: []string{"DCGM_FI_DEV_PCIE_REPLAY_TOTAL", "dcgm_pcie_replay_counter"}, Number: 202, Scope: devicetable.Board, Unit: "{replay}"},
	nvidia.PCIeWidth:         {Name: "DCGM_FI_DEV_PCIE_LINK_WIDTH", Number: 238, Scope: devicetable.Board, Unit: "{lane}", ZeroIsAbsent: true},
	nvidia.PCIeWidthMax:      {Name: "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", Number: 236, Scope: devicetable.Board, Unit: "{lane}", ZeroIsAbsent: true},
	nvidia.PCIeGeneration:    {Name: "DCGM_FI_DEV_PCIE_LINK_GEN", Number: 237, Scope: devicetable.Board, Unit: "{generation}", ZeroIsAbsent: true},
	nvidia.PCIeGenerationMax: {Name: "DCGM_FI_DEV_PCIE_MAX_LINK_GEN", Number: 235, Scope: devicetable.Board, Unit: "{generation}", ZeroIsAbsent: true},
	nvidia.NVLinkCRCFlit:     {Name: "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", Aliases: []string{"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL", "dcgm_nvlink_flit_crc_error_count_total"}, Number: 409, Scope: devicetable.Board, Unit: "{error}"},
	nvidia.NVLinkCRCData:     {Name: "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", Aliases: []string{"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL", "dcgm_nvlink_data_crc_error_count_total"}, Number: 419, Scope: devicetable.Board, Unit: "{error}"},
	nvidia.NVLinkReplayErrs:  {Name: "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", Aliases: []string{"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL", "dcgm_nvlink_replay_error_count_total"}, Number: 429, Scope: devicetable.Board, Unit: "{error}"},
	nvidia.NVLinkRecovery:    {Name: "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", Aliases: []string{"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL", "dcgm_nvlink_recovery_error_count_total"}, Number: 439, Scope: devicetable.Board, Unit: "{error}"},

	// Memory errors of the board.
	nvidia.ECCSBEVolatile:  {Name: "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", Aliases: []string{"dcgm_ecc_sbe_volatile_total"}, Number: 310, Scope: devicetable.Board, Unit: "{error}"},
	nvidia.ECCDBEVolatile:  {Name: "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", Aliases: []string{"dcgm_ecc_dbe_volatile_total"}, Number: 311, Scope: devicetable.Board, Unit: "{error}"},
	nvidia.ECCSBEAggregate: {Name: "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", Aliases: []string{"dcgm_ecc_sbe_aggregate_total"}, Number: 312, Scope: devicetable.Board, Unit: "{error}"},
	nvidia.ECCDBEAggregate: {Name: "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", Aliases: []string{"dcgm_ecc_dbe_aggregate_total"}, Number: 313, Scope: devicetable.Board, Unit: "{error}"},
	nvidia.RetiredSBE:      {Name: "DCGM_FI_DEV_RETIRED_SBE", Aliases: []string{"DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL", "dcgm_retired_pages_sbe"}, Number: 390, Scope: devicetable.Board, Unit: "{page}"},
	nvidia.RetiredDBE:      {Name: "DCGM_FI_DEV_RETIRED_DBE", Aliases: []string{"DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL", "dcgm_retired_pages_dbe"}, Number: 391, Scope: devicetable.Board, Unit: "{page}"},
	nvidia.RetiredPending:  {Name: "DCGM_FI_DEV_RETIRED_PENDING", Aliases: []string{"DCGM_FI_DEV_PAGE_RETIRED_PENDING", "dcgm_retired_pages_pending"}, Number: 392, Scope: devicetable.Board, Unit: "flag"},
	nvidia.RemappedUncorr:  {Name: "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", Aliases: []string{"DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL"}, Number: 393, Scope: devicetable.Board, Unit: "{row}"},
	nvidia.RemappedCorr:    {Name: "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", Aliases: []string{"DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL"}, Number: 394, Scope: devicetable.Board, Unit: "{row}"},
	nvidia.RowRemapFailure: {Name: "DCGM_FI_DEV_ROW_REMAP_FAILURE", Aliases: []string{"DCGM_FI_DEV_ROW_REMAP_FAILED"}, Number: 395, Scope: devicetable.Board, Unit: "flag"},
	nvidia.RowRemapPending: {Name: "DCGM_FI_DEV_ROW_REMAP_PENDING", Number: 396, Scope: devicetable.Board, Unit: "flag"},
	nvidia.BanksMax:        {Name: "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX", Aliases: []string{"DCGM_FI_DEV_BANK_REMAP_AVAIL_MAX"}, Number: 385, Scope: devicetable.Board, Unit: "{bank}"},
	nvidia.BanksHigh:       {Name: "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_HIGH", Aliases: []string{"DCGM_FI_DEV_BANK_REMAP_AVAIL_HIGH"}, Number: 386, Scope: devicetable.Board, Unit: "{bank}"},
	nvidia.BanksPartial:    {Name: "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL", Aliases: []string{"DCGM_FI_DEV_BANK_REMAP_AVAIL_PARTIAL"}, Number: 387, Scope: devicetable.Board, Unit: "{bank}"},
	nvidia.BanksLow:        {Name: "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW", Aliases: []string{"DCGM_FI_DEV_BANK_REMAP_AVAIL_LOW"}, Number: 388, Scope: devicetable.Board, Unit: "{bank}"},
	nvidia.BanksNone:       {Name: "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", Aliases: []string{"DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE"}, Number: 389, Scope: devicetable.Board, Unit: "{bank}"},
	nvidia.SRAMExceeded:    {Name: "DCGM_FI_DEV_THRESHOLD_SRM", Aliases: []string{"DCGM_FI_DEV_SRAM_EXCEEDED"}, Number: 346, Scope: devicetable.Board, Unit: "flag"},

	// XID, health and licence. An XID belongs to the entity that threw it.
	nvidia.XIDLast:      {Name: "DCGM_FI_DEV_XID_ERRORS", Aliases: []string{"DCGM_FI_DEV_XID_ERROR", "dcgm_xid_errors"}, Number: 230, Unit: "{code}", Code: true},
	nvidia.XIDTotal:     {Name: "DCGM_EXP_XID_ERRORS_TOTAL", Unit: "{error}", Label: "xid"},
	nvidia.HealthStatus: {Name: "DCGM_EXP_GPU_HEALTH_STATUS", Unit: "0, 10, 20", Label: "health_watch"},
	// NVML's nvmlGpuP2PStatus_t for each other GPU: 0 is a path over NVLink.
	nvidia.P2PStatus: {Name: "DCGM_EXP_P2P_STATUS", Unit: "{code}", Label: "peer_gpu"},
	// Exporter 4.5.2, and older ones, does not start with field 1523 in its counters file.
	// Values of NVML's nvmlDeviceGpuRecoveryAction_t, and of its fabric health summary:
	// 1 healthy, 2 unhealthy, 3 limited; 0 is a board without a fabric.
	nvidia.RecoveryAction: {Name: "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", Aliases: []string{"DCGM_FI_DEV_GPU_RECOVERY_ACTION"}, Number: 1523, Scope: devicetable.Board, Unit: "{code}", Code: true},
	nvidia.FabricHealth:   {Name: "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", Number: 175, Scope: devicetable.Board, Unit: "{code}", ZeroIsAbsent: true, Code: true},
	nvidia.VGPULicense:    {Name: "DCGM_FI_DEV_VGPU_LICENSE_STATUS", Aliases: []string{"dcgm_vgpu_license_status"}, Number: 526, Unit: "flag"},
	nvidia.VGPUMemory: {Name: "DCGM_FI_DEV_VGPU_MEMORY_USAGE", Number: 525, Unit: "MiB", Mul: mib, Variants: []devicetable.Variant{
		{Name: "DCGM_FI_DEV_VGPU_FB_USED_BYTES", Number: 1649, Unit: "By", Bounds: devicetable.Memory, Finer: true},
	}},
}
