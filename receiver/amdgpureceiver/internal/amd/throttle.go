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
	counted := e.rise(d, ViolationCounter)
	var ratios [len(violations)]float64
	var known [len(violations)]bool
	for i, v := range violations {
		risen := e.rise(d, v.total) // remembered, whether or not it is used
		if ratios[i], known[i] = value(d, v.ratio); known[i] {
			continue
		}
		if counter := counted[""]; counter > 0 && len(risen) > 0 {
			for _, steps := range risen {
				ratios[i] += steps / counter / float64(len(risen))
			}
			ratios[i], known[i] = devicetable.Ratio.Within(ratios[i])
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

// value is that of a field, or the mean of its rows.
func value(d *devicemap.Device, id devicetable.ID) (v float64, known bool) {
	if x := d.Reading(id); x.Known() {
		return x.V, true
	}
	return meanOf(d.Rows(id))
}

// rise is by how much the rows of a field have risen since the page before, by their texts
// ("" for a field without rows). What has fallen was reset, and has not risen.
func (e *derivation) rise(d *devicemap.Device, id devicetable.ID) (by map[string]float64) {
	now := map[string]float64{}
	if x := d.Reading(id); x.Known() {
		now[""] = x.V
	}
	for text, x := range d.Rows(id) {
		now[text] = x.V
	}
	before := e.steps[id]
	switch {
	case len(now) == 0:
		delete(e.steps, id)
		return nil
	case e.steps == nil:
		e.steps = map[devicetable.ID]map[string]float64{}
	}
	e.steps[id] = now
	by = map[string]float64{}
	for text, v := range now {
		if last, ok := before[text]; ok && v >= last {
			by[text] = v - last
		}
	}
	return by
}
