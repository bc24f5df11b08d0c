// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package appguardprocessor // import "github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor"

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-gpu/otelcol-gpu/internal/reserved"
	"github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor/internal/guard"
)

type logsProcessor struct {
	*base
	next consumer.Logs
}

// ConsumeLogs passes on what applications may send.
func (p *logsProcessor) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	b := p.begin(ctx)
	p.mu.Lock()
	b.logs(ld)
	p.mu.Unlock()
	return b.pass(ctx, p.telemetry.AppGuardDroppedLogRecords, "log records", ld.ResourceLogs().Len(), func() error { return p.next.ConsumeLogs(ctx, ld) })
}

func (b *batch) logs(ld plog.Logs) {
	ld.ResourceLogs().RemoveIf(func(rl plog.ResourceLogs) bool {
		name, sender := b.from(rl.Resource().Attributes())
		b.rename(rl.Resource().Attributes(), reserved.RecordResourceAttribute)
		rl.ScopeLogs().RemoveIf(func(sl plog.ScopeLogs) bool {
			b.rename(sl.Scope().Attributes(), reserved.RecordAttribute)
			sl.LogRecords().RemoveIf(func(record plog.LogRecord) bool {
				verdict := notTheirs
				if !reserved.Event(record) {
					verdict = sender.Item()
				}
				if verdict != guard.Admitted {
					b.drop(name, verdict, 1, record.EventName())
					return true
				}
				b.rename(record.Attributes(), reserved.RecordAttribute)
				return false
			})
			return sl.LogRecords().Len() == 0
		})
		return rl.ScopeLogs().Len() == 0
	})
}

type tracesProcessor struct {
	*base
	next consumer.Traces
}

// ConsumeTraces passes on what applications may send.
func (p *tracesProcessor) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	b := p.begin(ctx)
	p.mu.Lock()
	b.traces(td)
	p.mu.Unlock()
	return b.pass(ctx, p.telemetry.AppGuardDroppedSpans, "spans", td.ResourceSpans().Len(), func() error { return p.next.ConsumeTraces(ctx, td) })
}

func (b *batch) traces(td ptrace.Traces) {
	td.ResourceSpans().RemoveIf(func(rs ptrace.ResourceSpans) bool {
		name, sender := b.from(rs.Resource().Attributes())
		b.rename(rs.Resource().Attributes(), reserved.RecordResourceAttribute)
		rs.ScopeSpans().RemoveIf(func(ss ptrace.ScopeSpans) bool {
			b.rename(ss.Scope().Attributes(), reserved.RecordAttribute)
			ss.Spans().RemoveIf(func(span ptrace.Span) bool {
				verdict := sender.Item()
				if verdict != guard.Admitted {
					b.drop(name, verdict, 1, span.Name())
					return true
				}
				b.rename(span.Attributes(), reserved.RecordAttribute)
				return false
			})
			return ss.Spans().Len() == 0
		})
		return rs.ScopeSpans().Len() == 0
	})
}
