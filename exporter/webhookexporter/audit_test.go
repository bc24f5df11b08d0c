// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// encodings are the two in which the Collector writes its log.
var encodings = map[string]func(zapcore.EncoderConfig) zapcore.Encoder{
	"console": zapcore.NewConsoleEncoder,
	"json":    zapcore.NewJSONEncoder,
}

func TestAuditFields(t *testing.T) {
	server := newHook(t, answerWith(http.StatusServiceUnavailable))
	cfg := to(server.URL)
	cfg.Format = "convox"
	cfg.Signing.Standard = []configopaque.String{whsec(1)}
	h := startHarness(t, only(cfg))
	rec := h.one()
	require.NoError(t, h.Shutdown(t.Context()))

	entries := h.logs.FilterMessageSnippet("audit_type=").All()
	require.Len(t, entries, 1)
	assert.Equal(t, "audit_type=webhook_dispatch_failed url_host=127.0.0.1 status=503", entries[0].Message)
	assert.Equal(t, zapcore.WarnLevel, entries[0].Level)
	fields := entries[0].ContextMap()
	for key, want := range map[string]any{
		"audit_id": rec.ID, "event_name": "gpu.service.partial", "event_id": rec.Events[0].ID, "event_key": "prod/vllm/partial", "event_time": eventTime,
		"receiver": "ops", "url_scheme": "http", "url_host": "127.0.0.1", "url_port": server.port(), "peer_address": rec.PeerAddress,
		"format": "convox", "attempt": int64(1), "max_attempts": int64(1), "body_sha256": rec.BodySHA256, "body_size": int64(rec.BodySize),
		"outcome": "failed", "status": int64(503), "error.type": "http_5xx",
	} {
		assert.EqualValues(t, want, fields[key], key)
	}
	for _, key := range []string{"queued_seconds", "dns_seconds", "connect_seconds", "tls_seconds", "first_byte_seconds", "total_seconds", "signature_key_ids", "audit_time"} {
		assert.Contains(t, fields, key)
	}
}

// Every way a delivery can end, with secrets in every place that holds some:
// none of them shows up in a log line, a metric or an audit record.
func TestSecretsStaySecret(t *testing.T) {
	const user, password, path, query = "SECRETuser", "SECRETpassword", "SECRETpath", "SECRETquery"
	hmacKey := testKey(32, 1)
	convoxKey := hex.EncodeToString(testKey(32, 2))
	secrets := []string{
		user, password, path, query, "SECRETlocation", "SECRETanswer",
		base64.StdEncoding.EncodeToString(hmacKey), hex.EncodeToString(hmacKey), convoxKey,
		base64.StdEncoding.EncodeToString([]byte(user + ":" + password)),
		"SECRETmessage", "SECRETattribute",
	}
	fine := newHook(t, nil)
	redirect := newHook(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1/SECRETlocation", http.StatusTemporaryRedirect)
	})
	badRedirect := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://[SECRETlocation")
		w.WriteHeader(http.StatusFound)
	})
	failing := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "SECRETanswer")
	})
	gone := newHook(t, answerWith(http.StatusGone))
	babbling := newHook(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		_, _ = conn.Write([]byte("HTTP/9.SECRETanswer 200\r\n\r\n"))
		conn.Close()
	})
	silent := newHook(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	secure := newUnstartedHook(t, nil)
	secure.StartTLS()
	refused := httptest.NewServer(nil)
	refused.Close()

	with := func(base string) endpoint.Config {
		scheme, host, _ := strings.Cut(base, "://")
		r := to(fmt.Sprintf("%s://%s:%s@%s/%s?token=%s", scheme, user, password, host, path, query))
		r.Timeout = patience
		r.Signing = signing.Config{
			Standard: []configopaque.String{configopaque.String("whsec_" + base64.StdEncoding.EncodeToString(hmacKey))},
			Convox:   []configopaque.String{configopaque.String(convoxKey)},
		}
		return r
	}
	late := with(silent.URL)
	late.Timeout = 300 * time.Millisecond // of this one alone: a busy machine takes as long for an answer
	receivers := map[string]endpoint.Config{
		"fine": with(fine.URL), "redirect": with(redirect.URL), "bad-redirect": with(badRedirect.URL), "failing": with(failing.URL),
		"gone": with(gone.URL), "babbling": with(babbling.URL), "silent": late, "tls": with(secure.URL), "refused": with(refused.URL),
		"dns": with("http://missing.example.test"), "blocked": with("http://169.254.169.254"),
	}
	h := startHarness(t, receivers, func(_ *Config, env *environment) { env.Resolver = nameServer(t, nil) })
	logs := partial("id", names.EventRaised)
	record := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	record.Body().SetStr("SECRETmessage")
	record.Attributes().PutStr("detail", "SECRETattribute")
	seen := map[audit.ErrorType]bool{}
	var written []string
	for _, id := range []string{"id", "another"} {
		record.Attributes().PutStr(names.GPUEventID, id)
		h.send(logs)
		for range receivers {
			rec := h.record()
			seen[rec.ErrorType] = true
			written = append(written, fmt.Sprintf("%+v", *rec))
		}
	}
	require.NoError(t, h.Shutdown(t.Context()))
	for _, kind := range []audit.ErrorType{audit.ErrorNone, audit.ErrorRedirect, audit.ErrorHTTP5xx, audit.ErrorGone, audit.ErrorConnect, audit.ErrorTimeout, audit.ErrorTLS, audit.ErrorDNS, audit.ErrorSSRFBlocked} {
		assert.True(t, seen[kind], "the test no longer reaches %q", kind)
	}

	for _, entry := range h.logs.All() {
		for _, encoder := range encodings {
			line, err := encoder(zap.NewProductionEncoderConfig()).EncodeEntry(entry.Entry, entry.Context)
			require.NoError(t, err)
			written = append(written, line.String())
		}
	}
	var metrics metricdata.ResourceMetrics
	require.NoError(t, h.telemetry.Reader.Collect(t.Context(), &metrics))
	raw, err := json.Marshal(metrics)
	require.NoError(t, err)
	require.Contains(t, string(raw), "ssrf_blocked")
	written = append(written, string(raw), fmt.Sprintf("%+v", receivers))
	for _, line := range written {
		for _, secret := range secrets {
			assert.NotContains(t, line, secret)
		}
	}

	got := fine.received()[0]
	request := http.Request{Header: got.header}
	gotUser, gotPassword, ok := request.BasicAuth()
	assert.True(t, ok, "user info goes where it belongs")
	assert.Equal(t, []string{user, password}, []string{gotUser, gotPassword})
	assert.Equal(t, "/"+path+"?token="+query, got.path)
}

func TestAuditLineCannotBeForged(t *testing.T) {
	server := newHook(t, answerWith(http.StatusInternalServerError))
	h := startHarness(t, only(to(server.URL)))
	logs := partial("id", names.EventRaised)
	record := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	forged := "x\n2026-01-01T00:00:00Z\tinfo\taudit_type=webhook_dispatch_succeeded\x1b[1A\u202e"
	record.SetEventName(forged)
	record.Attributes().PutStr(names.GPUEventID, forged)
	record.Attributes().PutStr(names.GPUEventKey, forged)
	h.send(logs)
	h.record()
	require.NoError(t, h.Shutdown(t.Context()))
	for _, entry := range h.logs.All() {
		assert.NotContains(t, entry.Message, "succeeded")
		for key, value := range entry.ContextMap() {
			assert.NotRegexp(t, `[\x00-\x1f\x{202e}]`, fmt.Sprint(value), key)
		}
	}
}
