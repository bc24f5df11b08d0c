// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package servicerules

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/straggler"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Straggler is gpu.straggler. It is about a device, and runs with the rules about
// services because it needs the devices of other nodes.
var Straggler = rule.Rule{
	Event: names.EventStraggler, Set: rule.Service, Reads: straggler.Reads,
	Doc: rule.Doc{
		Raised: "the SM clock of a busy board is 10 % or more below the median of at least 5 peers, and far outside their spread, " +
			"in 10 of 15 minutes, and no reason in `gpu.health` explains it",
		Cleared: "it is less than 5 % below the median for 15 minutes, or the board is no peer any more", Severity: "INFO", Key: "cluster/`hw.id`",
	},
}

// StragglerSpec is the condition of Straggler.
var StragglerSpec = condition.Once(plog.SeverityNumberInfo)

// causes are the causes in a sentence.
var causes = map[straggler.Cause]string{
	straggler.Thermal: "It is throttled for heat for more of the time than they are.",
	straggler.Power:   "It is throttled for power for more of the time than they are.",
	straggler.Link:    "There is a reason against its link.",
	straggler.Clock:   "No other cause is known.",
}

// DescribeStraggler completes an event about a board that is slow, or was.
func DescribeStraggler(b *straggler.Board, ev *event.Event) {
	b.About(ev)
	if ev.Cleared() {
		if b.Compared() {
			b.Describe(ev, " is no longer slower than its peers")
		} else {
			b.Describe(ev, " is no longer compared with the peers that it was slower than")
		}
		return
	}
	b.DescribeWhole(ev, fmt.Sprintf(" is slower than its %d peers in service %s: its SM clock is %.2f GHz, %.0f %% below their median of %.2f GHz. %s",
		b.Peers, event.Clean(b.Facts.Owner.Service), b.Clock/1e9, 100*(1-b.Ratio()), b.Median/1e9, causes[b.Cause]))
	cause, ratio, peers := string(b.Cause), b.Ratio(), int64(b.Peers)
	ev.Add(func(attrs pcommon.Map) {
		attrs.PutStr(names.GPUStragglerCause, cause)
		attrs.PutInt(names.GPUStragglerPeers, peers)
		attrs.PutDouble(names.GPUEventValue, ratio)
		attrs.PutDouble(names.GPUEventThreshold, straggler.LowClock)
	})
}
