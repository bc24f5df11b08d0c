// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// The readings of MemoryPressure.
const (
	memoryUsage       = iota // bytes
	memoryLimit              // bytes
	memoryUtilization        // a fraction
)

// MemoryPressure is gpu.memory.pressure; thresholds are fractions of the memory.
var MemoryPressure = Rule{
	Rule: rule.Rule{
		Event: names.EventMemoryPressure, Set: rule.Device,
		Reads: []rule.Input{{Metric: &names.GPUMemoryUsage}, {Metric: &names.GPUMemoryLimit}, {Metric: &names.GPUMemoryUtilization}},
		Keys: []rule.Key{
			rule.Number("high", 0.95, 0.01, 0.99, func(v float64) string {
				if !(v > 0 && v < 1) {
					return fmt.Sprintf("%g: it is a fraction of the memory: set it between 0 and 1", v)
				}
				return ""
			}),
			rule.Duration("high_for", twoMinutes, 0, rule.MaxFor),
			rule.Number("critical", 0.98, 0.01, 0.99, nil),
			rule.Duration("critical_for", time.Minute, 0, rule.MaxFor),
			rule.Number("hysteresis", 0.02, 0, 0.98, nil),
		},
		Check: func(s rule.Settings, refuse rule.Refuse) {
			high, critical, hysteresis := s.Number("high"), s.Number("critical"), s.Number("hysteresis")
			if !(critical > high && critical < 1) {
				refuse("critical", "%g: set it above high (%g) and below 1", critical, high)
			}
			if !(hysteresis >= 0 && hysteresis < high) {
				refuse("hysteresis", "%g: set it to 0 or more, and below high (%g)", hysteresis, high)
			}
		},
		Doc: rule.Doc{
			Raised:  "usage above `high` (0.95) for 2m; above `critical` (0.98) for 1m",
			Cleared: "0.02 (`hysteresis`) below `high`", Severity: "WARN; ERROR", Key: perDevice,
			Chart: "Shares of the memory.",
		},
	},
	Conditions: func(s rule.Settings) []Condition {
		high, critical, hysteresis := s.Number("high"), s.Number("critical"), s.Number("hysteresis")
		return []Condition{{
			Spec: twoLevels(s), Undivided: true,
			Judge: func(_ *subject.Device, r Readings) condition.Verdict {
				return above(memoryInUse(r), high, critical, hysteresis)
			},
			Describe: func(d *subject.Device, r Readings, ev *event.Event) {
				v := memoryInUse(r)
				d.Describe(ev, fmt.Sprintf(": %.1f %% of its memory is in use", v*100)+limit(ev.Level, high*100, critical*100, " %"))
				usage, limit := r.At(memoryUsage), r.At(memoryLimit)
				ev.Add(measured(ev.Level, v, high, critical), func(attrs pcommon.Map) {
					if !math.IsNaN(usage) {
						attrs.PutInt(names.GPUMemoryUsage.Name, int64(usage))
					}
					if !math.IsNaN(limit) {
						attrs.PutInt(names.GPUMemoryLimit.Name, int64(limit))
					}
				})
			},
		}}
	},
}

// memoryInUse is the fraction of the memory that is in use; NaN: unknown.
func memoryInUse(r Readings) float64 {
	if v := r.At(memoryUtilization); !math.IsNaN(v) {
		return v
	}
	if r.At(memoryLimit) > 0 {
		return r.At(memoryUsage) / r.At(memoryLimit)
	}
	return math.NaN()
}
