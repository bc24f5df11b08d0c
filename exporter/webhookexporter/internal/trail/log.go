// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package trail // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/trail"

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// logSink writes audit records to the Collector's own log. The message holds
// the words that people grep for; the fields hold the rest.
type logSink struct {
	logger *zap.Logger
}

var _ audit.Sink = logSink{}

func (s logSink) Write(r *audit.Record) { s.write(0, r) }

// write writes the line of a record that has this sequence number in the audit
// file, 0 where it has none (yet).
func (s logSink) write(seq uint64, r *audit.Record) {
	if r.Trigger == audit.TriggerEnable {
		s.logger.Info("audit_type=webhook_receiver_enabled url_host="+r.URLHost,
			zap.String("audit_id", r.ID), zap.Time("audit_time", r.Time), zap.String("receiver", r.Receiver), zap.Uint64("audit_seq", seq))
		return
	}
	if r.Trigger == audit.TriggerSetAside {
		s.logger.Warn("audit_type=webhook_audit_set_aside", zap.String("audit_id", r.ID), zap.Time("audit_time", r.Time), zap.Uint64("audit_seq", seq))
		return
	}
	log, auditType := s.logger.Warn, "webhook_dispatch_failed"
	if r.Outcome == audit.Succeeded {
		log, auditType = s.logger.Info, "webhook_dispatch_succeeded"
	}
	var first audit.Event
	if len(r.Events) > 0 {
		first = r.Events[0]
	}
	fields := []zap.Field{
		zap.String("audit_id", r.ID),
		zap.Time("audit_time", r.Time),
		zap.String("event_name", first.Name),
		zap.String("event_id", first.ID),
		zap.String("event_key", first.Key),
		zap.Time("event_time", first.Time),
		zap.String("receiver", r.Receiver),
		zap.String("url_scheme", r.URLScheme),
		zap.String("url_host", r.URLHost),
		zap.Uint16("url_port", r.URLPort),
		zap.String("peer_address", r.PeerAddress),
		zap.String("format", r.Format),
		zap.Int("attempt", r.Attempt),
		zap.Int("max_attempts", r.MaxAttempts),
		zap.String("outcome", string(r.Outcome)),
		zap.Int("status", r.Status),
		zap.Float64("queued_seconds", r.Durations.Queued.Seconds()),
	}
	if r.WebhookID != "" {
		fields = append(fields, zap.String("webhook_id", r.WebhookID))
	}
	if r.ErrorType != audit.ErrorNone {
		fields = append(fields, zap.String(names.ErrorType, string(r.ErrorType)))
	}
	if seq > 0 {
		fields = append(fields, zap.Uint64("audit_seq", seq))
	}
	if len(r.Events) > 1 {
		ids := make([]string, len(r.Events))
		for i, e := range r.Events {
			ids[i] = e.ID
		}
		fields = append(fields, zap.Int("event_count", len(r.Events)), zap.Strings("event_ids", ids))
	}
	if r.Trigger != audit.TriggerEvent {
		fields = append(fields, zap.String("trigger", string(r.Trigger)))
	}
	if r.URLFingerprint != "" {
		fields = append(fields, zap.String("url_fingerprint", r.URLFingerprint))
	}
	if r.RetryAfter > 0 {
		fields = append(fields, zap.Float64("retry_after_seconds", r.RetryAfter.Seconds()))
	}
	if !r.NextAttempt.IsZero() {
		fields = append(fields, zap.Time("next_attempt", r.NextAttempt))
	}
	if r.NotStored {
		fields = append(fields, zap.Bool("not_stored", true))
	}
	if r.TraceID != "" {
		fields = append(fields, zap.String("trace_id", r.TraceID))
	}
	if r.BodySHA256 != "" {
		fields = append(fields,
			zap.String("body_sha256", r.BodySHA256),
			zap.Int("body_size", r.BodySize),
			zap.Strings("signature_key_ids", r.SignatureKeyIDs))
	}
	if r.Attempt > 0 {
		fields = append(fields,
			zap.Float64("dns_seconds", r.Durations.DNS.Seconds()),
			zap.Float64("connect_seconds", r.Durations.Connect.Seconds()),
			zap.Float64("tls_seconds", r.Durations.TLS.Seconds()),
			zap.Float64("first_byte_seconds", r.Durations.FirstByte.Seconds()),
			zap.Float64("total_seconds", r.Durations.Total.Seconds()))
	}
	log(fmt.Sprintf("audit_type=%s url_host=%s status=%d", auditType, r.URLHost, r.Status), fields...)
}
