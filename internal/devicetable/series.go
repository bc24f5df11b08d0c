// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicetable

import "github.com/otelcol-gpu/otelcol-gpu/internal/names"

// Series is one OpenTelemetry series of a device that takes its value from a
// field as it is. Derived ones (memory limit, XID counts, throttle reasons) are
// made in the receiver's mapping.
type Series struct {
	Metric *names.Metric
	// Attribute of the points beside hw.id; empty where the metric has none.
	Key, Value string
	// Second attribute, for hw.gpu.io.
	Key2, Value2 string
	// From are the fields that can give the value; the first on the page does.
	From []ID
	// Unless keeps the series away where one of these fields is on the page.
	Unless []ID
}

// Table holds the series of one metric next to each other, in the order in which
// they are emitted.
var Table = []Series{
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "general", From: []ID{GPUUtil, GREngineActive}},
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "encoder", From: []ID{EncUtil}},
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "decoder", From: []ID{DecUtil}},
	{Metric: &names.GPUMemoryController, From: []ID{MemCopyUtil}},
	{Metric: &names.GPUMemoryReserved, From: []ID{FBReserved}},

	{Metric: &names.GPUEngineActive, From: []ID{GREngineActive}},
	{Metric: &names.GPUSMActive, From: []ID{SMActive}},
	{Metric: &names.GPUSMOccupancy, From: []ID{SMOccupancy}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "tensor", From: []ID{PipeTensorActive}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "fp64", From: []ID{PipeFP64Active}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "fp32", From: []ID{PipeFP32Active}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "fp16", From: []ID{PipeFP16Active}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "tensor_imma", From: []ID{PipeIMMAActive}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "tensor_hmma", From: []ID{PipeHMMAActive}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "tensor_dfma", From: []ID{PipeDFMAActive}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "int", From: []ID{PipeIntActive}},
	{Metric: &names.GPUDRAMActive, From: []ID{DRAMActive}},

	{Metric: &names.HwPower, From: []ID{PowerUsage}},
	{Metric: &names.GPUPowerLimit, Key: names.GPUPowerLimitKind, Value: "management", From: []ID{PowerMgmtLimit}},
	{Metric: &names.GPUPowerLimit, Key: names.GPUPowerLimitKind, Value: "enforced", From: []ID{EnforcedPowerLimit}},
	{Metric: &names.HwEnergy, From: []ID{EnergyJoules, Energy}},
	{Metric: &names.HwTemperature, Key: names.HwSensorLocation, Value: "gpu", From: []ID{GPUTemp}},
	{Metric: &names.HwTemperature, Key: names.HwSensorLocation, Value: "memory", From: []ID{MemoryTemp}},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "sm", From: []ID{SMClockHertz, SMClock}},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "memory", From: []ID{MemClockHertz, MemClock}},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "video", From: []ID{VideoClockHertz, VideoClock}},

	{Metric: &names.GPUThrottleDuration, Key: names.GPUThrottleReason, Value: "power", From: []ID{PowerViolation}},
	{Metric: &names.GPUThrottleDuration, Key: names.GPUThrottleReason, Value: "thermal", From: []ID{ThermalViolation}},
	{Metric: &names.GPUThrottleDuration, Key: names.GPUThrottleReason, Value: "sync_boost", From: []ID{SyncBoostViolation}},
	{Metric: &names.GPUThrottleDuration, Key: names.GPUThrottleReason, Value: "board_limit", From: []ID{BoardLimitViolation}},
	{Metric: &names.GPUThrottleDuration, Key: names.GPUThrottleReason, Value: "low_util", From: []ID{LowUtilViolation}},
	{Metric: &names.GPUThrottleDuration, Key: names.GPUThrottleReason, Value: "reliability", From: []ID{ReliabilityViolation}},

	{Metric: &names.GPUPCIeThroughput, Key: names.NetworkDirection, Value: "transmit", From: []ID{PCIeTX}},
	{Metric: &names.GPUPCIeThroughput, Key: names.NetworkDirection, Value: "receive", From: []ID{PCIeRX}},
	{Metric: &names.GPUNVLinkThroughput, Key: names.NetworkDirection, Value: "transmit", From: []ID{NVLinkTX}},
	{Metric: &names.GPUNVLinkThroughput, Key: names.NetworkDirection, Value: "receive", From: []ID{NVLinkRX}},
	{Metric: &names.GPUNVLinkThroughput, From: []ID{NVLinkBandwidth}, Unless: []ID{NVLinkTX, NVLinkRX}},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "transmit", Key2: names.GPUIOLink, Value2: "pcie", From: []ID{PCIeTXTotal}},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "receive", Key2: names.GPUIOLink, Value2: "pcie", From: []ID{PCIeRXTotal}},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "transmit", Key2: names.GPUIOLink, Value2: "nvlink", From: []ID{NVLinkTXTotal}},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "receive", Key2: names.GPUIOLink, Value2: "nvlink", From: []ID{NVLinkRXTotal}},
	{Metric: &names.GPUPCIeReplays, From: []ID{PCIeReplays}},
	{Metric: &names.GPUNVLinkErrors, Key: names.GPUNVLinkError, Value: "crc_flit", From: []ID{NVLinkCRCFlit}},
	{Metric: &names.GPUNVLinkErrors, Key: names.GPUNVLinkError, Value: "crc_data", From: []ID{NVLinkCRCData}},
	{Metric: &names.GPUNVLinkErrors, Key: names.GPUNVLinkError, Value: "replay", From: []ID{NVLinkReplayErrs}},
	{Metric: &names.GPUNVLinkErrors, Key: names.GPUNVLinkError, Value: "recovery", From: []ID{NVLinkRecovery}},

	{Metric: &names.HwErrors, Key: names.ErrorType, Value: "corrected", From: []ID{ECCSBEVolatile}},
	{Metric: &names.HwErrors, Key: names.ErrorType, Value: "uncorrected", From: []ID{ECCDBEVolatile}},
	{Metric: &names.GPUECCLifetime, Key: names.ErrorType, Value: "corrected", From: []ID{ECCSBEAggregate}},
	{Metric: &names.GPUECCLifetime, Key: names.ErrorType, Value: "uncorrected", From: []ID{ECCDBEAggregate}},
	{Metric: &names.GPURetiredPages, Key: names.ErrorType, Value: "corrected", From: []ID{RetiredSBE}},
	{Metric: &names.GPURetiredPages, Key: names.ErrorType, Value: "uncorrected", From: []ID{RetiredDBE}},
	{Metric: &names.GPURetiredPending, From: []ID{RetiredPending}},
	{Metric: &names.GPURemappedRows, Key: names.ErrorType, Value: "corrected", From: []ID{RemappedCorr}},
	{Metric: &names.GPURemappedRows, Key: names.ErrorType, Value: "uncorrected", From: []ID{RemappedUncorr}},
	{Metric: &names.GPURowRemapFailure, From: []ID{RowRemapFailure}},
	{Metric: &names.GPURowRemapPending, From: []ID{RowRemapPending}},

	{Metric: &names.GPUXIDLast, From: []ID{XIDLast}},
	{Metric: &names.GPUVGPULicensed, From: []ID{VGPULicense}},
}
