// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"fmt"
	"hash/fnv"
	"math"
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
		day := .5 + .5*math.Sin(2*math.Pi*(float64(k)/3600+unit(service)))
		burst := smooth(pod, float64(k)/15)
		u = .24 + .3*day + .5*burst*burst*burst + .03*noise(slot, k)
	case Training:
		period := 90 + int64(unit(pod)*60)
		dip := 6 + int64(unit(pod+1)*5)
		if (k+int64(unit(pod+2)*float64(period)))%period < dip {
			u = .09 + .03*noise(slot, k) // a checkpoint is written
		} else {
			u = .965 + .02*noise(slot, k)
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
		return ratio(min(share*u*(1+.04*noise(slot+i<<32, k)), limit))
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

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection on
// 64 bits with output that looks random for any input.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// stream derives an independent random stream from a seed and a name.
func stream(seed uint64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return mix(seed ^ h.Sum64())
}

// unit maps 64 random bits to [0, 1).
func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// noise is white noise in [-1, 1) at step k of a stream.
func noise(s uint64, k int64) float64 { return 2*unit(mix(s+uint64(k))) - 1 }

// smooth is value noise in [0, 1): random at the integers, smooth between.
func smooth(s uint64, x float64) float64 {
	i := math.Floor(x)
	f := x - i
	f = f * f * (3 - 2*f)
	a, b := unit(mix(s+uint64(int64(i)))), unit(mix(s+uint64(int64(i)+1)))
	return a + (b-a)*f
}

// uuidFrom formats 128 random bits of a stream in the layout of a UUID.
func uuidFrom(s uint64) string {
	a, b := mix(s), mix(s+1)
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, (a>>16)&0xffff, a&0xffff, b>>48, b&0xffffffffffff)
}
