// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// series are the metrics that take their values from one family each.
var series = []devicetable.Series{
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "general", From: []devicetable.ID{GfxActivity, GfxBusyMean}},
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "decoder", From: []devicetable.ID{VCNBusyMean, VCNActivityMean}},
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "jpeg", From: []devicetable.ID{JPEGBusyMean, JPEGActivityMean}},
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
}

// derived are all metrics of a device that are not in series.
var derived = []devicetable.Derived{
	{
		Metric: &names.GPUMemoryUsage, From: []devicetable.ID{UsedVRAM},
		Rule: "The family. Of a partitioned board the sum over its partitions, if the page has as many as its mode has, and all of them have a value; where each partition prints the value of the board, that once for the board, and none for the partitions.",
	},
	{
		Metric: &names.GPUMemoryLimit, From: []devicetable.ID{TotalVRAM, TotalMemory},
		Rule: "As for the usage. Where partitions are missing, the size that the driver reports for boards of the model, if that is known.",
	},
	{
		Metric: &names.GPUMemoryUtilization, From: []devicetable.ID{UsedVRAM, TotalVRAM, TotalMemory},
		Rule: "Usage divided by limit, where both are known.",
	},
	{
		Metric: &names.GPUECCErrors, From: blocks(), Keys: []string{names.GPUECCBlock, names.ErrorType},
		Rule: "The families of the blocks. A block without any error since the start of the receiver has no point.",
	},
	{
		Metric: &names.GPURASLast, From: []devicetable.ID{AFIDErrors}, Keys: []string{names.GPURASSeverity},
		Rule: "The code of the newest record of each severity: of several rows the one with the lowest `afid_index`.",
	},
	{
		Metric: &names.GPUHealthStatus, From: []devicetable.ID{Health}, Keys: []string{names.GPUHealthWatch, names.GPUHealthState},
		Rule: "Watch `exporter`: fail where a row is 0, else pass. 1 for the state that it is in, 0 for the other two.",
	},
	{
		Metric: &names.GPUThrottleRatio, From: violationFields(), Keys: []string{names.GPUThrottleReason},
		Rule: "The percentage, over dies (`xcc_index`) the mean. Without the percentage the rise of the accumulated value since the page before, divided by that of the counter, which must have risen.",
	},
	{
		Metric: &names.GPUThrottleActive, From: violationFields(), Keys: []string{names.GPUThrottleReason},
		Rule: "1 where the ratio is above 0. Not for the reason low_util, which holds no clock down.",
	},
	{
		Metric: &names.GPURetiredPending, From: []devicetable.ID{RetiredPending},
		Rule: "1 where pages are pending, else 0.",
	},
	{
		Metric: &names.GPURetiredFailure, From: []devicetable.ID{RetiredFailed},
		Rule: "1 where a page could not be retired, else 0.",
	},
}

// blocks are all fields of ECC errors by block.
func blocks() (ids []devicetable.ID) {
	for block := range eccBlockNames {
		for kind := range eccTypes {
			ids = append(ids, eccBlock(block, kind))
		}
	}
	return ids
}

// violationFields are all fields that throttling is derived from.
func violationFields() (ids []devicetable.ID) {
	for _, v := range violations {
		ids = append(ids, v.ratio)
	}
	for _, v := range violations {
		ids = append(ids, v.total)
	}
	return append(ids, ViolationCounter)
}

// dropped are families of which others have the value, or which have none that can be used.
var dropped = []string{
	"gpu_free_vram", "gpu_total_visible_vram", "gpu_used_visible_vram", "gpu_free_visible_vram", // usage and limit say it
	"gpu_min_clock", "gpu_max_clock",
	"pcie_bidirectional_bandwidth", // its unit is a rate, and it accumulates
	"gpu_process_cu_occupancy",     // a series for each process
}
