// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// The command and the exporter that it is made for, over HTTP.
func TestWebhookAgainstTheExporter(t *testing.T) {
	t.Setenv(tokenVariable, testToken)
	answer := atomic.Int64{}
	answer.Store(http.StatusOK)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(answer.Load())) }))
	t.Cleanup(hook.Close)

	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint := free.Addr().String()
	require.NoError(t, free.Close())
	factory := webhookexporter.NewFactory()
	cfg := factory.CreateDefaultConfig().(*webhookexporter.Config)
	cfg.Receivers = map[string]webhookexporter.ReceiverConfig{"ops": {URL: configopaque.String(hook.URL + "/SECRET")}}
	cfg.AllowCIDRs = []string{"127.0.0.0/8"}
	cfg.Control = webhookexporter.ControlConfig{Endpoint: endpoint, Token: testToken}
	require.NoError(t, cfg.Validate())
	exp, err := factory.CreateLogs(t.Context(), exportertest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, exp.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, exp.Shutdown(context.Background())) })

	code, out, errOut := ask("webhook", "test", "ops", "--endpoint", "http://"+endpoint)
	assert.Equal(t, exitOK, code, errOut)
	assert.Contains(t, out, "ops: delivered (status 200")
	assert.NotContains(t, out, "SECRET")

	logs := plog.NewLogs()
	record := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("gpu.xid")
	record.Attributes().PutStr(names.GPUEventID, "0195-event")
	require.NoError(t, exp.ConsumeLogs(t.Context(), logs))
	code, out, errOut = ask("webhook", "replay", "0195-event", "--endpoint", "http://"+endpoint)
	assert.Equal(t, exitOK, code, errOut)
	assert.Contains(t, out, "ops: delivered")

	code, _, errOut = ask("webhook", "replay", "0195-other", "--endpoint", "http://"+endpoint)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "unknown_event")
	code, _, errOut = ask("webhook", "test", "nobody", "--endpoint", "http://"+endpoint)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "unknown_receiver")

	answer.Store(http.StatusGone)
	code, _, _ = ask("webhook", "test", "ops", "--endpoint", "http://"+endpoint)
	assert.Equal(t, exitFailed, code)
	answer.Store(http.StatusOK)
	code, out, errOut = ask("webhook", "test", "ops", "--endpoint", "http://"+endpoint)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, out, "dropped, gone")
	assert.Contains(t, errOut, "receiver_disabled")
	code, out, errOut = ask("webhook", "enable", "ops", "--endpoint", "http://"+endpoint)
	assert.Equal(t, exitOK, code, errOut)
	assert.Contains(t, out, "ops: enabled, it gets deliveries again")
	code, out, errOut = ask("webhook", "enable", "ops", "--endpoint", "http://"+endpoint)
	assert.Equal(t, exitOK, code, errOut)
	assert.Equal(t, "ops: was enabled already\n", out)
	code, _, errOut = ask("webhook", "test", "ops", "--endpoint", "http://"+endpoint)
	assert.Equal(t, exitOK, code, errOut)

	hook.Close()
	code, out, _ = ask("webhook", "test", "ops", "--endpoint", "http://"+endpoint)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, out, "ops: not delivered: failed, connect (no answer")

	t.Setenv(tokenVariable, "another-token-0123456789")
	code, _, errOut = ask("webhook", "test", "ops", "--endpoint", "http://"+endpoint)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "unauthorized")
}
