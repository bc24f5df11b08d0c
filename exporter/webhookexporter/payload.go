// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	formatStandard     = "standard"
	formatConvox       = "convox"
	formatSlack        = "slack"
	formatPagerDuty    = "pagerduty"
	formatAlertmanager = "alertmanager"
)

// encoder writes bodies of one format.
type encoder struct {
	// encode writes the body of the request that tells the target of events:
	// one, or at most group of them.
	encode func(*target, []*event) ([]byte, error)
	// group is how many events one request of this format may tell of.
	group int
}

var encoders = map[string]encoder{
	formatStandard:     {encode: encodeStandard, group: 1},
	formatConvox:       {encode: encodeConvox, group: 1},
	formatSlack:        {encode: encodeSlack, group: slackGroup},
	formatPagerDuty:    {encode: encodePagerDuty, group: 1},
	formatAlertmanager: {encode: encodeAlertmanager, group: alertmanagerGroup},
}

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

func encodeStandard(_ *target, events []*event) ([]byte, error) {
	e := events[0]
	return encodeJSON(standardBody{
		Type:      strings.Map(typeRune, e.Name),
		Timestamp: e.Time.Format(time.RFC3339Nano),
		Data:      dataOf(e),
	})
}

func dataOf(e *event) standardData {
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
		Test:       e.isTest(),
		Replay:     e.isReplay(),
	}
}

// typeRune keeps what the type of a Standard Webhook may hold: lower-case
// letters, digits, underscores, and dots between them.
func typeRune(r rune) rune {
	switch {
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
		return r
	default:
		return '_'
	}
}

// convoxBody is the payload of Convox, the fields in its order.
type convoxBody struct {
	Action    string            `json:"action"`
	Data      map[string]string `json:"data"`
	Status    string            `json:"status"`
	Timestamp string            `json:"timestamp"`
}

func encodeConvox(_ *target, events []*event) ([]byte, error) {
	e := events[0]
	data := make(map[string]string, len(e.Attributes)+len(e.Resource)+10)
	// Later ones win: what the event says of itself over what its resource
	// says, and the fields that Convox receivers rely on over both.
	for _, m := range []map[string]any{e.Resource, e.Attributes} {
		for key, value := range m {
			text, err := plainText(value)
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
	case e.isTest():
		data["test"] = "true"
	case e.isReplay():
		data["replay"] = "true"
	}
	return encodeJSON(convoxBody{
		Action:    strings.ReplaceAll(strings.Map(typeRune, e.Name), ".", ":"),
		Data:      data,
		Status:    convoxStatus(e),
		Timestamp: e.Time.Format(time.RFC3339Nano),
	})
}

// convoxStatus maps onto the two of Convox's four words that fit: a condition
// that people should look at is an error, its end and mere notices a success.
func convoxStatus(e *event) string {
	if e.State != names.EventCleared && e.Severity >= plog.SeverityNumberWarn {
		return "error"
	}
	return "success"
}

// plainText writes a copied attribute value as text: texts as they are, lists
// and maps as JSON.
func plainText(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	default:
		b, err := encodeJSON(v)
		return string(b), err
	}
}

// encodeJSON does not escape <, > and &: the body is read as JSON, never as
// HTML, and a receiver that shows texts has to escape them itself in any case.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode payload: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
