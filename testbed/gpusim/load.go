// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"math"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// activity is what a device or MIG instance does during one second. Ratios are
// 0 to 1 of the device or instance, rates are fractions of the link.
type activity struct {
	util, sm, occupancy, tensor, dram  float64
	fp64, fp32, fp16, integer, memCopy float64
	memory                             float64 // fraction of the memory that can be used
	pcieTx, pcieRx, nvlink             float64
}

// profile is how a kind of work spreads over a GPU when it is fully busy.
type profile struct {
	sm, occupancy, tensor, dram, fp32, fp16, integer, memCopy float64
	memory, pcieTx, pcieRx, nvlink                            float64
}

var profiles = map[Load]profile{
	Inference: {sm: .74, occupancy: .28, tensor: .24, dram: .52, fp32: .06, fp16: .11, integer: .14, memCopy: .48, memory: .88, pcieTx: .006, pcieRx: .011, nvlink: .05},
	Training:  {sm: .89, occupancy: .41, tensor: .57, dram: .46, fp32: .09, fp16: .13, integer: .18, memCopy: .42, memory: .76, pcieTx: .02, pcieRx: .05, nvlink: .31},
	Idle:      {memory: .12},
}

// loadOf is the curve of a kind of work, in 0..1, at second k of the fleet.
// Pods of one service share its traffic; pod and slot add what is their own.
func loadOf(kind Load, service, pod, slot uint64, k int64) float64 {
	var u float64
	switch kind {
	case Inference:
		// A day of one hour, so that a viewer sees it move.
		day := .5 + .5*math.Sin(2*math.Pi*(float64(k)/3600+random.Unit(service)))
		burst := random.Smooth(pod, float64(k)/15)
		u = .24 + .3*day + .5*burst*burst*burst + .03*random.Noise(slot, k)
	case Training:
		period := 90 + int64(random.Unit(pod)*60)
		dip := 6 + int64(random.Unit(pod+1)*5)
		if (k+int64(random.Unit(pod+2)*float64(period)))%period < dip {
			u = .09 + .03*random.Noise(slot, k) // a checkpoint is written
		} else {
			u = .965 + .02*random.Noise(slot, k)
		}
	default:
		return 0
	}
	return math.Round(min(max(u, .02), 1)*100) / 100
}

// activityOf spreads a load over the parts of the GPU. A pod that warms up
// (warm from 0 to 1) fills its memory over PCIe and computes nothing.
func activityOf(kind Load, u, warm float64, slot uint64, k int64) activity {
	p := profiles[kind]
	a := activity{memory: p.memory * warm}
	if warm < 1 {
		a.pcieRx = .6
		return a
	}
	if u == 0 {
		return a
	}
	i := uint64(0)
	part := func(share, limit float64) float64 {
		i++
		return ratio(min(share*u*(1+.04*random.Noise(slot+i<<32, k)), limit))
	}
	a.util = u
	a.sm = part(p.sm, u)
	a.occupancy = part(p.occupancy, a.sm)
	a.tensor = part(p.tensor, a.sm)
	a.fp32 = part(p.fp32, a.sm)
	a.fp16 = part(p.fp16, a.sm)
	a.integer = part(p.integer, a.sm)
	a.dram = part(p.dram, u)
	a.memCopy = part(p.memCopy, u)
	a.pcieTx = part(p.pcieTx, 1)
	a.pcieRx = part(p.pcieRx, 1)
	a.nvlink = part(p.nvlink, 1)
	return a
}

// ratio rounds to the six decimals that an exporter prints.
func ratio(v float64) float64 { return math.Round(max(v, 0)*1e6) / 1e6 }

// scaled is the activity in part: everything times f.
func (a activity) scaled(f float64) activity {
	for _, v := range a.parts() {
		*v = ratio(*v * f)
	}
	return a
}

// plus is the sum of two activities.
func (a activity) plus(b activity) activity {
	into, from := a.parts(), b.parts()
	for i := range into {
		*into[i] = ratio(*into[i] + *from[i])
	}
	return a
}

func (a *activity) parts() [14]*float64 {
	return [...]*float64{
		&a.util, &a.sm, &a.occupancy, &a.tensor, &a.dram, &a.fp64, &a.fp32, &a.fp16, &a.integer, &a.memCopy,
		&a.memory, &a.pcieTx, &a.pcieRx, &a.nvlink,
	}
}
