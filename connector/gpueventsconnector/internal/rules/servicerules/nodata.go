// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package servicerules

import (
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// NoData is gpu.service.no_data.
var NoData = Rule{
	Rule: rule.Rule{
		Event: names.EventServiceNoData, Set: rule.Service,
		// The end of gpu.service.partial without a value of gpu.service.pods is the end of
		// the service.
		Reads: []rule.Input{{Metric: &names.ServicePartial}, {Metric: &names.ServicePods}},
		Doc: rule.Doc{
			Raised: "all settled pods are missing", Cleared: "a pod reports, or the service is gone", Severity: "ERROR", Key: perService,
		},
	},
	Spec: condition.Once(plog.SeverityNumberError),
	// Without a pod that should have data there is neither data nor a lack of it: only the
	// first fresh point clears.
	Judge: func(ev *Evaluation) condition.Verdict {
		switch {
		case ev.Reporting > 0:
			return condition.Holds(false)
		case ev.states == allStates && ev.Settled > 0:
			return condition.Holds(true)
		}
		return condition.Verdict{}
	},
	WithNode: true,
	Is:       "without data", State: "its lack of data",
	Extent: (*Details).pods, Put: (*Details).putPods,
}
