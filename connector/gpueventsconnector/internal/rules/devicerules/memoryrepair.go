// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// causes are the values of error.type of pages and rows that were replaced; empty: without
// the attribute.
var causes = []string{"corrected", names.ErrorTypeUncorrected, ""}

// The readings of MemoryRepair: of each cause the pages or rows, and by how many they rose.
const (
	retiredPages = 0
	pendingFlags = 12
	failedFlags  = 14
	repairs      = 15
)

// MemoryRepair is gpu.memory.repair, about boards of other vendors than NVIDIA: of theirs
// gpu.row_remap.pending and gpu.row_remap.failure report the same.
var MemoryRepair = Rule{
	Rule: rule.Rule{
		Event: names.EventMemoryRepair, Set: rule.Device,
		Reads: []rule.Input{
			{Metric: &names.GPURetiredPages, Attribute: names.ErrorType, Values: causes, Rise: true, Most: rule.MostCount},
			{Metric: &names.GPURemappedRows, Attribute: names.ErrorType, Values: causes, Rise: true, Most: rule.MostCount},
			{Metric: &names.GPURetiredPending, Flag: true}, {Metric: &names.GPURemappedRowsPending, Flag: true},
			{Metric: &names.GPURetiredFailure, Flag: true},
		},
		Keys: []rule.Key{rule.Duration("clear_for", fiveMinutes, 0, rule.MaxFor)},
		Doc: rule.Doc{
			Raised: "on a board that is not NVIDIA's: replaced: `gpu.memory.retired_pages` or `gpu.memory.remapped_rows` rises; " +
				"pending: `gpu.memory.retired_pages.pending` or `gpu.memory.remapped_rows.pending` is 1; failed: `gpu.memory.retired_pages.failure` is 1",
			Cleared:  "replaced: they did not rise `clear_for` 5m; pending, failed: it is 0",
			Severity: "replaced INFO, pending WARN, failed ERROR", Key: perDevice + "/replaced, pending or failed",
			Chart: "Memory of AMD and Gaudi boards.",
		},
	},
	Conditions: func(s rule.Settings) []Condition {
		replaced := repair(names.RepairReplaced, plog.SeverityNumberInfo, rowsReplaced, "", "")
		replaced.ClearFor = s.Duration("clear_for")
		replaced.Describe = func(d *subject.Device, r Readings, ev *event.Event) {
			what := " has replaced no further memory page or row"
			if !ev.Cleared() {
				by, all, _ := replacedOf(r)
				what = fmt.Sprintf(" replaced %.0f faulty memory pages or rows, %.0f in all: no work is lost by that", by, all)
				ev.Add(func(attrs pcommon.Map) {
					attrs.PutDouble(names.GPUEventValue, all)
					attrs.PutInt(names.GPUEventOccurrences, int64(by))
				})
			}
			d.Describe(ev, what)
			ev.Add(func(attrs pcommon.Map) { attrs.PutStr(names.GPURepairState, names.RepairReplaced) })
		}
		return []Condition{
			replaced,
			repair(names.RepairPending, plog.SeverityNumberWarn, flags(pendingFlags, failedFlags),
				"has faulty memory that waits for a reset to be replaced: reset it when it is free", "has no faulty memory left that waits for a reset to be replaced"),
			repair(names.RepairFailed, plog.SeverityNumberError, flags(failedFlags, repairs),
				"could not replace faulty memory: the board has to be replaced", "no longer reports that replacing faulty memory failed"),
		}
	},
}

// repair is a part of MemoryRepair, with what completes the sentence that begins with the
// device.
func repair(part string, severity plog.SeverityNumber, judge func(Readings) condition.Verdict, on, off string) Condition {
	return Condition{
		Spec: condition.Once(severity), Part: part,
		Judge: func(d *subject.Device, r Readings) condition.Verdict {
			if !d.Other() {
				return condition.Verdict{}
			}
			return judge(r)
		},
		Describe: func(d *subject.Device, _ Readings, ev *event.Event) {
			if ev.Cleared() {
				d.Describe(ev, " "+off)
			} else {
				d.Describe(ev, " "+on)
			}
			ev.Add(func(attrs pcommon.Map) { attrs.PutStr(names.GPURepairState, part) })
		},
	}
}

// replacedOf is how many pages or rows were replaced since the last page, and in all.
func replacedOf(r Readings) (by, all float64, known bool) {
	for i := retiredPages; i < pendingFlags; i += 2 {
		if n := r.At(i); n >= 0 {
			by, all, known = by+r.At(i+1), all+n, true
		}
	}
	return by, all, known
}

func rowsReplaced(r Readings) condition.Verdict {
	by, _, known := replacedOf(r)
	if !known {
		return condition.Verdict{}
	}
	return condition.Holds(by > 0)
}

// flags judges the readings from a place up to another one: any of them that is 1 holds.
func flags(from, to int) func(Readings) condition.Verdict {
	return func(r Readings) (v condition.Verdict) {
		for i := from; i < to; i++ {
			switch value := r.At(i); {
			case value > 0:
				return condition.Holds(true)
			case value == 0:
				v = condition.Holds(false)
			}
		}
		return v
	}
}
