// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Series are the metrics that take their values from one quantity each.
var Series = []devicetable.Series{
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "general", From: []devicetable.ID{GPUUtil, GREngineActive}},
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "encoder", From: []devicetable.ID{EncUtil}},
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "decoder", From: []devicetable.ID{DecUtil}},
	{Metric: &names.GPUMemoryController, From: []devicetable.ID{MemCopyUtil}},
	{Metric: &names.GPUMemoryReserved, From: []devicetable.ID{FBReserved}},

	{Metric: &names.GPUEngineActive, From: []devicetable.ID{GREngineActive}},
	{Metric: &names.GPUSMActive, From: []devicetable.ID{SMActive}},
	{Metric: &names.GPUSMOccupancy, From: []devicetable.ID{SMOccupancy}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "tensor", From: []devicetable.ID{PipeTensorActive}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "fp64", From: []devicetable.ID{PipeFP64Active}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "fp32", From: []devicetable.ID{PipeFP32Active}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "fp16", From: []devicetable.ID{PipeFP16Active}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "tensor_imma", From: []devicetable.ID{PipeIMMAActive}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "tensor_hmma", From: []devicetable.ID{PipeHMMAActive}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "tensor_dfma", From: []devicetable.ID{PipeDFMAActive}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "int", From: []devicetable.ID{PipeIntActive}},
	{Metric: &names.GPUDRAMActive, From: []devicetable.ID{DRAMActive}},

	{Metric: &names.HwPower, From: []devicetable.ID{PowerUsage}},
	{Metric: &names.GPUPowerLimit, Key: names.GPUPowerLimitKind, Value: "management", From: []devicetable.ID{PowerMgmtLimit}},
	{Metric: &names.GPUPowerLimit, Key: names.GPUPowerLimitKind, Value: "enforced", From: []devicetable.ID{EnforcedPowerLimit}},
	{Metric: &names.HwEnergy, From: []devicetable.ID{EnergyJoules, Energy}},
	{Metric: &names.HwTemperature, Key: names.HwSensorLocation, Value: "gpu", From: []devicetable.ID{GPUTemp}},
	{Metric: &names.HwTemperature, Key: names.HwSensorLocation, Value: "memory", From: []devicetable.ID{MemoryTemp}},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "sm", From: []devicetable.ID{SMClockHertz, SMClock}},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "memory", From: []devicetable.ID{MemClockHertz, MemClock}},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "video", From: []devicetable.ID{VideoClockHertz, VideoClock}},

	{Metric: &names.GPUThrottleDuration, Key: names.GPUThrottleReason, Value: "power", From: []devicetable.ID{PowerViolation}},
	{Metric: &names.GPUThrottleDuration, Key: names.GPUThrottleReason, Value: "thermal", From: []devicetable.ID{ThermalViolation}},
	{Metric: &names.GPUThrottleDuration, Key: names.GPUThrottleReason, Value: "sync_boost", From: []devicetable.ID{SyncBoostViolation}},
	{Metric: &names.GPUThrottleDuration, Key: names.GPUThrottleReason, Value: "board_limit", From: []devicetable.ID{BoardLimitViolation}},
	{Metric: &names.GPUThrottleDuration, Key: names.GPUThrottleReason, Value: "low_util", From: []devicetable.ID{LowUtilViolation}},
	{Metric: &names.GPUThrottleDuration, Key: names.GPUThrottleReason, Value: "reliability", From: []devicetable.ID{ReliabilityViolation}},

	{Metric: &names.GPUPCIeThroughput, Key: names.NetworkDirection, Value: "transmit", From: []devicetable.ID{PCIeTX}},
	{Metric: &names.GPUPCIeThroughput, Key: names.NetworkDirection, Value: "receive", From: []devicetable.ID{PCIeRX}},
	{Metric: &names.GPUNVLinkThroughput, Key: names.NetworkDirection, Value: "transmit", From: []devicetable.ID{NVLinkTX}},
	{Metric: &names.GPUNVLinkThroughput, Key: names.NetworkDirection, Value: "receive", From: []devicetable.ID{NVLinkRX}},
	{Metric: &names.GPUNVLinkThroughput, From: []devicetable.ID{NVLinkBandwidth}, Unless: []devicetable.ID{NVLinkTX, NVLinkRX}},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "transmit", Key2: names.GPUIOLink, Value2: "pcie", From: []devicetable.ID{PCIeTXTotal}},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "receive", Key2: names.GPUIOLink, Value2: "pcie", From: []devicetable.ID{PCIeRXTotal}},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "transmit", Key2: names.GPUIOLink, Value2: "nvlink", From: []devicetable.ID{NVLinkTXTotal}},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "receive", Key2: names.GPUIOLink, Value2: "nvlink", From: []devicetable.ID{NVLinkRXTotal}},
	{Metric: &names.GPUPCIeReplays, From: []devicetable.ID{PCIeReplays}},
	{Metric: &names.GPUPCIeWidth, From: []devicetable.ID{PCIeWidth}},
	{Metric: &names.GPUPCIeWidthMax, From: []devicetable.ID{PCIeWidthMax}},
	{Metric: &names.GPUPCIeGeneration, From: []devicetable.ID{PCIeGeneration}},
	{Metric: &names.GPUPCIeGenerationMax, From: []devicetable.ID{PCIeGenerationMax}},
	{Metric: &names.GPUNVLinkErrors, Key: names.GPUNVLinkError, Value: "crc_flit", From: []devicetable.ID{NVLinkCRCFlit}},
	{Metric: &names.GPUNVLinkErrors, Key: names.GPUNVLinkError, Value: "crc_data", From: []devicetable.ID{NVLinkCRCData}},
	{Metric: &names.GPUNVLinkErrors, Key: names.GPUNVLinkError, Value: "replay", From: []devicetable.ID{NVLinkReplayErrs}},
	{Metric: &names.GPUNVLinkErrors, Key: names.GPUNVLinkError, Value: "recovery", From: []devicetable.ID{NVLinkRecovery}},

	{Metric: &names.HwErrors, Key: names.ErrorType, Value: "corrected", From: []devicetable.ID{ECCSBEVolatile}},
	{Metric: &names.HwErrors, Key: names.ErrorType, Value: "uncorrected", From: []devicetable.ID{ECCDBEVolatile}},
	{Metric: &names.GPUECCLifetime, Key: names.ErrorType, Value: "corrected", From: []devicetable.ID{ECCSBEAggregate}},
	{Metric: &names.GPUECCLifetime, Key: names.ErrorType, Value: "uncorrected", From: []devicetable.ID{ECCDBEAggregate}},
	{Metric: &names.GPURetiredPages, Key: names.ErrorType, Value: "corrected", From: []devicetable.ID{RetiredSBE}},
	{Metric: &names.GPURetiredPages, Key: names.ErrorType, Value: "uncorrected", From: []devicetable.ID{RetiredDBE}},
	{Metric: &names.GPURetiredPending, From: []devicetable.ID{RetiredPending}},
	{Metric: &names.GPURemappedRows, Key: names.ErrorType, Value: "corrected", From: []devicetable.ID{RemappedCorr}},
	{Metric: &names.GPURemappedRows, Key: names.ErrorType, Value: "uncorrected", From: []devicetable.ID{RemappedUncorr}},
	{Metric: &names.GPURowRemapFailure, From: []devicetable.ID{RowRemapFailure}},
	{Metric: &names.GPURowRemapPending, From: []devicetable.ID{RowRemapPending}},
	{Metric: &names.GPURemapBanks, Key: names.GPUSpareRows, Value: "max", From: []devicetable.ID{BanksMax}},
	{Metric: &names.GPURemapBanks, Key: names.GPUSpareRows, Value: "high", From: []devicetable.ID{BanksHigh}},
	{Metric: &names.GPURemapBanks, Key: names.GPUSpareRows, Value: "partial", From: []devicetable.ID{BanksPartial}},
	{Metric: &names.GPURemapBanks, Key: names.GPUSpareRows, Value: "low", From: []devicetable.ID{BanksLow}},
	{Metric: &names.GPURemapBanks, Key: names.GPUSpareRows, Value: "none", From: []devicetable.ID{BanksNone}},
	{Metric: &names.GPUSRAMExceeded, From: []devicetable.ID{SRAMExceeded}},

	{Metric: &names.GPURecoveryAction, From: []devicetable.ID{RecoveryAction}},
	{Metric: &names.GPUXIDLast, From: []devicetable.ID{XIDLast}},
	{Metric: &names.GPUVGPULicensed, From: []devicetable.ID{VGPULicense}},
}
