// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

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
