// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package spool // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/spool"

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
)

// What is stored, as JSON:
//
//	meta     {"version":1,"rows":n,"events":m}: slots are below these
//	gone     {"receiver":"fingerprint"}: receivers that answered 410
//	limits   {"receiver":{…}}: receivers that limit the rate, and until when
//	e/SLOT   an event
//	d/SLOT   a row: one event on its way to one receiver
//	audit    where the chain of the audit log stood at its last checkpoint
//
// There is no URL, header or key in it.

// schemaVersion is raised when what is stored changes its meaning. A higher one
// puts its number before every key, so that it writes over nothing of a lower
// one, takes over what that left, and is not seen by it after a rollback. A
// store of another version under the keys of this one stops the start.
const schemaVersion = 1

const (
	metaKey   = "meta"
	goneKey   = "gone"
	limitsKey = "limits"
)

func eventKey(slot int) string { return "e/" + strconv.Itoa(slot) }
func rowKey(slot int) string   { return "d/" + strconv.Itoa(slot) }

type storedMeta struct {
	Version int `json:"version"`
	Rows    int `json:"rows"`
	Events  int `json:"events"`
}

// storedRow is a part and its delivery's state.
type storedRow struct {
	Number   uint64    `json:"number"`
	Receiver string    `json:"receiver"`
	Event    int       `json:"event"` // its slot
	EventID  string    `json:"event_id"`
	Received time.Time `json:"received"`
	Group    string    `json:"group,omitempty"`
	delivery.State
}

type storedEvent struct {
	Number     uint64              `json:"number"`
	ID         string              `json:"id"`
	Name       string              `json:"name"`
	Key        string              `json:"key,omitempty"`
	State      string              `json:"state,omitempty"`
	Message    string              `json:"message,omitempty"`
	Severity   plog.SeverityNumber `json:"severity"`
	Time       time.Time           `json:"time"`
	TraceID    string              `json:"trace_id,omitempty"`
	Trigger    audit.Trigger       `json:"trigger,omitempty"`
	Attributes map[string]any      `json:"attributes,omitempty"`
	Resource   map[string]any      `json:"resource,omitempty"`
	Truncated  bool                `json:"truncated,omitempty"`
}

func encodeRow(d *delivery.Delivery, p *delivery.Part) ([]byte, error) {
	return json.Marshal(storedRow{
		Number: p.Number, Receiver: d.Endpoint, Event: p.Slot, EventID: p.ID,
		Received: p.Received, Group: d.Group, State: d.State,
	})
}

func decodeRow(text []byte) (r storedRow, err error) {
	if err = json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read a stored delivery: %w", err)
	}
	if r.Receiver == "" || r.Attempts < 0 || r.Event < 0 {
		return r, fmt.Errorf("a stored delivery is incomplete")
	}
	return r, nil
}

func encodeEvent(it *delivery.Item) ([]byte, error) {
	return json.Marshal(storedEvent{
		Number: it.Number, ID: it.ID, Name: it.Name, Key: it.Key, State: it.State, Message: it.Message,
		Severity: it.Severity, Time: it.Time, TraceID: it.TraceID, Trigger: it.Trigger,
		Attributes: storable(it.Attributes).(map[string]any), Resource: storable(it.Resource).(map[string]any), Truncated: it.Truncated,
	})
}

func decodeEvent(text []byte) (*delivery.Item, error) {
	var s storedEvent
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("read a stored event: %w", err)
	}
	if s.ID == "" || s.Name == "" {
		return nil, fmt.Errorf("a stored event is incomplete")
	}
	return &delivery.Item{Number: s.Number, Event: &event.Event{Trigger: s.Trigger, Event: eventrecord.Event{
		ID: s.ID, Name: s.Name, Key: s.Key, State: s.State, Message: s.Message,
		Severity: s.Severity, Time: s.Time, TraceID: s.TraceID,
		Attributes: restored(s.Attributes), Resource: restored(s.Resource), Truncated: s.Truncated,
	}}}, nil
}

// storable writes floats so that they come back as floats: with an exponent,
// which integers never have.
func storable(value any) any {
	switch v := value.(type) {
	case float64:
		return json.Number(strconv.FormatFloat(v, 'e', -1, 64))
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = storable(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = storable(value)
		}
		return out
	default:
		return value
	}
}

func restored(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for key, value := range m {
		out[key] = restoredValue(value)
	}
	return out
}

func restoredValue(value any) any {
	switch v := value.(type) {
	case json.Number:
		if !strings.ContainsAny(string(v), ".eE") {
			if n, err := v.Int64(); err == nil {
				return n
			}
		}
		f, err := v.Float64()
		if err != nil {
			return string(v)
		}
		return f
	case map[string]any:
		return restored(v)
	case []any:
		for i := range v {
			v[i] = restoredValue(v[i])
		}
		return v
	default:
		return value
	}
}
