// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicerules

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/condition"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/subject"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// ExporterDown is gpu.exporter.down.
var ExporterDown = rule.Rule{
	Event: names.EventExporterDown, Set: rule.Device,
	Reads: []rule.Input{{Metric: &names.ExporterUp}, {Metric: &names.ExporterFrozen}, {Metric: &names.ExporterUnrecognized}},
	Keys:  []rule.Key{rule.Duration("for", time.Minute, 0, rule.MaxFor)},
	Doc: rule.Doc{
		Raised:  "`gpu.exporter.up` is 0, or `gpu.exporter.frozen` or `gpu.exporter.unrecognized` is 1, `for` 1m",
		Cleared: "it is up, and `gpu.exporter.frozen` and `gpu.exporter.unrecognized` are 0 where they were 1", Severity: "WARN",
		Key: "cluster/node/port; without a node cluster//address:port",
	},
}

// ExporterDownSpec is the condition of ExporterDown.
func ExporterDownSpec(s rule.Settings) condition.Spec {
	return condition.Spec{Levels: []condition.Level{{For: s.Duration("for"), Severity: plog.SeverityNumberWarn}}}
}

// JudgeExporter judges one scrape: whether there was a point about it, whether it failed
// or its values stand still or its fields are not known, and whether they may stand still without a point that
// states it.
func JudgeExporter(scraped, down, maybeFrozen bool) condition.Verdict {
	if !scraped || !down && maybeFrozen {
		return condition.Verdict{}
	}
	return condition.Holds(down)
}

// DescribeExporter completes an event about an exporter; reason is a value of
// gpu.exporter.reason.
func DescribeExporter(x subject.Exporter, reason string, ev *event.Event) {
	x.About(ev)
	switch {
	case ev.Cleared():
		ev.Body = x.String() + " answers again."
		return
	case reason == names.ExporterReasonDown:
		ev.Body = x.String() + " does not answer: nothing is known about its GPUs."
	case reason == names.ExporterReasonUnrecognized:
		ev.Body = x.String() + " answers with fields that are not known: none of its page has the utilization, memory or power of a GPU. Its version may be newer than that of otelcol-gpu."
	default:
		ev.Body = x.String() + " answers with values that stand still: what it reads its GPUs with hangs (of dcgm-exporter: the host engine)."
	}
	ev.Add(func(attrs pcommon.Map) { attrs.PutStr(names.GPUExporterReason, reason) })
}
