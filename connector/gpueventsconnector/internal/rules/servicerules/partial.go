// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package servicerules

import (
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Partial is gpu.service.partial.
var Partial = Rule{
	Rule: rule.Rule{
		Event: names.EventServicePartial, Set: rule.Service,
		Reads: []rule.Input{{Metric: &names.ServicePartial}, {Metric: &names.ServicePods}},
		Doc: rule.Doc{
			Raised: "`gpu.service.partial` is 1", Cleared: "it is 0, or the service is gone", Severity: "WARN", Key: perService,
		},
	},
	Spec:  condition.Once(plog.SeverityNumberWarn),
	Judge: func(ev *Evaluation) condition.Verdict { return above(ev.Partial) },
	Is:    "partial", State: "its partial state",
	Extent: (*Details).pods, Put: (*Details).putPods,
}
