// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import "github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"

const (
	kib = 1 << 10
	mib = 1 << 20
	// The driver counts energy in steps of 2^-16 J. AMD's library takes 15.3 µJ for a step,
	// and prints that in µJ.
	microjoulesOfLibrary = 15.3 * (1 << 16)
)

// The known families of the exporter (1.0 to 1.5).
const (
	GfxActivity devicetable.ID = iota
	GfxBusy
	VCNBusy
	JPEGBusy
	VCNActivity
	JPEGActivity
	UMCActivity
	UsedVRAM
	TotalVRAM
	TotalMemory
	PackagePower
	AveragePackagePower
	PowerUsage
	Energy
	JunctionTemp
	EdgeTemp
	MemoryTemp
	HBMTemp
	Clock

	ECCCorrected
	ECCUncorrected
	ECCDeferred
	AFIDErrors
	Health
	PCIeReplays
	PCIeRecoveries
	PCIeReplayRollovers
	PCIeNACKsSent
	PCIeNACKsReceived
	PCIeBandwidth
	PCIeRX
	PCIeTX
	XGMIRX
	XGMITX

	ProcessorHotRatio
	PPTRatio
	SocketThermalRatio
	VRThermalRatio
	HBMThermalRatio
	HostPowerRatio
	HostThermalRatio
	LowUtilRatio
	ProcessorHotTotal
	PPTTotal
	SocketThermalTotal
	VRThermalTotal
	HBMThermalTotal
	HostPowerTotal
	HostThermalTotal
	LowUtilTotal
	ViolationCounter

	TensorActive
	SMActive
	Occupancy
	SIMDUtilization
	NodesTotal

	// Files of the driver that the exporter has no family for (source: sysfs).
	PowerCap
	RetiredPages
	RetiredPending
	RetiredFailed

	// The ECC errors of the blocks of a board are from here on, see eccBlocks.
	firstECCBlock
)

