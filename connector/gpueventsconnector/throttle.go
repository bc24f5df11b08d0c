// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// throttleReasons are those that say that the hardware protects itself; the
// place is the bit in readings. hw_slowdown alone does not say of what.
var throttleReasons = [...]string{names.ThrottleHWThermal, names.ThrottleSWThermal, names.ThrottleHWPowerBrake}

// throttleRule is gpu.throttle.
func throttleRule(c *ThrottleEvent) deviceRule {
	return deviceRule{
		rule: rule{
			event:  names.EventThrottle,
			levels: []level{{c.For, plog.SeverityNumberWarn}}, clearFor: c.ClearFor,
		},
		judge: func(_ *engine, d *device) (uint8, bool, bool) {
			return uint8(max(d.was.throttle, 0)), d.was.throttle == 0, d.was.throttle >= 0
		},
		describe: func(d *device, ev *event) {
			var active []string
			for i, reason := range throttleReasons {
				if d.was.reasons&(1<<i) != 0 {
					active = append(active, reason)
				}
			}
			if ev.level == 0 {
				ev.body = d.String() + " is no longer throttled" + d.owned(ev)
			} else {
				ev.body = d.String() + " is throttled (" + strings.Join(active, ", ") + ")" + d.owned(ev)
			}
			ev.details = append(ev.details, func(attrs pcommon.Map) { putList(attrs, names.GPUThrottleReasons, active) })
		},
	}
}

// rowRemapRule is gpu.row_remap.failure.
func rowRemapRule() deviceRule {
	return deviceRule{
		rule: rule{event: names.EventRowRemapFailure, levels: []level{{0, plog.SeverityNumberError}}},
		judge: func(_ *engine, d *device) (uint8, bool, bool) {
			f := d.was.remapFailure
			if f > 0 {
				return 1, false, true
			}
			return 0, f == 0, f == 0
		},
		describe: func(d *device, ev *event) {
			if ev.level == 0 {
				ev.body = d.String() + " no longer says that remapping a memory row failed" + d.owned(ev)
				return
			}
			ev.body = d.String() + " could not remap a broken memory row: the board has to be replaced" + d.owned(ev)
		},
	}
}
