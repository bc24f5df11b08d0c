// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter"

import (
	"encoding/json"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// newEvent copies a log record; nil if it is not an event.
func newEvent(record plog.LogRecord, resource pcommon.Resource, now time.Time) *store.Event {
	if eventrecord.Name(record) == "" {
		return nil
	}
	e := eventrecord.Read(record, resource, now)
	if e.State == names.EventAcknowledged {
		e.State = "" // people acknowledge, at the console: no sender does it for them, unseen
	}
	return &store.Event{
		ID: e.ID, Name: e.Name, Key: e.Key, State: e.State, Severity: eventrecord.SeverityName(e.Severity), Message: e.Message,
		Time: e.Time, TraceID: e.TraceID, Attributes: flat(e.Attributes), Resource: flat(e.Resource), Truncated: e.Truncated,
	}
}

// flat keeps texts, numbers, booleans and lists of them, and replaces maps and lists of others
// by their text in JSON.
func flat(attributes map[string]any) map[string]any {
	for name, value := range attributes {
		switch list, isList := value.([]any); {
		case isList && !slices.ContainsFunc(list, nested):
		case isList || nested(value):
			text, _ := json.Marshal(value) // texts, finite numbers and booleans
			attributes[name] = safetext.Strip(string(text), eventrecord.MaxValue)
		}
	}
	return attributes
}

// nested reports whether a value is a map or a list.
func nested(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}
