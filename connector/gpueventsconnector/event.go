// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"github.com/google/uuid"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// event is one event before it becomes a log record.
type event struct {
	name     string
	state    string // raised or cleared
	key      string
	at       pcommon.Timestamp
	severity plog.SeverityNumber
	body     string
	resource func(pcommon.Map) // the subject
	detail   func(pcommon.Map)
}

// write adds e to logs, under a resource of its own.
func (e *event) write(logs plog.Logs, observed pcommon.Timestamp, scope, version string) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	rl := logs.ResourceLogs().AppendEmpty()
	e.resource(rl.Resource().Attributes())
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(scope)
	sl.Scope().SetVersion(version)

	r := sl.LogRecords().AppendEmpty()
	r.SetEventName(e.name)
	r.SetTimestamp(e.at)
	if e.at == 0 {
		r.SetTimestamp(observed)
	}
	r.SetObservedTimestamp(observed)
	r.SetSeverityNumber(e.severity)
	r.SetSeverityText(severityText(e.severity))
	r.Body().SetStr(e.body)
	r.Attributes().PutStr(names.GPUEventID, id.String())
	r.Attributes().PutStr(names.GPUEventKey, e.key)
	r.Attributes().PutStr(names.GPUEventState, e.state)
	e.detail(r.Attributes())
	return nil
}

func severityText(n plog.SeverityNumber) string {
	switch {
	case n >= plog.SeverityNumberError:
		return "ERROR"
	case n >= plog.SeverityNumberWarn:
		return "WARN"
	}
	return "INFO"
}
