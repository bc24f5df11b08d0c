// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// field is one quantity of a device that the summary is made of.
type field uint8

const (
	utilization field = iota
	smActive
	dramActive
	tensorActive
	fp16Active
	fp32Active
	memoryUsage
	memoryLimit
	power
	numFields

	// suspended is in no figure: it reports that the device is there, though nothing
	// is read of it.
	suspended  = numFields
	numSamples = numFields + 1

	// share of gpu.allocation is no field: it reports who holds the device.
	share = numSamples
)

// isRatio reports whether the value of a field in a pod is the mean over its devices from
// the sum.
func (f field) isRatio() bool { return f <= fp32Active }

// Values of hw.gpu.task and gpu.pipe that the summary reads.
const (
	taskGeneral = "general"
	pipeTensor  = "tensor"
	pipeFP16    = "fp16"
	pipeFP32    = "fp32"
)

// input reports how the points of one metric become a field.
type input struct {
	unit string
	// only is the field of every point where attr is empty.
	only field
	// attr is the point attribute that selects the field by its value. Points with
	// other values, such as the encoder's utilization, are no input.
	attr string
	by   []choice
}

// choice is the field of one value of an attribute.
type choice struct {
	value string
	field field
}

// Inputs that are no fields: who holds a device, and whether the values of an
// exporter's page stand still.
var (
	allocation = input{unit: names.GPUAllocation.Unit, only: share}
	stillness  = input{unit: names.ExporterFrozen.Unit}
)

// inputs are the metrics that are read.
var inputs = func() (t names.Table[*input]) {
	for metric, in := range map[*names.Metric]*input{
		&names.GPUUtilization: {
			unit: names.GPUUtilization.Unit, attr: names.HwGPUTask,
			by: []choice{{taskGeneral, utilization}},
		},
		&names.GPUPipeActive: {
			unit: names.GPUPipeActive.Unit, attr: names.GPUPipe,
			by: []choice{{pipeTensor, tensorActive}, {pipeFP16, fp16Active}, {pipeFP32, fp32Active}},
		},
		&names.GPUAllocation:  &allocation,
		&names.ExporterFrozen: &stillness,

		&names.GPUSMActive:    {unit: names.GPUSMActive.Unit, only: smActive},
		&names.GPUDRAMActive:  {unit: names.GPUDRAMActive.Unit, only: dramActive},
		&names.GPUMemoryUsage: {unit: names.GPUMemoryUsage.Unit, only: memoryUsage},
		&names.GPUMemoryLimit: {unit: names.GPUMemoryLimit.Unit, only: memoryLimit},
		&names.HwPower:        {unit: names.HwPower.Unit, only: power},

		&names.GPUDeviceSuspended: {unit: names.GPUDeviceSuspended.Unit, only: suspended},
	} {
		t.Put(metric.Name, in)
	}
	return t
}()

// fieldOf returns the field of a point with these attributes.
func (in *input) fieldOf(attrs pcommon.Map) (field, bool) {
	if in.attr == "" {
		return in.only, true
	}
	v, ok := attrs.Get(in.attr)
	if !ok {
		return 0, false
	}
	value := v.Str()
	for _, c := range in.by {
		if c.value == value {
			return c.field, true
		}
	}
	return 0, false
}