// fields are the known families, by their constants. Units and scopes are those of the
// exporter's sources and of AMD's library behind it: TYPE and HELP lines do not have them.
var fields = append([]devicetable.Field{
	GfxActivity:  {Name: "gpu_gfx_activity", Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Several: devicetable.First},
	GfxBusy:      {Name: "gpu_gfx_busy_instantaneous", Since: "1.3.1", Unit: "%", Div: 100, Bounds: devicetable.Ratio, Label: "xcc_index", MeanOfRows: true, Several: devicetable.First},
	VCNBusy:      {Name: "gpu_vcn_busy_instantaneous", Since: "1.3.1", Unit: "%", Div: 100, Bounds: devicetable.Ratio, Label: "xcc_index", MeanOfRows: true, Several: devicetable.First},
	JPEGBusy:     {Name: "gpu_jpeg_busy_instantaneous", Since: "1.3.1", Unit: "%", Div: 100, Bounds: devicetable.Ratio, Label: "xcc_index", MeanOfRows: true, Several: devicetable.First},
	VCNActivity:  {Name: "gpu_vcn_activity", Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Label: "vcn_index", MeanOfRows: true, Several: devicetable.First},
	JPEGActivity: {Name: "gpu_jpeg_activity", Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Label: "jpeg_index", MeanOfRows: true, Several: devicetable.First},
	UMCActivity:  {Name: "gpu_umc_activity", Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Several: devicetable.First},

	UsedVRAM:    {Name: "gpu_used_vram", Unit: "MiB", Mul: mib, Several: devicetable.First},
	TotalVRAM:   {Name: "gpu_total_vram", Unit: "MiB", Mul: mib, ZeroIsAbsent: true, Several: devicetable.First},
	TotalMemory: {Name: "gpu_total_memory", Unit: "MB", Mul: 1e6, ZeroIsAbsent: true, Several: devicetable.First},

	// Partitions other than the first, and APUs, print 0 W; guests print 0 °C.
	PackagePower:        {Name: "gpu_package_power", Scope: devicetable.Board, Unit: "W", ZeroIsAbsent: true, Bounds: devicetable.Watts, Several: devicetable.First},
	AveragePackagePower: {Name: "gpu_average_package_power", Scope: devicetable.Board, Unit: "W", ZeroIsAbsent: true, Bounds: devicetable.Watts, Several: devicetable.First},
	PowerUsage:          {Name: "gpu_power_usage", Scope: devicetable.Board, Unit: "W", ZeroIsAbsent: true, Bounds: devicetable.Watts, Several: devicetable.First},
	Energy:              {Name: "gpu_energy_consumed", Scope: devicetable.Board, Unit: "µJ of 15.3 a step", Div: microjoulesOfLibrary, ZeroIsAbsent: true, Glitches: true, Several: devicetable.First},
	JunctionTemp:        {Name: "gpu_junction_temperature", Scope: devicetable.Board, Unit: "Cel", Signed: true, ZeroIsAbsent: true, Bounds: devicetable.Celsius, Several: devicetable.First},
	EdgeTemp:            {Name: "gpu_edge_temperature", Scope: devicetable.Board, Unit: "Cel", Signed: true, ZeroIsAbsent: true, Bounds: devicetable.Celsius, Several: devicetable.First},
	MemoryTemp:          {Name: "gpu_memory_temperature", Scope: devicetable.Board, Unit: "Cel", Signed: true, ZeroIsAbsent: true, Bounds: devicetable.Celsius, Several: devicetable.First},
	HBMTemp:             {Name: "gpu_hbm_temperature", Scope: devicetable.Board, Unit: "Cel", Signed: true, ZeroIsAbsent: true, Bounds: devicetable.Celsius}, // the greatest of hbm_index
	Clock:               {Name: "gpu_clock", Scope: devicetable.Board, Unit: "MHz", Mul: 1e6, Label: "clock_type"},                                           // the greatest of clock_index

	ECCCorrected:        {Name: "gpu_ecc_correct_total", Scope: devicetable.Board, Unit: "errors", Several: devicetable.First},
	ECCUncorrected:      {Name: "gpu_ecc_uncorrect_total", Scope: devicetable.Board, Unit: "errors", Several: devicetable.First},
	ECCDeferred:         {Name: "gpu_ecc_deferred_total", Since: "1.5.0", Scope: devicetable.Board, Unit: "errors", Several: devicetable.First},
	AFIDErrors:          {Name: "gpu_afid_errors", Since: "1.4.2", Scope: devicetable.Board, Unit: "code", Code: true, Label: "severity,afid_index", Several: devicetable.First},
	Health:              {Name: "gpu_health", Scope: devicetable.Board, Unit: "1 healthy, 0 not", Label: "gpu_id", Several: devicetable.First},
	PCIeReplays:         {Name: "pcie_replay_count", Scope: devicetable.Board, Unit: "replays", Several: devicetable.First},
	PCIeRecoveries:      {Name: "pcie_recovery_count", Scope: devicetable.Board, Unit: "recoveries", Several: devicetable.First},
	PCIeReplayRollovers: {Name: "pcie_replay_rollover_count", Scope: devicetable.Board, Unit: "rollovers", Several: devicetable.First},
	PCIeNACKsSent:       {Name: "pcie_nack_sent_count", Aliases: []string{"pcie_nac_sent_count"}, Scope: devicetable.Board, Unit: "NACKs", Several: devicetable.First},
	PCIeNACKsReceived:   {Name: "pcie_nack_received_count", Aliases: []string{"pcie_nac_received_count"}, Scope: devicetable.Board, Unit: "NACKs", Several: devicetable.First},
	PCIeBandwidth:       {Name: "pcie_bandwidth", Scope: devicetable.Board, Unit: "Mb/s", Mul: 125_000, Several: devicetable.First},
	PCIeRX:              {Name: "pcie_rx", Since: "1.4.0", Scope: devicetable.Board, Unit: "By", ZeroIsAbsent: true, Several: devicetable.First},
	PCIeTX:              {Name: "pcie_tx", Since: "1.4.0", Scope: devicetable.Board, Unit: "By", ZeroIsAbsent: true, Several: devicetable.First},
	XGMIRX:              {Name: "gpu_xgmi_link_rx", Scope: devicetable.Board, Unit: "KiB", Mul: kib, Label: "link_index", Several: devicetable.First},
	XGMITX:              {Name: "gpu_xgmi_link_tx", Scope: devicetable.Board, Unit: "KiB", Mul: kib, Label: "link_index", Several: devicetable.First},

	ProcessorHotRatio:  {Name: "gpu_violation_processor_hot_residency_percentage", Since: "1.4.2", Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Several: devicetable.First},
	PPTRatio:           {Name: "gpu_violation_ppt_residency_percentage", Since: "1.4.2", Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Several: devicetable.First},
	SocketThermalRatio: {Name: "gpu_violation_socket_thermal_residency_percentage", Since: "1.4.2", Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Several: devicetable.First},
	VRThermalRatio:     {Name: "gpu_violation_vr_thermal_residency_percentage", Since: "1.4.2", Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Several: devicetable.First},
	HBMThermalRatio:    {Name: "gpu_violation_hbm_thermal_residency_percentage", Since: "1.4.2", Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Several: devicetable.First},
	HostPowerRatio:     {Name: "gpu_violation_gfx_clock_below_host_limit_power_percentage", Since: "1.4.2", Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Label: "xcc_index", MeanOfRows: true, Several: devicetable.First},
	HostThermalRatio:   {Name: "gpu_violation_gfx_clock_below_host_limit_thermal_percentage", Since: "1.4.2", Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Label: "xcc_index", MeanOfRows: true, Several: devicetable.First},
	LowUtilRatio:       {Name: "gpu_violation_low_utilization_percentage", Since: "1.4.2", Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Label: "xcc_index", MeanOfRows: true, Several: devicetable.First},
	ProcessorHotTotal:  {Name: "gpu_violation_processor_hot_residency_accumulated", Aliases: []string{"gpu_violation_proc_hot_residency_accumulated"}, Scope: devicetable.Board, Unit: "steps", Several: devicetable.First},
	PPTTotal:           {Name: "gpu_violation_ppt_residency_accumulated", Scope: devicetable.Board, Unit: "steps", Several: devicetable.First},
	SocketThermalTotal: {Name: "gpu_violation_socket_thermal_residency_accumulated", Aliases: []string{"gpu_violation_soc_thermal_residency_accumulated"}, Scope: devicetable.Board, Unit: "steps", Several: devicetable.First},
	VRThermalTotal:     {Name: "gpu_violation_vr_thermal_residency_accumulated", Aliases: []string{"gpu_violation_vr_thermal_tracking_accumulated"}, Scope: devicetable.Board, Unit: "steps", Several: devicetable.First},
	HBMThermalTotal:    {Name: "gpu_violation_hbm_thermal_residency_accumulated", Scope: devicetable.Board, Unit: "steps", Several: devicetable.First},
	HostPowerTotal:     {Name: "gpu_violation_gfx_clock_below_host_limit_power_accumulated", Scope: devicetable.Board, Unit: "steps", Label: "xcc_index", MeanOfRows: true, Several: devicetable.First},
	HostThermalTotal:   {Name: "gpu_violation_gfx_clock_below_host_limit_thermal_accumulated", Scope: devicetable.Board, Unit: "steps", Label: "xcc_index", MeanOfRows: true, Several: devicetable.First},
	LowUtilTotal:       {Name: "gpu_violation_low_utilization_accumulated", Scope: devicetable.Board, Unit: "steps", Label: "xcc_index", MeanOfRows: true, Several: devicetable.First},
	ViolationCounter:   {Name: "gpu_violation_current_accumulated_counter", Scope: devicetable.Board, Unit: "steps", Several: devicetable.First},

	TensorActive:    {Name: "gpu_prof_tensor_active_percent", Since: "1.3.0", Type: devicetable.Double, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Several: devicetable.First},
	SMActive:        {Name: "gpu_prof_sm_active", Type: devicetable.Double, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Several: devicetable.First},
	Occupancy:       {Name: "gpu_prof_occupancy_percent", Type: devicetable.Double, Unit: "%", Div: 100, Bounds: devicetable.Ratio, Several: devicetable.First},
	SIMDUtilization: {Name: "gpu_prof_simd_utilization", Type: devicetable.Double, Unit: "1", Bounds: devicetable.Ratio, Several: devicetable.First},
	NodesTotal:      {Name: "gpu_nodes_total", Scope: devicetable.Board, Unit: "devices"},

	PowerCap:       {Name: "sysfs_power1_cap", Scope: devicetable.Board, Unit: "µW", Div: 1e6, ZeroIsAbsent: true, Bounds: devicetable.Watts, Several: devicetable.First},
	RetiredPages:   {Name: "sysfs_vram_bad_pages_retired", Scope: devicetable.Board, Unit: "pages", Several: devicetable.First},
	RetiredPending: {Name: "sysfs_vram_bad_pages_pending", Scope: devicetable.Board, Unit: "1 or 0", Several: devicetable.First},
	RetiredFailed:  {Name: "sysfs_vram_bad_pages_failed", Scope: devicetable.Board, Unit: "1 or 0", Several: devicetable.First},
}, eccBlocks()...)

// eccBlockNames are the parts of a board of which the exporter prints ECC errors.
var eccBlockNames = [...]string{
	"athub", "bif", "df", "fuse", "gfx", "hdp", "ih", "jpeg", "mca", "mmhub", "mp0", "mp1",
	"mpio", "sdma", "sem", "smn", "umc", "vcn", "xgmi_wafl",
}

// eccTypes are the words in the names of the families, and the values of error.type.
var eccTypes = [...]struct{ family, attribute, since string }{
	{"correct", "corrected", ""}, {"uncorrect", "uncorrected", ""}, {"deferred", "deferred", "1.5.0"},
}

// eccBlock is the field of the ECC errors of a block and type, by their places.
func eccBlock(block, kind int) devicetable.ID {
	return firstECCBlock + devicetable.ID(block*len(eccTypes)+kind)
}

func eccBlocks() (list []devicetable.Field) {
	for _, block := range eccBlockNames {
		for _, kind := range eccTypes {
			list = append(list, devicetable.Field{Name: "gpu_ecc_" + kind.family + "_" + block, Since: kind.since, Scope: devicetable.Board, Unit: "errors", Several: devicetable.First})
		}
	}
	return list
}
