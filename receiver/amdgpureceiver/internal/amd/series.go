// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// series are the metrics that take their values from one family each.
var series = []devicetable.Series{
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "general", From: []devicetable.ID{GfxActivity, GfxBusy}},
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "decoder", From: []devicetable.ID{VCNBusy, VCNActivity}},
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "jpeg", From: []devicetable.ID{JPEGBusy, JPEGActivity}},
	{Metric: &names.GPUMemoryController, From: []devicetable.ID{UMCActivity}},

	{Metric: &names.GPUEngineActive, From: []devicetable.ID{SIMDUtilization}},
	{Metric: &names.GPUSMActive, From: []devicetable.ID{SMActive}},
	{Metric: &names.GPUSMOccupancy, From: []devicetable.ID{Occupancy}},
	{Metric: &names.GPUPipeActive, Key: names.GPUPipe, Value: "tensor", From: []devicetable.ID{TensorActive}},

	{Metric: &names.HwPower, From: []devicetable.ID{PackagePower, AveragePackagePower, PowerUsage}},
	{Metric: &names.GPUPowerLimit, Key: names.GPUPowerLimitKind, Value: "enforced", From: []devicetable.ID{PowerCap}},
	{Metric: &names.HwEnergy, From: []devicetable.ID{Energy}},
	{Metric: &names.HwTemperature, Key: names.HwSensorLocation, Value: "gpu", From: []devicetable.ID{JunctionTemp, EdgeTemp}},
	{Metric: &names.HwTemperature, Key: names.HwSensorLocation, Value: "memory", From: []devicetable.ID{MemoryTemp, HBMTemp}},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "sm", From: []devicetable.ID{Clock}, Row: "system"},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "memory", From: []devicetable.ID{Clock}, Row: "memory"},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "video", From: []devicetable.ID{Clock}, Row: "video"},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "data", From: []devicetable.ID{Clock}, Row: "data"},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "soc", From: []devicetable.ID{Clock}, Row: "soc"},

	{Metric: &names.GPUPCIeThroughput, From: []devicetable.ID{PCIeBandwidth}},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "receive", Key2: names.GPUIOLink, Value2: "pcie", From: []devicetable.ID{PCIeRX}},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "transmit", Key2: names.GPUIOLink, Value2: "pcie", From: []devicetable.ID{PCIeTX}},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "receive", Key2: names.GPUIOLink, Value2: "xgmi", From: []devicetable.ID{XGMIRX}, RowKey: names.GPULinkIndex},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "transmit", Key2: names.GPUIOLink, Value2: "xgmi", From: []devicetable.ID{XGMITX}, RowKey: names.GPULinkIndex},
	{Metric: &names.GPUPCIeReplays, From: []devicetable.ID{PCIeReplays}},
	{Metric: &names.GPUPCIeErrors, Key: names.GPUPCIeErrorType, Value: "recovery", From: []devicetable.ID{PCIeRecoveries}},
	{Metric: &names.GPUPCIeErrors, Key: names.GPUPCIeErrorType, Value: "replay_rollover", From: []devicetable.ID{PCIeReplayRollovers}},
	{Metric: &names.GPUPCIeErrors, Key: names.GPUPCIeErrorType, Value: "nack_sent", From: []devicetable.ID{PCIeNACKsSent}},
	{Metric: &names.GPUPCIeErrors, Key: names.GPUPCIeErrorType, Value: "nack_received", From: []devicetable.ID{PCIeNACKsReceived}},

	{Metric: &names.HwErrors, Key: names.ErrorType, Value: "corrected", From: []devicetable.ID{ECCCorrected}},
	{Metric: &names.HwErrors, Key: names.ErrorType, Value: "uncorrected", From: []devicetable.ID{ECCUncorrected}},
	{Metric: &names.HwErrors, Key: names.ErrorType, Value: "deferred", From: []devicetable.ID{ECCDeferred}},
	{Metric: &names.GPURetiredPages, From: []devicetable.ID{RetiredPages}},
	{Metric: &names.GPURetiredPending, From: []devicetable.ID{RetiredPending}},
	{Metric: &names.GPURetiredFailure, From: []devicetable.ID{RetiredFailed}},
}

// dropped are families of which others have the value, or which have none that can be used.
var dropped = []string{
	"gpu_free_vram", "gpu_total_visible_vram", "gpu_used_visible_vram", "gpu_free_visible_vram", // usage and limit have it
	"gpu_min_clock", "gpu_max_clock",
	"pcie_bidirectional_bandwidth", // its unit is a rate, and it accumulates
	"gpu_process_cu_occupancy",     // a series for each process
}
