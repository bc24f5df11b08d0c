// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicetable"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// violations are the reasons for which clocks are held down, each with the family of its
// percentage and that of its accumulated steps.
var violations = [...]struct {
	reason       string
	ratio, total devicetable.ID
	clocks       bool // it holds clocks down
}{
	{"prochot", ProcessorHotRatio, ProcessorHotTotal, true},
	{"power_cap", PPTRatio, PPTTotal, true},
	{"hw_thermal", SocketThermalRatio, SocketThermalTotal, true},
	{"vr_thermal", VRThermalRatio, VRThermalTotal, true},
	{"memory_thermal", HBMThermalRatio, HBMThermalTotal, true},
	{"host_power", HostPowerRatio, HostPowerTotal, true},
	{"host_thermal", HostThermalRatio, HostThermalTotal, true},
	{"low_util", LowUtilRatio, LowUtilTotal, false},
}

// writeThrottle writes for each reason the part of the time for which it held the clocks
// down, and whether it did.
func (e *derivation) writeThrottle(d *devicemap.Device, w *devicemap.Writer) {
	counter, grew := e.rise(d, ViolationCounter)
	var ratios [len(violations)]float64
	var known [len(violations)]bool
	for i, v := range violations {
		steps, risen := e.rise(d, v.total) // remembered, whether or not it is used
		if x := d.Reading(v.ratio); x.Known() {
			ratios[i], known[i] = x.V, true
		} else if risen && grew && counter > 0 {
			ratios[i], known[i] = devicetable.Ratio.Within(steps / counter)
		}
	}
	for i, v := range violations {
		if known[i] {
			w.Value(&names.GPUThrottleRatio, ratios[i]).Attributes().PutStr(names.GPUThrottleReason, v.reason)
		}
	}
	for i, v := range violations {
		if known[i] && v.clocks {
			w.State(&names.GPUThrottleActive, ratios[i] > 0, names.GPUThrottleReason, v.reason)
		}
	}
}

// rise is by how much a field has risen since the page before. What has fallen was reset,
// and has not risen.
func (e *derivation) rise(d *devicemap.Device, id devicetable.ID) (by float64, known bool) {
	x := d.Reading(id)
	before, seen := e.steps[id]
	delete(e.steps, id)
	if !x.Known() {
		return 0, false
	}
	if e.steps == nil {
		e.steps = map[devicetable.ID]float64{}
	}
	e.steps[id] = x.V
	return x.V - before, seen && x.V >= before
}
