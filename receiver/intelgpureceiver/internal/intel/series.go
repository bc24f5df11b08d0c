// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intel

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// series are the metrics that take their values from one field each.
var series = []devicetable.Series{
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "general", From: ids(EngineRatio, General)},
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "compute", From: ids(Compute)},
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "media", From: ids(Media)},
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "copy", From: ids(Copy)},
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "render", From: ids(Render)},
	{Metric: &names.GPUSMActive, From: ids(EUActive)},
	{Metric: &names.GPUMemoryBandwidth, From: ids(MemoryBandwidth, Bandwidth)},
	{Metric: &names.GPUMemoryIO, Key: names.NetworkDirection, Value: "receive", From: ids(MemoryRead, ReadIO)},
	{Metric: &names.GPUMemoryIO, Key: names.NetworkDirection, Value: "transmit", From: ids(MemoryWrite, WriteIO)},

	{Metric: &names.HwPower, From: ids(PowerWatts, Power)},
	{Metric: &names.HwEnergy, From: ids(EnergyJoules, Energy)},
	{Metric: &names.HwTemperature, Key: names.HwSensorLocation, Value: "gpu", From: ids(GPUTemp)},
	{Metric: &names.HwTemperature, Key: names.HwSensorLocation, Value: "memory", From: ids(MemoryTemp)},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "sm", From: ids(SMClock)},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "memory", From: ids(MemoryClock)},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "media", From: ids(MediaClock)},

	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "receive", Key2: names.GPUIOLink, Value2: "pcie", From: ids(PCIeRead, PCIeIn)},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "transmit", Key2: names.GPUIOLink, Value2: "pcie", From: ids(PCIeWrite, PCIeOut)},
	{Metric: &names.GPUIO, Key: names.NetworkDirection, Value: "transmit", Key2: names.GPUIOLink, Value2: "xelink", From: ids(FabricTX)},
	{Metric: &names.GPULinkUp, Key: names.GPULinkKind, Value: "internal", From: ids(LinkUp)},

	{Metric: &names.HwErrors, Key: names.ErrorType, Value: "corrected", From: ids(Corrected)},
	{Metric: &names.HwErrors, Key: names.ErrorType, Value: "uncorrected", From: ids(Uncorrected)},
	{Metric: &names.GPUECCErrors, RowKey: names.ErrorType + "," + names.GPUECCBlock, From: ids(Blocks)},
	{Metric: &names.GPUDeviceErrors, Key: names.ErrorType, Value: "programming", From: ids(ProgrammingErrors, Programming)},
	{Metric: &names.GPUDeviceErrors, Key: names.ErrorType, Value: "driver", From: ids(DriverErrors, Driver)},
	{Metric: &names.GPUDeviceResets, From: ids(Resets, ResetCount)},
}

func ids(list ...devicetable.ID) []devicetable.ID { return list }

// derived are all metrics of a device that are not in series.
var derived = []devicetable.Derived{
	{
		Metric: &names.GPUMemoryUsage, From: ids(MemoryUsed, MemoryUsage2),
		Rule: "The memory of the device; of a GPU without a row of its own the sum over its tiles, if all of them report it.",
	},
	{
		Metric: &names.GPUMemoryLimit, From: ids(MemorySize2, MemoryUsed, MemoryRatio),
		Rule: "The size of the device's memory, where it is above 0 (it is 0 on an integrated GPU). 1.x prints no size: usage divided by xpum_memory_ratio, where that is 0.02 or more.",
	},
	{
		Metric: &names.GPUMemoryUtilization, From: ids(MemoryUsed, MemoryRatio, MemoryUsage2, MemorySize2),
		Rule: "Usage divided by limit, where both are known.",
	},
	{
		Metric: &names.GPUThrottleActive, From: ids(Throttle2), Keys: []string{names.GPUThrottleReason},
		Rule: "1 for a reason that is active in a frequency domain: ave_pwr_cap, burst_pwr_cap and power are power_cap, thermal_limit and thermal are hw_thermal, psu_alert is hw_power_brake, sw_range is clocks_setting. XPU Manager prints a reason once it was active.",
	},
	{
		Metric: &names.GPUHealthStatus, From: ids(Status2), Keys: []string{names.GPUHealthWatch, names.GPUHealthState},
		Rule: "1 for the state that a watch is in, 0 for the other two; the watches are hw_type: gpu, memory, pcie (pci_link), thermal (temperature). ok is pass; failed, critical, replace, reset_needed, wedged and gpu_lost are fail; every other active state is warn. The worst active state counts.",
	},
}
