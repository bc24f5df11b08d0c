// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit // import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

import (
	"encoding/json"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
)

func newRecordBody(r *Record) codec.RecordBody {
	events := make([]codec.EventBody, len(r.Events))
	for i, e := range r.Events {
		events[i] = codec.EventBody{Name: valid(e.Name), ID: valid(e.ID), Key: valid(e.Key), Time: codec.UTC(e.Time)}
	}
	var keyIDs []string
	for _, id := range r.SignatureKeyIDs {
		keyIDs = append(keyIDs, valid(id))
	}
	return codec.RecordBody{
		ID:                valid(r.ID),
		Time:              codec.UTC(r.Time),
		Events:            events,
		WebhookID:         valid(r.WebhookID),
		TraceID:           valid(r.TraceID),
		Trigger:           string(r.Trigger),
		Receiver:          valid(r.Receiver),
		URLScheme:         valid(r.URLScheme),
		URLHost:           valid(r.URLHost),
		URLPort:           r.URLPort,
		URLFingerprint:    r.URLFingerprint,
		PeerAddress:       valid(r.PeerAddress),
		Format:            valid(r.Format),
		Attempt:           r.Attempt,
		MaxAttempts:       r.MaxAttempts,
		BodySHA256:        r.BodySHA256,
		BodySize:          r.BodySize,
		SignatureKeyIDs:   keyIDs,
		Outcome:           string(r.Outcome),
		Status:            r.Status,
		ErrorType:         string(r.ErrorType),
		RetryAfterSeconds: r.RetryAfter.Seconds(),
		NextAttempt:       codec.UTC(r.NextAttempt),
		NotStored:         r.NotStored,
		QueuedSeconds:     r.Durations.Queued.Seconds(),
		DNSSeconds:        r.Durations.DNS.Seconds(),
		ConnectSeconds:    r.Durations.Connect.Seconds(),
		TLSSeconds:        r.Durations.TLS.Seconds(),
		FirstByteSeconds:  r.Durations.FirstByte.Seconds(),
		TotalSeconds:      r.Durations.Total.Seconds(),
	}
}

// MarshalJSON writes the record as its line in the file has it.
func (r *Record) MarshalJSON() ([]byte, error) { return json.Marshal(newRecordBody(r)) }

// valid keeps a text encodable in one way only: JSON has two for a replaced
// byte.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
