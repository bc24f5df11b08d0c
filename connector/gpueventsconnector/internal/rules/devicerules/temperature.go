// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

var sensors = []string{names.SensorGPU, names.SensorMemory}

// Temperature is gpu.temperature, in degrees Celsius. Each sensor is a condition of its
// own.
var Temperature = Rule{
	Rule: rule.Rule{
		Event: names.EventTemperature, Set: rule.Device,
		Reads: []rule.Input{{Metric: &names.HwTemperature, Attribute: names.HwSensorLocation, Values: sensors}},
		Keys: []rule.Key{
			degrees("high", 85),
			rule.Duration("high_for", fiveMinutes, 0, rule.MaxFor),
			degrees("critical", 90),
			rule.Duration("critical_for", twoMinutes, 0, rule.MaxFor),
			degrees("amd_high", 95),
			degrees("amd_critical", 100),
			degrees("memory_high", 95),
			degrees("memory_critical", 105),
			rule.Number("hysteresis", 3, 0, 50, func(v float64) string {
				if !(v >= 0 && v <= 50) {
					return fmt.Sprintf("%g: set it to 0 degrees or more, and to 50 at most", v)
				}
				return ""
			}),
		},
		Check: func(s rule.Settings, refuse rule.Refuse) {
			for _, of := range []string{"", "amd_", "memory_"} {
				high, critical := s.Number(of+"high"), s.Number(of+"critical")
				if !(critical > high) {
					refuse(of+"critical", "%g: set it above %shigh (%g)", critical, of, high)
				}
			}
		},
		Doc: rule.Doc{
			Raised:  "above `high` (85) for 5m; above `critical` (90) for 2m; of AMD boards, which report the hottest point of the chip, `amd_high` (95) and `amd_critical` (100)",
			Cleared: "3 degrees (`hysteresis`) below `high`", Severity: "WARN; ERROR", Key: perDevice + "/sensor",
			Chart: "Degrees Celsius; memory_* are those of HBM, which runs hotter than the chip; amd_* those of the hottest point of AMD chips.",
		},
	},
	Conditions: func(s rule.Settings) []Condition {
		return []Condition{
			temperature(s, 0, func(d *subject.Device) (high, critical float64) {
				if d.Make == deviceid.MakeAMD {
					return s.Number("amd_high"), s.Number("amd_critical")
				}
				return s.Number("high"), s.Number("critical")
			}),
			temperature(s, 1, func(*subject.Device) (high, critical float64) {
				return s.Number("memory_high"), s.Number("memory_critical")
			}),
		}
	},
}

func temperature(s rule.Settings, sensor int, limits func(*subject.Device) (high, critical float64)) Condition {
	hysteresis := s.Number("hysteresis")
	return Condition{
		Spec: twoLevels(s), Part: sensors[sensor],
		Judge: func(d *subject.Device, r Readings) condition.Verdict {
			high, critical := limits(d)
			return above(r.At(sensor), high, critical, hysteresis)
		},
		Describe: func(d *subject.Device, r Readings, ev *event.Event) {
			v := r.At(sensor)
			high, critical := limits(d)
			d.Describe(ev, ": the "+sensors[sensor]+" sensor reads "+decimal(v)+" °C"+limit(ev.Level, high, critical, " °C"))
			ev.Add(measured(ev.Level, v, high, critical), func(attrs pcommon.Map) {
				attrs.PutStr(names.HwSensorLocation, sensors[sensor])
			})
		},
	}
}

// Thresholds for temperatures are between these, in degrees Celsius: below, every GPU
// raises an event, and above none does.
const coolest, hottest = 30, 150

func degrees(name string, byDefault float64) rule.Key {
	return rule.Number(name, byDefault, coolest, hottest, func(v float64) string {
		if !(v >= coolest && v <= hottest) {
			return fmt.Sprintf("%g: it is in degrees Celsius: set it between %d and %d", v, coolest, hottest)
		}
		return ""
	})
}
