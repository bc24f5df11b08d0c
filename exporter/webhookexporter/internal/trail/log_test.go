// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package trail

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

// lineEncodings are the two in which the Collector writes its log.
var lineEncodings = map[string]func(zapcore.EncoderConfig) zapcore.Encoder{
	"console": zapcore.NewConsoleEncoder,
	"json":    zapcore.NewJSONEncoder,
}

func TestCourtesyLineIsFoundByGrep(t *testing.T) {
	records := map[string]audit.Record{
		"audit_type=webhook_dispatch_succeeded url_host=hooks.slack.com status=200":  {URLHost: "hooks.slack.com", Outcome: audit.Succeeded, Status: 200},
		"audit_type=webhook_dispatch_failed url_host=hooks.slack.com status=503":     {URLHost: "hooks.slack.com", Outcome: audit.Failed, Status: 503, ErrorType: audit.ErrorHTTP5xx},
		"audit_type=webhook_dispatch_failed url_host=10.0.0.1 status=0":              {URLHost: "10.0.0.1", Outcome: audit.Blocked, ErrorType: audit.ErrorSSRFBlocked},
		"audit_type=webhook_dispatch_failed url_host=pager.example.com status=0":     {URLHost: "pager.example.com", Outcome: audit.Dropped, ErrorType: audit.ErrorQueueFull},
		"audit_type=webhook_dispatch_failed url_host=2606:4700::1111 status=302":     {URLHost: "2606:4700::1111", Outcome: audit.Failed, Status: 302, ErrorType: audit.ErrorRedirect},
		"audit_type=webhook_dispatch_succeeded url_host=billing.internal status=204": {URLHost: "billing.internal", Outcome: audit.Succeeded, Status: 204},
	}
	for name, encoder := range lineEncodings {
		for want, rec := range records {
			var out bytes.Buffer
			core := zapcore.NewCore(encoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&out), zapcore.InfoLevel)
			logSink{zap.New(core)}.Write(&rec)
			assert.Equal(t, 1, strings.Count(out.String(), want), "%s: %s", name, out.String())
			assert.Equal(t, 1, strings.Count(out.String(), "\n"), "one line")
		}
	}
}

func TestCourtesyLineOfAGroup(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	next := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	logSink{zap.New(core)}.write(7, &audit.Record{
		Events:         []audit.Event{{ID: "a"}, {ID: "b"}},
		Trigger:        audit.TriggerReplay,
		RetryAfter:     1500 * time.Millisecond,
		NextAttempt:    next,
		URLFingerprint: "f1",
	})
	fields := logs.All()[0].ContextMap()
	assert.Equal(t, []any{"a", "b"}, fields["event_ids"])
	for key, want := range map[string]any{"event_id": "a", "event_count": int64(2), "trigger": "replay", "retry_after_seconds": 1.5, "next_attempt": next, "url_fingerprint": "f1", "audit_seq": uint64(7)} {
		assert.Equal(t, want, fields[key], key)
	}
	logSink{zap.New(core)}.Write(&audit.Record{})
	for _, key := range []string{"event_count", "event_ids", "trigger", "retry_after_seconds", "next_attempt", "url_fingerprint", "audit_seq"} {
		assert.NotContains(t, logs.All()[1].ContextMap(), key)
	}
}
