// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package format // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

var convox = Format{Name: "convox", Group: 1, new: always(encodeConvox)}

// convoxBody is the payload of Convox, the fields in its order.
type convoxBody struct {
	Action    string            `json:"action"`
	Data      map[string]string `json:"data"`
	Status    string            `json:"status"`
	Timestamp string            `json:"timestamp"`
}

func encodeConvox(events []*event.Event) ([]byte, error) {
	e := events[0]
	data := make(map[string]string, len(e.Attributes)+len(e.Resource)+10)
	// Later ones win: the event's attributes over those of its
	// resource, and the fields that Convox receivers rely on over both.
	for _, m := range []map[string]any{e.Resource, e.Attributes} {
		for key, value := range m {
			text, err := event.PlainText(value)
			if err != nil {
				return nil, err
			}
			data[key] = text
		}
	}
	data["actor"] = "system"
	data["rack"] = "unknown"
	if cluster, ok := e.Resource[names.K8sClusterName].(string); ok && cluster != "" {
		data["rack"] = cluster
	}
	data["id"] = e.ID
	data["key"] = e.Key
	data["state"] = e.State
	data["severity"] = eventrecord.SeverityName(e.Severity)
	data["message"] = e.Message
	if e.TraceID != "" {
		data["trace_id"] = e.TraceID
	}
	if e.Truncated {
		data["truncated"] = "true"
	}
	switch {
	case e.IsTest():
		data["test"] = "true"
	case e.IsReplay():
		data["replay"] = "true"
	}
	return event.JSON(convoxBody{
		Action:    strings.ReplaceAll(event.TypeName(e.Name), ".", ":"),
		Data:      data,
		Status:    convoxStatus(e),
		Timestamp: e.Time.Format(time.RFC3339Nano),
	})
}

// convoxStatus maps onto the two of Convox's four words that fit: a condition
// that people should look at is an error, its end and mere notices a success.
func convoxStatus(e *event.Event) string {
	if e.State != names.EventCleared && e.Severity >= plog.SeverityNumberWarn {
		return "error"
	}
	return "success"
}
