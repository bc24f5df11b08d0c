// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// Limits of what is taken over from one log record. Text is counted in runes,
// the total in bytes of text before encoding and valueBytes for each value, so
// that many empty ones have their price too.
const (
	maxName       = 256
	maxKey        = 512
	maxMessage    = 2048
	maxValue      = 1024
	maxEntries    = 128 // of one attribute map or list
	maxDepth      = 4
	maxEventBytes = 16 << 10
	valueBytes    = 32
)

// event is what is taken over from a log record: copied, with texts made safe
// and everything bounded. It is shared by the deliveries to all receivers and
// never changed.
type event struct {
	id       string
	name     string
	key      string
	state    string
	message  string
	severity plog.SeverityNumber
	time     time.Time
	traceID  string
	trigger  audit.Trigger // what it is sent for, if not because it happened

	attributes map[string]any
	resource   map[string]any
	// truncated is true if an attribute was left out because of a limit.
	truncated bool
}

// eventName returns the record's event name, empty if it is not an event.
func eventName(record plog.LogRecord) string {
	return safetext.Strip(record.EventName(), maxName)
}

// severityOf returns the record's severity. A record that states only a text
// is taken at its word; one that states nothing is info.
func severityOf(record plog.LogRecord) plog.SeverityNumber {
	if n := record.SeverityNumber(); n > plog.SeverityNumberUnspecified && n <= plog.SeverityNumberFatal4 {
		return n
	}
	if n := severities[strings.ToLower(safetext.Strip(record.SeverityText(), 8))]; n != plog.SeverityNumberUnspecified {
		return n
	}
	return plog.SeverityNumberInfo
}

// severityName returns the name of the severity's range, as in min_severity.
func severityName(n plog.SeverityNumber) string {
	switch {
	case n >= plog.SeverityNumberFatal:
		return "fatal"
	case n >= plog.SeverityNumberError:
		return "error"
	case n >= plog.SeverityNumberWarn:
		return "warn"
	case n >= plog.SeverityNumberInfo:
		return "info"
	case n >= plog.SeverityNumberDebug:
		return "debug"
	default:
		return "trace"
	}
}

// textAttribute returns a text attribute of the record, made safe.
func textAttribute(record plog.LogRecord, name string, limit int) string {
	v, ok := record.Attributes().Get(name)
	if !ok || v.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return safetext.Strip(v.Str(), limit)
}

// newEvent copies the record. The time is the event's own, then when it was
// observed, then now. newID is called if the event has no id of its own.
func newEvent(record plog.LogRecord, resource pcommon.Resource, now time.Time, newID func() string) *event {
	e := &event{
		id:       textAttribute(record, names.GPUEventID, maxName),
		name:     eventName(record),
		key:      textAttribute(record, names.GPUEventKey, maxKey),
		state:    textAttribute(record, names.GPUEventState, maxName),
		severity: severityOf(record),
		time:     now.UTC(),
	}
	if e.id == "" {
		e.id = newID()
	}
	switch {
	case record.Timestamp() != 0:
		e.time = record.Timestamp().AsTime()
	case record.ObservedTimestamp() != 0:
		e.time = record.ObservedTimestamp().AsTime()
	}
	if id := record.TraceID(); !id.IsEmpty() {
		e.traceID = id.String()
	}
	if record.Body().Type() == pcommon.ValueTypeStr {
		e.message = safetext.Strip(record.Body().Str(), maxMessage)
	}
	c := copier{left: maxEventBytes}
	// The resource comes first: what an event is about matters more than the
	// last of its details.
	e.resource = c.object(resource.Attributes(), 1)
	e.attributes = c.object(record.Attributes(), 1, names.GPUEventID, names.GPUEventKey, names.GPUEventState)
	e.truncated = c.truncated
	return e
}

// copier turns attribute values into values that encoding/json knows, within
// the limits of one event.
type copier struct {
	left      int // bytes that may still be taken
	truncated bool
}

// take reports whether n more bytes fit.
func (c *copier) take(n int) bool {
	if n > c.left {
		c.truncated = true
		return false
	}
	c.left -= n
	return true
}

func (c *copier) object(m pcommon.Map, depth int, without ...string) map[string]any {
	out := make(map[string]any, min(m.Len(), maxEntries))
	for key, value := range m.All() {
		if slices.Contains(without, key) {
			continue
		}
		if len(out) == maxEntries {
			c.truncated = true
			break
		}
		key = safetext.Strip(key, maxName)
		if !c.take(len(key) + valueBytes) {
			break
		}
		if v, ok := c.value(value, depth); ok {
			out[key] = v
		}
	}
	return out
}

func (c *copier) value(v pcommon.Value, depth int) (any, bool) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return c.text(safetext.Strip(v.Str(), maxValue))
	case pcommon.ValueTypeBool:
		return v.Bool(), true
	case pcommon.ValueTypeInt:
		return v.Int(), true
	case pcommon.ValueTypeDouble:
		f := v.Double()
		if math.IsNaN(f) || math.IsInf(f, 0) { // JSON has no number for these
			return c.text(strconv.FormatFloat(f, 'g', -1, 64))
		}
		return f, true
	case pcommon.ValueTypeBytes:
		b := v.Bytes().AsRaw()
		if len(b) > maxValue { // base64 has no room for an ellipsis
			b, c.truncated = b[:maxValue], true
		}
		return c.text(base64.StdEncoding.EncodeToString(b))
	case pcommon.ValueTypeMap:
		if depth == maxDepth {
			c.truncated = true
			return nil, false
		}
		return c.object(v.Map(), depth+1), true
	case pcommon.ValueTypeSlice:
		if depth == maxDepth {
			c.truncated = true
			return nil, false
		}
		return c.list(v.Slice(), depth+1), true
	default:
		return nil, true
	}
}

func (c *copier) text(s string) (any, bool) {
	return s, c.take(len(s))
}

func (c *copier) list(s pcommon.Slice, depth int) []any {
	out := make([]any, 0, min(s.Len(), maxEntries))
	for _, value := range s.All() {
		if len(out) == maxEntries {
			c.truncated = true
			break
		}
		if !c.take(valueBytes) {
			break
		}
		if v, ok := c.value(value, depth); ok {
			out = append(out, v)
		}
	}
	return out
}
