// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// throttleReasons are those with which the hardware protects itself. hw_slowdown alone
// does not state from what.
var throttleReasons = []string{
	names.ThrottleHWThermal, names.ThrottleSWThermal, names.ThrottleHWPowerBrake,
	names.ThrottleProchot, names.ThrottleVRThermal, names.ThrottleMemoryThermal,
}

// Throttle is gpu.throttle.
var Throttle = Rule{
	Rule: rule.Rule{
		Event: names.EventThrottle, Set: rule.Device,
		Reads: []rule.Input{{Metric: &names.GPUThrottleActive, Attribute: names.GPUThrottleReason, Values: throttleReasons}},
		Keys: []rule.Key{
			rule.Duration("for", twoMinutes, 0, rule.MaxFor),
			rule.Duration("clear_for", twoMinutes, 0, rule.MaxFor),
		},
		Doc: rule.Doc{
			Raised:  "hw_thermal, sw_thermal, hw_power_brake, prochot, vr_thermal or memory_thermal, one after the other or together, `for` 2m",
			Cleared: "none of them `clear_for` 2m", Severity: "WARN", Key: perDevice,
		},
	},
	Conditions: func(s rule.Settings) []Condition {
		return []Condition{{
			Spec: condition.Spec{
				Levels: []condition.Level{{For: s.Duration("for"), Severity: plog.SeverityNumberWarn}}, ClearFor: s.Duration("clear_for"),
			},
			Judge: func(_ *subject.Device, r Readings) (v condition.Verdict) {
				for i := range throttleReasons {
					switch value := r.At(i); {
					case value > 0:
						return condition.Holds(true)
					case value <= 0:
						v = condition.Holds(false)
					}
				}
				return v
			},
			Describe: func(d *subject.Device, r Readings, ev *event.Event) {
				var active []string
				for i, reason := range throttleReasons {
					if r.At(i) > 0 {
						active = append(active, reason)
					}
				}
				if ev.Cleared() {
					d.Describe(ev, " is no longer throttled")
				} else {
					d.Describe(ev, " is throttled ("+strings.Join(active, ", ")+")")
				}
				ev.Add(func(attrs pcommon.Map) { event.PutList(attrs, names.GPUThrottleReasons, active) })
			},
		}}
	},
}
