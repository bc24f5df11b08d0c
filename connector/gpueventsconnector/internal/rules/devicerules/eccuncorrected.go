// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// ECCUncorrected is gpu.ecc.uncorrected.
var ECCUncorrected = Counted{
	Rule: rule.Rule{
		Event: names.EventECCUncorrected, Set: rule.Device, Notice: true,
		Reads: []rule.Input{{
			Metric: &names.HwErrors, Attribute: names.ErrorType, Values: []string{names.ErrorTypeUncorrected}, Count: true, Most: rule.MostCount,
		}},
		Keys: []rule.Key{repeatAfter},
		Doc:  rule.Doc{Raised: "`hw.errors` with `error.type`=uncorrected rises", Severity: "ERROR", Key: perDevice},
	},
	Severity: plog.SeverityNumberError,
	Sentence: func(by int64, total condition.Counter) string {
		errs := "uncorrected memory errors"
		if by == 1 {
			errs = "uncorrected memory error"
		}
		what := fmt.Sprintf(" counted %d more %s", by, errs)
		if total.Known {
			what += fmt.Sprintf(", %.0f since the driver was loaded", total.Value)
		}
		return what
	},
}
