// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gaudi

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

func from(ids ...devicetable.ID) []devicetable.ID { return ids }

// series are the metrics that take one field's value. Those of the memory are in derived.
var series = []devicetable.Series{
	{Metric: &names.GPUUtilization, Key: names.HwGPUTask, Value: "general", From: from(Utilization)},
	{Metric: &names.HwPower, From: from(Power)},
	{Metric: &names.GPUPowerLimit, Key: names.GPUPowerLimitKind, Value: "management", From: from(PowerLimit)},
	{Metric: &names.HwEnergy, From: from(Energy)},
	{Metric: &names.HwTemperature, Key: names.HwSensorLocation, Value: "gpu", From: from(ChipTemperature)},
	{Metric: &names.HwTemperature, Key: names.HwSensorLocation, Value: "board", From: from(BoardTemperature)},
	{Metric: &names.HwTemperatureLimit, Key: names.HwLimitType, Value: "max", Key2: names.HwSensorLocation, Value2: "gpu", From: from(ThresholdGPU)},
	{Metric: &names.HwTemperatureLimit, Key: names.HwLimitType, Value: "max", Key2: names.HwSensorLocation, Value2: "memory", From: from(ThresholdMemory)},
	{Metric: &names.HwTemperatureLimit, Key: names.HwLimitType, Value: "throttled", From: from(ThresholdSlowdown)},
	{Metric: &names.HwTemperatureLimit, Key: names.HwLimitType, Value: "critical", From: from(ThresholdShutdown)},
	{Metric: &names.GPUClockFrequency, Key: names.GPUClockDomain, Value: "soc", From: from(Clock)},
	{Metric: &names.GPUPCIeReplays, From: from(PCIeReplays)},
	{Metric: &names.GPURemappedRows, Key: names.ErrorType, Value: "corrected", From: from(ReplacedCorrected)},
	{Metric: &names.GPURemappedRows, Key: names.ErrorType, Value: "uncorrected", From: from(ReplacedUncorrected)},
	{Metric: &names.GPURemappedRowsPending, From: from(ReplacementPending)},
	{Metric: &names.GPULinkUp, RowKey: names.GPULinkIndex + "," + names.GPULinkKind, From: from(PortStatus)},
}

// derived are all metrics of a device that are not in series.
var derived = []devicetable.Derived{
	{Metric: &names.GPUMemoryUsage, From: from(MemoryUsed), Rule: "The field; absent above 1.05 times the limit."},
	{Metric: &names.GPUMemoryLimit, From: from(MemoryTotal, MemoryUsed, MemoryFree), Rule: "The size; without it what is used and what is free."},
	{Metric: &names.GPUMemoryUtilization, From: from(MemoryTotal, MemoryUsed), Rule: "Usage divided by limit."},
}
