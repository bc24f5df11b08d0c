// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"fmt"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/board"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Health is gpu.health: every change of the state of a board, or of its reasons.
var Health = rule.Rule{
	Event: names.EventHealth, Set: rule.Device, Reads: healthReads(),
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
	all = append(all, board.Resets[:]...)
	all = append(all, rule.Input{Metric: &names.GPUNodeInfo})
	all = append(all, ExporterDown.Reads...)
	all = append(all, RASErrors.Reads...)
	return append(all, XID.Reads...)
}

// HealthSpec has a level for each state but ok.
var HealthSpec = condition.Spec{Levels: []condition.Level{
	{Severity: plog.SeverityNumberWarn}, {Severity: plog.SeverityNumberWarn}, {Severity: plog.SeverityNumberError},
}}

// NodeHealthSpec is the condition of a node with fewer boards than expected.
var NodeHealthSpec = condition.Once(plog.SeverityNumberError)

// Count is the reason of such a node.
const Count = "count"

// DescribeNodeHealth completes an event about the boards that a node has, and those that
// a machine of its type should have.
func DescribeNodeHealth(n subject.Node, have, want int, hostType string, ev *event.Event) {
	n.About(ev)
	if ev.Cleared() {
		ev.Body = fmt.Sprintf("%s has %d GPUs again.", n, have)
		if want == 0 {
			ev.Body = fmt.Sprintf("%s has %d GPUs, and no number is expected any more.", n, have)
		}
		ev.Add(func(attrs pcommon.Map) {
			attrs.PutStr(names.HwState, health.OK.String())
			attrs.PutStr(names.GPUHealthAction, health.None.String())
		})
		return
	}
	cause := fmt.Sprintf("%d of %d GPUs of %s are there.", have, want, event.Clean(hostType))
	ev.Body = fmt.Sprintf("%s is failed (%s): %s %s", n, Count, cause, health.CheckMechanics.Sentence())
	ev.Add(func(attrs pcommon.Map) {
		attrs.PutStr(names.HwState, health.Failed.String())
		event.PutList(attrs, names.GPUHealthReasons, []string{Count})
		event.PutList(attrs, names.GPUHealthCauses, []string{cause})
		attrs.PutEmptySlice(names.GPUHealthValues).AppendEmpty().SetDouble(float64(have))
		attrs.PutEmptySlice(names.GPUHealthThresholds).AppendEmpty().SetDouble(float64(want))
		attrs.PutDouble(names.GPUEventValue, float64(have))
		attrs.PutDouble(names.GPUEventThreshold, float64(want))
		attrs.PutStr(names.GPUHealthAction, health.CheckMechanics.String())
	})
}

// stateWords are the states in a sentence.
var stateWords = map[health.State]string{
	health.OK: "well again", health.Degraded: "degraded", health.PredictedFailure: "predicted to fail", health.Failed: "failed",
}

// DescribeHealth completes an event about the health of a board.
func DescribeHealth(d *subject.Device, v *board.Verdict, ev *event.Event) {
	d.About(ev)
	reasons, causes := make([]string, len(v.Reasons)), make([]string, len(v.Reasons))
	for i := range v.Reasons {
		reasons[i], causes[i] = v.Reasons[i].Reason.Name, v.Reasons[i].Sentence()+"."
	}
	what := " is " + stateWords[v.State]
	if !v.Known {
		what = " has no reason against its health any more, and nothing is read that decides that it is well"
	}
	if len(reasons) > 0 {
		what += " (" + strings.Join(reasons, ", ") + "). " + advice(v, d)
		d.DescribeWhole(ev, what)
	} else {
		d.Describe(ev, what)
	}
	verdict := *v
	ev.Add(func(attrs pcommon.Map) {
		if verdict.Known {
			attrs.PutStr(names.HwState, verdict.State.String())
		}
		event.PutList(attrs, names.GPUHealthReasons, reasons)
		event.PutList(attrs, names.GPUHealthCauses, causes)
		putFigures(attrs, verdict.Reasons)
		attrs.PutStr(names.GPUHealthAction, verdict.Action.String())
		if verdict.Applicable > 0 {
			attrs.PutDouble(names.GPUHealthCoverage.Name, float64(verdict.WithData)/float64(verdict.Applicable))
		}
	})
}

// putFigures writes what was read for each reason and what that is compared with, and the
// figures of the worst reason that has some once more, where every event has them.
func putFigures(attrs pcommon.Map, reasons []board.Active) {
	if len(reasons) == 0 {
		return
	}
	values, thresholds := attrs.PutEmptySlice(names.GPUHealthValues), attrs.PutEmptySlice(names.GPUHealthThresholds)
	first := true
	for i := range reasons {
		a := &reasons[i]
		value, threshold := values.AppendEmpty(), thresholds.AppendEmpty()
		if a.Threshold == 0 || math.IsNaN(a.Value) {
			continue // nothing is compared
		}
		value.SetDouble(a.Value)
		threshold.SetDouble(a.Threshold)
		if first {
			attrs.PutDouble(names.GPUEventValue, a.Value)
			attrs.PutDouble(names.GPUEventThreshold, a.Threshold)
			first = false
		}
	}
}

// advice is the action in words. A board that works keeps its work: what ends that waits
// until the board is free.
func advice(v *board.Verdict, d *subject.Device) string {
	s := v.Action.Sentence()
	if d.Other() && v.Action == health.ContactSupport {
		s = "Collect the kernel log and contact the vendor's support."
	}
	const free = "when it is free."
	if d.Facts.Owner.Owned() && !strings.HasSuffix(s, free) && v.State != health.Failed && v.Action.NeedsFreeBoard() {
		return strings.TrimSuffix(s, ".") + ", " + free
	}
	return s
}
