// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"maps"
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// ClockEvents are the reasons for which clocks are held down, in the order of their bits; NVML and
// DCGM use the same bits (nvml.h, nvmlClocksEventReason*).
var ClockEvents = [...]string{
	"gpu_idle", "clocks_setting", "power_cap", "hw_slowdown", "sync_boost",
	"sw_thermal", "hw_thermal", "hw_power_brake", "display_clocks",
}

// Throttle is what is known of the clocks of one device from page to page.
type Throttle struct {
	totals map[string]float64
}

// Write writes for each reason whether it holds the clocks down. The bit
// mask is exact; without it the exporter's count over its sliding window
// (above 0), or the rise of its total since the page before.
func (t *Throttle) Write(d *devicemap.Device, w *devicemap.Writer) {
	active := map[string]bool{}
	if mask := d.Reading(ThrottleReasons); mask.Known() {
		for bit, reason := range ClockEvents {
			active[reason] = uint64(mask.V)&(1<<bit) != 0
		}
	} else if rows := d.Rows(ClockEventsCount); rows != nil {
		for reason, x := range rows {
			active[reason] = x.V > 0
		}
	} else if rows := d.Rows(ClockEventsTotal); rows != nil {
		for reason, x := range rows {
			// A reason that is new on a later page has risen from 0.
			active[reason] = t.totals != nil && x.V > t.totals[reason]
		}
		t.totals = totals(rows)
	} else {
		return
	}
	for _, reason := range ClockEvents {
		w.State(&names.GPUThrottleActive, active[reason], names.GPUThrottleReason, reason)
		delete(active, reason)
	}
	delete(active, "") // the row of an exporter that has seen no event
	for _, reason := range slices.Sorted(maps.Keys(active)) {
		w.State(&names.GPUThrottleActive, active[reason], names.GPUThrottleReason, reason)
	}
}

func totals(rows map[string]devicemap.Reading) map[string]float64 {
	m := make(map[string]float64, len(rows))
	for k, x := range rows {
		m[k] = x.V
	}
	return m
}
