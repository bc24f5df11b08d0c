// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/board"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Health is gpu.health: every change of the state of a board, or of its reasons.
var Health = rule.Rule{
	Event: names.EventHealth, Set: rule.Device, Reads: healthReads(), Off: true,
	Doc: rule.Doc{
		Raised:   "the board is degraded, predicted to fail or failed, and again at every change of its state, its reasons or its action",
		Cleared:  "no reason is left",
		Severity: "WARN; ERROR if it failed", Key: perDevice,
	},
}

func healthReads() (all []rule.Input) {
	for _, r := range board.Reasons {
		all = append(all, r.Reads...)
	}
	all = append(all, board.Counters[:]...)
	all = append(all, rule.Input{Metric: &names.GPUNodeInfo})
	return append(all, XID.Reads...)
}

// HealthSpec has a level for each state but ok.
var HealthSpec = condition.Spec{Levels: []condition.Level{
	{Severity: plog.SeverityNumberWarn}, {Severity: plog.SeverityNumberWarn}, {Severity: plog.SeverityNumberError},
}}

// stateWords are the states in a sentence.
var stateWords = map[health.State]string{
	health.OK: "well again", health.Degraded: "degraded", health.PredictedFailure: "predicted to fail", health.Failed: "failed",
}

// DescribeHealth completes an event about the health of a board.
func DescribeHealth(d *subject.Device, v *board.Verdict, ev *event.Event) {
	d.About(ev)
	reasons := make([]string, len(v.Reasons))
	for i := range v.Reasons {
		reasons[i] = v.Reasons[i].Reason.Name
	}
	what := " is " + stateWords[v.State]
	if len(reasons) > 0 {
		what += " (" + strings.Join(reasons, ", ") + "). " + advice(v, d.Facts.Owner.Pod != "")
		d.DescribeWhole(ev, what)
	} else {
		d.Describe(ev, what)
	}
	verdict := *v
	ev.Add(func(attrs pcommon.Map) {
		attrs.PutStr(names.HwState, verdict.State.String())
		event.PutList(attrs, names.GPUHealthReasons, reasons)
		attrs.PutStr(names.GPUHealthAction, verdict.Action.String())
		if verdict.Applicable > 0 {
			attrs.PutDouble(names.GPUHealthCoverage.Name, float64(verdict.WithData)/float64(verdict.Applicable))
		}
	})
}

// advice is the action in words. A board that works keeps its work: what ends that waits
// until the board is free.
func advice(v *board.Verdict, owned bool) string {
	s := v.Action.Sentence()
	if owned && v.State != health.Failed && v.Action.NeedsFreeBoard() {
		return strings.TrimSuffix(s, ".") + ", when it is free."
	}
	return s
}
