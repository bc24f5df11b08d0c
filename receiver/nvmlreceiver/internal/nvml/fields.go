// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvidia"
)

const (
	mib = 1 << 20
	// NVML's KB/s of PCIe: 1000 until it was measured.
	kilobyte = 1000
)

// Quantities that no other source of NVIDIA's GPUs has.
const (
	PCIeTXSampled = nvidia.Quantities + iota
	PCIeRXSampled
	NVLinkTXByLink
	NVLinkRXByLink
	LimitShutdown
	LimitSlowdown
	LimitMemoryMax
	LimitGPUMax
	Margin
	FanSpeed
	Suspended
	Answered
)

// fields are the quantities by the names of their readings, see nvmlproto.Readings, with
// the units in which the library gives them.
var fields = lacking([]devicetable.Field{
	nvidia.GPUUtil:     {Name: "utilization.gpu", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.MemCopyUtil: {Name: "utilization.memory", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.EncUtil:     {Name: "utilization.encoder", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.DecUtil:     {Name: "utilization.decoder", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.FBTotal:     {Name: "memory.total", Unit: "By"},
	nvidia.FBUsed:      {Name: "memory.used", Unit: "By"},
	nvidia.FBFree:      {Name: "memory.free", Unit: "By"},
	nvidia.FBReserved:  {Name: "memory.reserved", Unit: "By"},

	nvidia.GREngineActive:   {Name: "gpm.graphics", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.SMActive:         {Name: "gpm.sm", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.SMOccupancy:      {Name: "gpm.sm_occupancy", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.DRAMActive:       {Name: "gpm.dram", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.PipeTensorActive: {Name: "gpm.tensor", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.PipeFP64Active:   {Name: "gpm.fp64", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.PipeFP32Active:   {Name: "gpm.fp32", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.PipeFP16Active:   {Name: "gpm.fp16", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.PipeIMMAActive:   {Name: "gpm.imma", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.PipeHMMAActive:   {Name: "gpm.hmma", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.PipeDFMAActive:   {Name: "gpm.dfma", Unit: "%", Div: 100, Bounds: devicetable.Percent},
	nvidia.PipeIntActive:    {Name: "gpm.integer", Unit: "%", Div: 100, Bounds: devicetable.Percent},

	nvidia.PowerUsage:         {Name: "power.usage", Scope: devicetable.Board, Unit: "mW", Div: 1000, Bounds: devicetable.Watts},
	nvidia.PowerMgmtLimit:     {Name: "power.limit.management", Scope: devicetable.Board, Unit: "mW", Div: 1000, Bounds: devicetable.Watts},
	nvidia.EnforcedPowerLimit: {Name: "power.limit.enforced", Scope: devicetable.Board, Unit: "mW", Div: 1000, Bounds: devicetable.Watts},
	nvidia.Energy:             {Name: "energy", Scope: devicetable.Board, Unit: "mJ", Div: 1000},
	nvidia.GPUTemp:            {Name: "temperature.gpu", Scope: devicetable.Board, Unit: "Cel", Signed: true, Bounds: devicetable.Celsius},
	nvidia.MemoryTemp:         {Name: "temperature.memory", Scope: devicetable.Board, Unit: "Cel", Signed: true, ZeroIsAbsent: true, Bounds: devicetable.Celsius},
	LimitShutdown:             {Name: "temperature.limit.shutdown", Scope: devicetable.Board, Unit: "Cel", ZeroIsAbsent: true, Bounds: devicetable.Celsius},
	LimitSlowdown:             {Name: "temperature.limit.slowdown", Scope: devicetable.Board, Unit: "Cel", ZeroIsAbsent: true, Bounds: devicetable.Celsius},
	LimitMemoryMax:            {Name: "temperature.limit.memory_max", Scope: devicetable.Board, Unit: "Cel", ZeroIsAbsent: true, Bounds: devicetable.Celsius},
	LimitGPUMax:               {Name: "temperature.limit.gpu_max", Scope: devicetable.Board, Unit: "Cel", ZeroIsAbsent: true, Bounds: devicetable.Celsius},
	Margin:                    {Name: "temperature.margin", Scope: devicetable.Board, Unit: "Cel", Signed: true, Bounds: devicetable.Celsius},
	FanSpeed:                  {Name: "fan.speed", Scope: devicetable.Board, Unit: "%", Div: 100, Bounds: devicetable.Fan, Label: labelFan, Several: devicetable.First},
	nvidia.SMClock:            {Name: "clock.sm", Scope: devicetable.Board, Unit: "MHz", Mul: 1e6},
	nvidia.MemClock:           {Name: "clock.memory", Scope: devicetable.Board, Unit: "MHz", Mul: 1e6},
	nvidia.VideoClock:         {Name: "clock.video", Scope: devicetable.Board, Unit: "MHz", Mul: 1e6},

	nvidia.ThrottleReasons:      {Name: "clock.reasons", Scope: devicetable.Board, Unit: "bit mask"},
	nvidia.PowerViolation:       {Name: "violation.power", Scope: devicetable.Board, Unit: "ns", Div: 1e9},
	nvidia.ThermalViolation:     {Name: "violation.thermal", Scope: devicetable.Board, Unit: "ns", Div: 1e9},
	nvidia.SyncBoostViolation:   {Name: "violation.sync_boost", Scope: devicetable.Board, Unit: "ns", Div: 1e9},
	nvidia.BoardLimitViolation:  {Name: "violation.board_limit", Scope: devicetable.Board, Unit: "ns", Div: 1e9},
	nvidia.LowUtilViolation:     {Name: "violation.low_util", Scope: devicetable.Board, Unit: "ns", Div: 1e9},
	nvidia.ReliabilityViolation: {Name: "violation.reliability", Scope: devicetable.Board, Unit: "ns", Div: 1e9},

	// The library gives rates of PCIe and NVLink, and counts bytes of NVLink alone.
	nvidia.PCIeTX:           {Name: "gpm.pcie.transmit", Scope: devicetable.Board, Unit: "MiBy/s", Mul: mib},
	nvidia.PCIeRX:           {Name: "gpm.pcie.receive", Scope: devicetable.Board, Unit: "MiBy/s", Mul: mib},
	PCIeTXSampled:           {Name: "pcie.transmit", Scope: devicetable.Board, Unit: "kBy/s", Mul: kilobyte},
	PCIeRXSampled:           {Name: "pcie.receive", Scope: devicetable.Board, Unit: "kBy/s", Mul: kilobyte},
	nvidia.NVLinkTX:         {Name: "gpm.nvlink.transmit", Scope: devicetable.Board, Unit: "MiBy/s", Mul: mib},
	nvidia.NVLinkRX:         {Name: "gpm.nvlink.receive", Scope: devicetable.Board, Unit: "MiBy/s", Mul: mib},
	nvidia.NVLinkTXTotal:    {Name: "nvlink.data.transmit", Scope: devicetable.Board, Unit: "KiBy", Mul: 1024},
	nvidia.NVLinkRXTotal:    {Name: "nvlink.data.receive", Scope: devicetable.Board, Unit: "KiBy", Mul: 1024},
	NVLinkTXByLink:          {Name: "nvlink.bytes.transmit", Scope: devicetable.Board, Unit: "By"},
	NVLinkRXByLink:          {Name: "nvlink.bytes.receive", Scope: devicetable.Board, Unit: "By"},
	nvidia.PCIeReplays:      {Name: "pcie.replays", Scope: devicetable.Board, Unit: "{replay}"},
	nvidia.NVLinkCRCFlit:    {Name: "nvlink.crc_flit", Scope: devicetable.Board, Unit: "{error}"},
	nvidia.NVLinkCRCData:    {Name: "nvlink.crc_data", Scope: devicetable.Board, Unit: "{error}"},
	nvidia.NVLinkReplayErrs: {Name: "nvlink.replay", Scope: devicetable.Board, Unit: "{error}"},
	nvidia.NVLinkRecovery:   {Name: "nvlink.recovery", Scope: devicetable.Board, Unit: "{error}"},

	nvidia.ECCSBEVolatile:  {Name: "ecc.volatile.corrected", Scope: devicetable.Board, Unit: "{error}"},
	nvidia.ECCDBEVolatile:  {Name: "ecc.volatile.uncorrected", Scope: devicetable.Board, Unit: "{error}"},
	nvidia.ECCSBEAggregate: {Name: "ecc.aggregate.corrected", Scope: devicetable.Board, Unit: "{error}"},
	nvidia.ECCDBEAggregate: {Name: "ecc.aggregate.uncorrected", Scope: devicetable.Board, Unit: "{error}"},
	nvidia.RetiredSBE:      {Name: "retired.corrected", Scope: devicetable.Board, Unit: "{page}"},
	nvidia.RetiredDBE:      {Name: "retired.uncorrected", Scope: devicetable.Board, Unit: "{page}"},
	nvidia.RetiredPending:  {Name: "retired.pending", Scope: devicetable.Board, Unit: "flag"},
	nvidia.RemappedCorr:    {Name: "remapped.corrected", Scope: devicetable.Board, Unit: "{row}"},
	nvidia.RemappedUncorr:  {Name: "remapped.uncorrected", Scope: devicetable.Board, Unit: "{row}"},
	nvidia.RowRemapPending: {Name: "remapped.pending", Scope: devicetable.Board, Unit: "flag"},
	nvidia.RowRemapFailure: {Name: "remapped.failure", Scope: devicetable.Board, Unit: "flag"},
	nvidia.RecoveryAction:  {Name: "recovery.action", Scope: devicetable.Board, Unit: "{code}", Code: true},
	nvidia.XIDLast:         {Name: xidLast, Unit: "{code}", Code: true},
	nvidia.VGPULicense:     {Name: "vgpu.licensed", Scope: devicetable.Board, Unit: "flag"},
	Answered:               {Name: answered, Unit: "flag"}, // of each device that was read; no series
	Suspended:              {Name: suspended, Scope: devicetable.Board, Unit: "flag"},
})

// lacking marks the quantities that the library does not have.
func lacking(fields []devicetable.Field) []devicetable.Field {
	for i := range fields {
		fields[i].Lacking = fields[i].Name == ""
	}
	return fields
}

// series are the metrics that the other sources of NVIDIA's GPUs do not have.
var series = []devicetable.Series{
	{Metric: &names.HwTemperatureLimit, Key: names.HwLimitType, Value: "critical", Key2: names.HwSensorLocation, Value2: "gpu", From: []devicetable.ID{LimitShutdown}},
	{Metric: &names.HwTemperatureLimit, Key: names.HwLimitType, Value: "throttled", Key2: names.HwSensorLocation, Value2: "gpu", From: []devicetable.ID{LimitSlowdown}},
	{Metric: &names.HwTemperatureLimit, Key: names.HwLimitType, Value: "max", Key2: names.HwSensorLocation, Value2: "gpu", From: []devicetable.ID{LimitGPUMax}},
	{Metric: &names.HwTemperatureLimit, Key: names.HwLimitType, Value: "max", Key2: names.HwSensorLocation, Value2: "memory", From: []devicetable.ID{LimitMemoryMax}},
	{Metric: &names.GPUTemperatureMargin, From: []devicetable.ID{Margin}},
	{Metric: &names.HwFanSpeedRatio, RowKey: names.GPUFan, From: []devicetable.ID{FanSpeed}},
	{Metric: &names.GPUDeviceSuspended, From: []devicetable.ID{Suspended}},
}

// derived are the metrics of Derived as the library's readings give them.
var derived = []devicetable.Derived{
	{
		Metric: &names.GPUMemoryUsage, From: []devicetable.ID{nvidia.FBUsed},
		Rule: "The reading. Without what is reserved, but where a driver before 510 counts it as used. Of a GPU in MIG mode without a reading of its own the sum over its instances, if all of them have one.",
	},
	{
		Metric: &names.GPUMemoryLimit, From: []devicetable.ID{nvidia.FBTotal, nvidia.FBUsed, nvidia.FBFree, nvidia.FBReserved},
		Rule: "The total, with group memory or inventory; without it used, free and reserved together. Of a GPU that sleeps the one before. Sums over MIG instances as for the usage.",
	},
	{
		Metric: &names.GPUMemoryUtilization, From: []devicetable.ID{nvidia.FBUsed, nvidia.FBTotal},
		Rule: "Usage divided by limit, where both are known.",
	},
	{
		Metric: &names.GPUThrottleActive, From: []devicetable.ID{nvidia.ThrottleReasons}, Keys: []string{names.GPUThrottleReason},
		Rule: "The first nine bits of the mask.",
	},
	{
		Metric: &names.GPUPCIeThroughput, From: []devicetable.ID{PCIeTXSampled, PCIeRXSampled}, Keys: []string{names.NetworkDirection},
		Rule: "Of a GPU without GPM, and only with `pcie_throughput: true`.",
	},
	{
		Metric: &names.GPUNVLinkThroughput, From: []devicetable.ID{nvidia.NVLinkTXTotal, nvidia.NVLinkRXTotal, NVLinkTXByLink, NVLinkRXByLink}, Keys: []string{names.NetworkDirection},
		Rule: "Of a GPU without GPM: the rise of the bytes since the scrape before, divided by the time.",
	},
	{
		Metric: &names.GPUIO, From: []devicetable.ID{NVLinkTXByLink, NVLinkRXByLink}, Keys: []string{names.NetworkDirection, names.GPUIOLink},
		Rule: "The sum over the links, of a GPU that does not have the count of all links.",
	},
	{
		Metric: &names.GPURecoveryAction, From: []devicetable.ID{nvidia.RecoveryAction},
		Rule: "1 as well where a call returns that a reset is required, and the driver asks for nothing.",
	},
	{
		Metric: &names.GPUXIDErrors, Keys: []string{names.GPUXIDCode},
		Rule: "Counted from the driver's events and from the kernel log: of each code the higher count. From 0 at the start of the receiver, 2 s after the XID.",
	},
	{
		Metric: &names.GPUProcessMemoryUsage, Keys: []string{names.GPUProcessType, "owner"},
		Rule: "With `processes::by`.",
	},
	{
		Metric: &names.GPUProcessUtilization, Keys: []string{names.GPUProcessType, names.GPUProcessTask, "owner"},
		Rule: "With `processes::by`; not of MIG instances.",
	},
}
