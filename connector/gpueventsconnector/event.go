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
	id       string // made when it is first handed on
	name     string
	state    string // raised or cleared
	key      string
	at       pcommon.Timestamp
	severity plog.SeverityNumber
	body     string
	level    uint8             // of the condition
	why      string            // it ended without being said to be over: gone, unheard
	resource func(pcommon.Map) // the subject
	details  []func(pcommon.Map)
}

// write adds e to logs, under a resource of its own.
func (e *event) write(logs plog.Logs, observed pcommon.Timestamp, scope, version string) error {
	if e.id == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		e.id = id.String()
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
	r.Attributes().PutStr(names.GPUEventID, e.id)
	r.Attributes().PutStr(names.GPUEventKey, e.key)
	r.Attributes().PutStr(names.GPUEventState, e.state)
	for _, put := range e.details {
		put(r.Attributes())
	}
	return nil
}

func severityText(n plog.SeverityNumber) string {
	switch {
	case n >= plog.SeverityNumberFatal:
		return "FATAL"
	case n >= plog.SeverityNumberError:
		return "ERROR"
	case n >= plog.SeverityNumberWarn:
		return "WARN"
	}
	return "INFO"
}
