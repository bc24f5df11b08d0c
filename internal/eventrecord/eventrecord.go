// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package eventrecord reads events from OTLP log records. An event is a log
// record with an event name.
package eventrecord

import (
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// Limits of one event. Text is counted in runes, the total in bytes of text
// before encoding and ValueBytes for each value, so that many empty values have
// their price too.
const (
	MaxName       = 256
	MaxKey        = 512
	MaxMessage    = 2048
	MaxValue      = 1024
	MaxEntries    = 128 // of one attribute map or list
	MaxDepth      = 4
	MaxEventBytes = 16 << 10
	ValueBytes    = 32
)

// Event is a copy of a log record: bounded, and with texts that are safe to show.
type Event struct {
	ID       string
	Name     string
	Key      string
	State    string
	Message  string
	Severity plog.SeverityNumber
	// Time is in UTC, and within the years that JSON can write.
	Time    time.Time
	TraceID string // hexadecimal; empty without a trace
	// Attributes are those of the record, except for the id, the key and the
	// state. A value is nil, a string, bool, int64 or float64, or a map[string]any
	// or []any of these.
	Attributes map[string]any
	Resource   map[string]any
	// Truncated is true if an attribute was left out because of a limit.
	Truncated bool
}

// Name returns the record's event name, empty if the record is not an event.
func Name(record plog.LogRecord) string { return safetext.Strip(record.EventName(), MaxName) }

// ID returns the id that the sender gave the event, empty if it gave none.
func ID(record plog.LogRecord) string { return text(record, names.GPUEventID, MaxName) }

// Key returns the event's key, empty if it has none.
func Key(record plog.LogRecord) string { return text(record, names.GPUEventKey, MaxKey) }

// State returns the event's state, empty if it has none.
func State(record plog.LogRecord) string { return text(record, names.GPUEventState, MaxName) }

// text returns a text attribute of the record, made safe.
func text(record plog.LogRecord, name string, limit int) string {
	v, ok := record.Attributes().Get(name)
	if !ok || v.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return safetext.Strip(v.Str(), limit)
}

// Read copies the record. An event without an id gets a new one. The time is the
// event's own, else when it was observed, else now.
func Read(record plog.LogRecord, resource pcommon.Resource, now time.Time) Event {
	e := Event{
		ID:       ID(record),
		Name:     Name(record),
		Key:      Key(record),
		State:    State(record),
		Severity: Severity(record),
		Time:     now.UTC(),
	}
	if e.ID == "" {
		e.ID = NewID()
	}
	switch {
	case record.Timestamp() != 0:
		e.Time = record.Timestamp().AsTime()
	case record.ObservedTimestamp() != 0:
		e.Time = record.ObservedTimestamp().AsTime()
	}
	if id := record.TraceID(); !id.IsEmpty() {
		e.TraceID = id.String()
	}
	if record.Body().Type() == pcommon.ValueTypeStr {
		e.Message = safetext.Strip(record.Body().Str(), MaxMessage)
	}
	c := copier{left: MaxEventBytes}
	// The resource comes first: what an event is about matters more than the
	// last of its details.
	e.Resource = c.object(resource.Attributes(), 1)
	e.Attributes = c.object(record.Attributes(), 1, names.GPUEventID, names.GPUEventKey, names.GPUEventState)
	e.Truncated = c.truncated
	return e
}

// NewID returns an id for an event that has none: a UUIDv7.
func NewID() string {
	return uuid.Must(uuid.NewV7()).String() // fails only without a source of randomness
}

// severities are the names of the ranges of severities, in rising order.
var severities = []string{"trace", "debug", "info", "warn", "error", "fatal"}

// Severity returns the record's severity. A record without a severity number has
// the one that its severity text names; without either it is info.
func Severity(record plog.LogRecord) plog.SeverityNumber {
	if n := record.SeverityNumber(); n > plog.SeverityNumberUnspecified && n <= plog.SeverityNumberFatal4 {
		return n
	}
	stated := strings.ToLower(safetext.Strip(record.SeverityText(), 8))
	if stated == "warning" {
		return plog.SeverityNumberWarn
	}
	if n, ok := ParseSeverity(stated); ok {
		return n
	}
	return plog.SeverityNumberInfo
}

// ParseSeverity returns the lowest severity of the range of that name: trace,
// debug, info, warn, error or fatal.
func ParseSeverity(name string) (plog.SeverityNumber, bool) {
	for i, s := range severities {
		if s == name {
			return plog.SeverityNumber(1 + 4*i), true
		}
	}
	return plog.SeverityNumberUnspecified, false
}

// SeverityName returns the name of the range that the severity is in.
func SeverityName(n plog.SeverityNumber) string {
	return severities[(min(max(n, plog.SeverityNumberTrace), plog.SeverityNumberFatal4)-1)/4]
}
