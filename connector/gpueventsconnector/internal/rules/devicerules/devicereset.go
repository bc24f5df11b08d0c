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

// DeviceReset is gpu.device.reset.
var DeviceReset = Counted{
	Rule: rule.Rule{
		Event: names.EventDeviceReset, Set: rule.Device, Notice: true,
		Reads: []rule.Input{{Metric: &names.GPUDeviceResets, Count: true, Most: rule.MostCount}},
		Keys:  []rule.Key{repeatAfter},
		Doc:   rule.Doc{Raised: "`gpu.device.resets` rises", Severity: "WARN", Key: perDevice},
	},
	Severity: plog.SeverityNumberWarn,
	Sentence: func(by int64, _ condition.Counter) string {
		if by == 1 {
			return " was reset: the work on it has ended"
		}
		return fmt.Sprintf(" was reset %d times: the work on it has ended", by)
	},
}
