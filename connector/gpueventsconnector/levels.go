// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"fmt"
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

var sensors = [...]string{names.SensorGPU, names.SensorMemory}

// temperatureRule is gpu.temperature of one sensor.
func temperatureRule(c *TemperatureEvent, sensor int) deviceRule {
	high, critical := c.High, c.Critical
	if sensor == 1 {
		high, critical = c.MemoryHigh, c.MemoryCritical
	}
	return deviceRule{
		rule: rule{
			event: names.EventTemperature, part: sensors[sensor],
			levels: []level{{c.HighFor, plog.SeverityNumberWarn}, {c.CriticalFor, plog.SeverityNumberError}},
		},
		judge: func(_ *engine, d *device) (uint8, bool, bool) {
			return twoLevels(d.was.temperature[sensor], high, critical, c.Hysteresis)
		},
		describe: func(d *device, ev *event) {
			v := d.was.temperature[sensor]
			ev.say(d.String()+": the "+sensors[sensor]+" sensor reads "+number3(v)+" °C", ev.limit(high, critical, " °C"), d.owned(ev))
			ev.details = append(ev.details, measured(ev.level, v, high, critical), func(attrs pcommon.Map) {
				attrs.PutStr(names.HwSensorLocation, sensors[sensor])
			})
		},
	}
}

// twoLevels says which of two thresholds a value is above, and whether it is
// below the lower one by the hysteresis.
func twoLevels(v, high, critical, hysteresis float64) (met uint8, over, known bool) {
	if math.IsNaN(v) {
		return 0, false, false
	}
	if v > high {
		met |= 1
	}
	if v > critical {
		met |= 2
	}
	// 0.95 - 0.02 is a little less than 0.93.
	return met, v <= high-hysteresis+1e-9, true
}

// say makes the sentence from what is so, what that means, and whose it is.
func (ev *event) say(what, means, held string) { ev.body = what + means + held }

// limit tells how a value is related to the thresholds.
func (ev *event) limit(high, critical float64, unit string) string {
	switch ev.level {
	case 0:
		return ", no longer above " + number3(high) + unit
	case 1:
		return ", above " + number3(high) + unit + " (" + names.EventLevelHigh + ")"
	}
	return ", above " + number3(critical) + unit + " (" + names.EventLevelCritical + ")"
}

// measured are the attributes of an event about a value with two levels.
func measured(level uint8, v, high, critical float64) func(pcommon.Map) {
	return func(attrs pcommon.Map) {
		if !math.IsNaN(v) {
			attrs.PutDouble(names.GPUEventValue, v)
		}
		switch level {
		case 1:
			attrs.PutStr(names.GPUEventLevel, names.EventLevelHigh)
			attrs.PutDouble(names.GPUEventThreshold, high)
		case 2:
			attrs.PutStr(names.GPUEventLevel, names.EventLevelCritical)
			attrs.PutDouble(names.GPUEventThreshold, critical)
		}
	}
}

func number3(v float64) string { return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64) }

// memoryRule is gpu.memory.pressure.
func memoryRule(c *MemoryEvent) deviceRule {
	usage := func(d *device) float64 {
		if r := d.was.ratio; !math.IsNaN(r) {
			return r
		}
		if d.was.limit > 0 {
			return d.was.usage / d.was.limit
		}
		return math.NaN()
	}
	return deviceRule{
		rule: rule{
			event:  names.EventMemoryPressure,
			levels: []level{{c.HighFor, plog.SeverityNumberWarn}, {c.CriticalFor, plog.SeverityNumberError}},
		},
		judge: func(e *engine, d *device) (uint8, bool, bool) {
			met, over, known := twoLevels(usage(d), c.High, c.Critical, c.Hysteresis)
			if met != 0 && e.hasInstances(d) {
				return 0, false, false // the sum over its instances, which are told on their own
			}
			return met, over, known
		},
		describe: func(d *device, ev *event) {
			v := usage(d)
			ev.say(d.String()+": "+percent(v)+" of its memory is in use",
				ev.limit(c.High*100, c.Critical*100, " %"), d.owned(ev))
			usage, limit := d.was.usage, d.was.limit
			ev.details = append(ev.details, measured(ev.level, v, c.High, c.Critical), func(attrs pcommon.Map) {
				if !math.IsNaN(usage) {
					attrs.PutInt(names.GPUMemoryUsage.Name, int64(usage))
				}
				if !math.IsNaN(limit) {
					attrs.PutInt(names.GPUMemoryLimit.Name, int64(limit))
				}
			})
		},
	}
}

func percent(v float64) string {
	return fmt.Sprintf("%.1f %%", v*100)
}
