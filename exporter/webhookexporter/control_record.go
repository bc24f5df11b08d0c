// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// controlRecord is an audit record as the control endpoint tells it. Its names
// are those of the audit log. Like the record itself it holds nothing secret.
type controlRecord struct {
	ID                string         `json:"id"`
	Time              time.Time      `json:"time"`
	Events            []controlEvent `json:"events"`
	WebhookID         string         `json:"webhook_id"`
	TraceID           string         `json:"trace_id,omitempty"`
	Trigger           audit.Trigger  `json:"trigger,omitempty"`
	Receiver          string         `json:"receiver"`
	URLScheme         string         `json:"url_scheme"`
	URLHost           string         `json:"url_host"`
	URLPort           uint16         `json:"url_port"`
	URLFingerprint    string         `json:"url_fingerprint,omitempty"`
	PeerAddress       string         `json:"peer_address,omitempty"`
	Format            string         `json:"format"`
	Attempt           int            `json:"attempt"`
	MaxAttempts       int            `json:"max_attempts"`
	BodySHA256        string         `json:"body_sha256,omitempty"`
	BodySize          int            `json:"body_size,omitempty"`
	SignatureKeyIDs   []string       `json:"signature_key_ids,omitempty"`
	Outcome           audit.Outcome  `json:"outcome"`
	Status            int            `json:"status"`
	ErrorType         string         `json:"error.type,omitempty"`
	RetryAfterSeconds float64        `json:"retry_after_seconds,omitempty"`
	NextAttempt       time.Time      `json:"next_attempt,omitzero"`
	QueuedSeconds     float64        `json:"queued_seconds"`
	DNSSeconds        float64        `json:"dns_seconds,omitempty"`
	ConnectSeconds    float64        `json:"connect_seconds,omitempty"`
	TLSSeconds        float64        `json:"tls_seconds,omitempty"`
	FirstByteSeconds  float64        `json:"first_byte_seconds,omitempty"`
	TotalSeconds      float64        `json:"total_seconds,omitempty"`
}

type controlEvent struct {
	Name string    `json:"name"`
	ID   string    `json:"id"`
	Key  string    `json:"key,omitempty"`
	Time time.Time `json:"time,omitzero"`
}

func newControlRecord(r *audit.Record) controlRecord {
	events := make([]controlEvent, len(r.Events))
	for i, e := range r.Events {
		events[i] = controlEvent{Name: e.Name, ID: e.ID, Key: e.Key, Time: jsonTime(e.Time)}
	}
	return controlRecord{
		ID:                r.ID,
		Time:              jsonTime(r.Time),
		Events:            events,
		WebhookID:         r.WebhookID,
		TraceID:           r.TraceID,
		Trigger:           r.Trigger,
		Receiver:          r.Receiver,
		URLScheme:         r.URLScheme,
		URLHost:           r.URLHost,
		URLPort:           r.URLPort,
		URLFingerprint:    r.URLFingerprint,
		PeerAddress:       r.PeerAddress,
		Format:            r.Format,
		Attempt:           r.Attempt,
		MaxAttempts:       r.MaxAttempts,
		BodySHA256:        r.BodySHA256,
		BodySize:          r.BodySize,
		SignatureKeyIDs:   r.SignatureKeyIDs,
		Outcome:           r.Outcome,
		Status:            r.Status,
		ErrorType:         string(r.ErrorType),
		RetryAfterSeconds: r.RetryAfter.Seconds(),
		NextAttempt:       jsonTime(r.NextAttempt),
		QueuedSeconds:     r.Durations.Queued.Seconds(),
		DNSSeconds:        r.Durations.DNS.Seconds(),
		ConnectSeconds:    r.Durations.Connect.Seconds(),
		TLSSeconds:        r.Durations.TLS.Seconds(),
		FirstByteSeconds:  r.Durations.FirstByte.Seconds(),
		TotalSeconds:      r.Durations.Total.Seconds(),
	}
}

// jsonTime keeps times that JSON can write: an event's time comes from outside.
func jsonTime(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}
