// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// outcome is what became of a delivery.
type outcome string

const (
	outcomeSucceeded outcome = "succeeded" // the receiver answered 2xx
	outcomeFailed    outcome = "failed"    // an attempt was made and did not succeed
	outcomeBlocked   outcome = "blocked"   // the guard refused the address
	outcomeDropped   outcome = "dropped"   // no attempt was made
)

// errorType says why a delivery did not succeed. The list is closed.
type errorType string

const (
	errorNone        errorType = ""
	errorDNS         errorType = "dns"
	errorConnect     errorType = "connect" // no connection, or none that speaks HTTP
	errorTLS         errorType = "tls"
	errorTimeout     errorType = "timeout"
	errorSSRFBlocked errorType = "ssrf_blocked"
	errorRedirect    errorType = "redirect"
	errorHTTP4xx     errorType = "http_4xx"
	errorHTTP5xx     errorType = "http_5xx"
	errorRateLimited errorType = "rate_limited" // 429
	errorGone        errorType = "gone"         // 410, then or earlier
	errorQueueFull   errorType = "queue_full"
	errorShutdown    errorType = "shutdown"
	errorConfig      errorType = "config" // the request could not be built
)

// auditRecord is what is kept of one attempt, or of a delivery that came to no
// attempt. It holds nothing secret: of the URL only scheme, host and port, of
// the body only digest and size, of keys only their ids.
type auditRecord struct {
	id        string // UUIDv7
	time      time.Time
	eventName string
	eventID   string
	eventKey  string
	eventTime time.Time
	traceID   string

	receiver    string
	urlScheme   string
	urlHost     string
	urlPort     uint16
	peerAddress string // the address dialled or, where blocked, refused; empty if none was found
	format      string

	attempt         int // 0 if none was made
	maxAttempts     int
	bodySHA256      string
	bodySize        int
	signatureKeyIDs []string

	outcome   outcome
	status    int // 0 if there was no response
	errorType errorType
	durations durations
}

// durations of an attempt's parts; zero for a part that did not take place, as
// the name lookup of an address.
type durations struct {
	queued    time.Duration // from the pipeline to the start of the attempt
	dns       time.Duration
	connect   time.Duration
	tls       time.Duration
	firstByte time.Duration // from the start of the attempt to the response's first byte
	total     time.Duration // from the start of the attempt to its end
}

// auditSink keeps audit records. Write is called by several goroutines at once,
// for deliveries that did not fit into a queue also from ConsumeLogs, so it
// must not wait for anything but its own medium. It must not change the record.
// It has no error: a sink that cannot write says so itself, and never stops a
// delivery.
type auditSink interface {
	Write(*auditRecord)
}

// logSink writes audit records to the Collector's own log. The message holds
// the words that people grep for; the fields hold the rest.
type logSink struct {
	logger *zap.Logger
}

var _ auditSink = logSink{}

func (s logSink) Write(r *auditRecord) {
	log, auditType := s.logger.Warn, "webhook_dispatch_failed"
	if r.outcome == outcomeSucceeded {
		log, auditType = s.logger.Info, "webhook_dispatch_succeeded"
	}
	fields := []zap.Field{
		zap.String("audit_id", r.id),
		zap.Time("audit_time", r.time),
		zap.String("event_name", r.eventName),
		zap.String("event_id", r.eventID),
		zap.String("event_key", r.eventKey),
		zap.Time("event_time", r.eventTime),
		zap.String("receiver", r.receiver),
		zap.String("url_scheme", r.urlScheme),
		zap.String("url_host", r.urlHost),
		zap.Uint16("url_port", r.urlPort),
		zap.String("peer_address", r.peerAddress),
		zap.String("format", r.format),
		zap.Int("attempt", r.attempt),
		zap.Int("max_attempts", r.maxAttempts),
		zap.String("outcome", string(r.outcome)),
		zap.Int("status", r.status),
		zap.Float64("queued_seconds", r.durations.queued.Seconds()),
	}
	if r.errorType != errorNone {
		fields = append(fields, zap.String(names.ErrorType, string(r.errorType)))
	}
	if r.traceID != "" {
		fields = append(fields, zap.String("trace_id", r.traceID))
	}
	if r.bodySHA256 != "" {
		fields = append(fields,
			zap.String("body_sha256", r.bodySHA256),
			zap.Int("body_size", r.bodySize),
			zap.Strings("signature_key_ids", r.signatureKeyIDs))
	}
	if r.attempt > 0 {
		fields = append(fields,
			zap.Float64("dns_seconds", r.durations.dns.Seconds()),
			zap.Float64("connect_seconds", r.durations.connect.Seconds()),
			zap.Float64("tls_seconds", r.durations.tls.Seconds()),
			zap.Float64("first_byte_seconds", r.durations.firstByte.Seconds()),
			zap.Float64("total_seconds", r.durations.total.Seconds()))
	}
	log(fmt.Sprintf("audit_type=%s url_host=%s status=%d", auditType, r.urlHost, r.status), fields...)
}
