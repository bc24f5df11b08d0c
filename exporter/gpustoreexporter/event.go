// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/gpustoreexporter"

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// Limits of what is taken over from one log record, in runes; the last two count
// attributes and bytes of text in all.
const (
	maxName       = 256
	maxKey        = 512
	maxMessage    = 2048
	maxValue      = 1024
	maxAttributes = 128
	maxBytes      = 16 << 10
	valueBytes    = 32 // what a value costs whatever it is
)

// newEvent copies a log record; nil if it is no event. An event without an id
// gets one.
func newEvent(record plog.LogRecord, resource pcommon.Resource, now time.Time) *store.Event {
	name := safetext.Strip(record.EventName(), maxName)
	if name == "" {
		return nil
	}
	e := &store.Event{
		ID:       text(record, names.GPUEventID, maxName),
		Name:     name,
		Key:      text(record, names.GPUEventKey, maxKey),
		State:    text(record, names.GPUEventState, maxName),
		Severity: severity(record),
		Time:     now.UTC(),
	}
	if e.State == names.EventAcknowledged {
		e.State = "" // people acknowledge, at the console: no sender does it for them, unseen
	}
	if e.ID == "" {
		e.ID = uuid.Must(uuid.NewV7()).String()
	}
	switch {
	case record.Timestamp() != 0:
		e.Time = record.Timestamp().AsTime()
	case record.ObservedTimestamp() != 0:
		e.Time = record.ObservedTimestamp().AsTime()
	}
	// What JSON cannot say would cost the event.
	if year := e.Time.Year(); year < 1 || year > 9999 {
		e.Time = now.UTC()
	}
	if id := record.TraceID(); !id.IsEmpty() {
		e.TraceID = id.String()
	}
	if record.Body().Type() == pcommon.ValueTypeStr {
		e.Message = safetext.Strip(record.Body().Str(), maxMessage)
	}
	c := copier{left: maxBytes}
	// The resource comes first: what an event is about matters more than the
	// last of its details.
	e.Resource = c.attributes(resource.Attributes())
	e.Attributes = c.attributes(record.Attributes(), names.GPUEventID, names.GPUEventKey, names.GPUEventState)
	e.Truncated = c.truncated
	return e
}

func text(record plog.LogRecord, name string, limit int) string {
	v, ok := record.Attributes().Get(name)
	if !ok || v.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return safetext.Strip(v.Str(), limit)
}

// severity returns the name of the record's range of severities; a record that
// states none is info.
func severity(record plog.LogRecord) string {
	ranges := []string{"trace", "debug", "info", "warn", "error", "fatal"}
	if n := record.SeverityNumber(); n > plog.SeverityNumberUnspecified && n <= plog.SeverityNumberFatal4 {
		return ranges[(n-1)/4]
	}
	switch stated := strings.ToLower(safetext.Strip(record.SeverityText(), 8)); {
	case stated == "warning":
		return "warn"
	case slices.Contains(ranges, stated):
		return stated
	default:
		return "info"
	}
}

// copier copies attributes within the limits of one event.
type copier struct {
	left      int
	truncated bool
}

func (c *copier) attributes(from pcommon.Map, without ...string) map[string]any {
	out := make(map[string]any, min(from.Len(), maxAttributes))
	for key, v := range from.All() {
		if slices.Contains(without, key) {
			continue
		}
		key = safetext.Strip(key, maxName)
		value := c.value(v)
		size := len(key) + valueBytes
		if s, ok := value.(string); ok {
			size += len(s)
		}
		if len(out) == maxAttributes || size > c.left {
			c.truncated = true
			break
		}
		c.left -= size
		out[key] = value
	}
	return out
}

// value returns a text, number or boolean. Lists and maps become their text in
// JSON: nothing of ours has any.
func (c *copier) value(v pcommon.Value) any {
	switch v.Type() {
	case pcommon.ValueTypeBool:
		return v.Bool()
	case pcommon.ValueTypeInt:
		return v.Int()
	case pcommon.ValueTypeDouble:
		f := v.Double()
		if math.IsNaN(f) || math.IsInf(f, 0) { // JSON has no number for these
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
		return f
	case pcommon.ValueTypeStr:
		return safetext.Strip(v.Str(), maxValue)
	case pcommon.ValueTypeMap, pcommon.ValueTypeSlice, pcommon.ValueTypeBytes:
		return safetext.Strip(v.AsString(), maxValue)
	default:
		return nil
	}
}
