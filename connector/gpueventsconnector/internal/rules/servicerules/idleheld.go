// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package servicerules

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// IdleHeld is gpu.idle_held.
var IdleHeld = Rule{
	Rule: rule.Rule{
		Event: names.EventIdleHeld, Set: rule.Service,
		Reads: []rule.Input{{Metric: &names.ServiceIdleDevices}, {Metric: &names.ServicePartial}, {Metric: &names.ServicePods}},
		Doc: rule.Doc{
			Raised: "`gpu.service.idle_devices` is above 0", Cleared: "it is 0, or the service is gone", Severity: "INFO", Key: perService,
		},
	},
	Spec:  condition.Once(plog.SeverityNumberInfo),
	Judge: func(ev *Evaluation) condition.Verdict { return above(ev.Idle) },
	Is:    "holding idle GPUs", State: "its idle GPUs",
	Extent: func(d *Details) string {
		if d.Idle <= 0 {
			return "."
		}
		return fmt.Sprintf(": %s did no work for long.", event.Plural(int(d.Idle), "GPU"))
	},
	Put: func(d *Details, attrs pcommon.Map) {
		if d.Idle >= 0 {
			attrs.PutInt(names.GPUServiceIdle, d.Idle)
		}
	},
}
