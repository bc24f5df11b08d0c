// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package format // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
)

var standard = Format{Name: "standard", Group: 1, new: always(encodeStandard)}

// standardBody is the payload that Standard Webhooks 1.0.0 recommends.
type standardBody struct {
	Type      string       `json:"type"`
	Timestamp string       `json:"timestamp"`
	Data      standardData `json:"data"`
}

type standardData struct {
	ID         string         `json:"id"`
	Key        string         `json:"key"`
	State      string         `json:"state"`
	Severity   string         `json:"severity"`
	Message    string         `json:"message"`
	Attributes map[string]any `json:"attributes"`
	Resource   map[string]any `json:"resource"`
	TraceID    string         `json:"trace_id,omitempty"`
	Truncated  bool           `json:"truncated,omitempty"`
	Test       bool           `json:"test,omitempty"`
	Replay     bool           `json:"replay,omitempty"`
}

func encodeStandard(events []*event.Event) ([]byte, error) {
	e := events[0]
	return event.JSON(standardBody{
		Type:      event.TypeName(e.Name),
		Timestamp: e.Time.Format(time.RFC3339Nano),
		Data:      dataOf(e),
	})
}

func dataOf(e *event.Event) standardData {
	return standardData{
		ID:         e.ID,
		Key:        e.Key,
		State:      e.State,
		Severity:   eventrecord.SeverityName(e.Severity),
		Message:    e.Message,
		Attributes: e.Attributes,
		Resource:   e.Resource,
		TraceID:    e.TraceID,
		Truncated:  e.Truncated,
		Test:       e.IsTest(),
		Replay:     e.IsReplay(),
	}
}
