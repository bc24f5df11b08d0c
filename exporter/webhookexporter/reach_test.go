// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/control"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

const (
	fileKey    = "whsec_C+0sZ3Jb9I5PGrXwVz3oD7xkKqMuYt1RZcNa0pQeSgU="
	rotatedKey = "whsec_v2h1PpRf8cXq4LwT9zKsYdN0eUaJ6gBiOmQ3nV5xW7k="
)

const reachToken = "token-SECRET-0123456789"

// files is a folder of receiver files.
type files struct {
	path string
	t    *testing.T
}

func newFiles(t *testing.T) *files { return &files{t.TempDir(), t} }

func (f *files) write(name, content string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(filepath.Join(f.path, name), []byte(content), 0o600))
}

func (f *files) remove(name string) {
	f.t.Helper()
	require.NoError(f.t, os.RemoveAll(filepath.Join(f.path, name)))
}

// startWithFolder starts an exporter with the endpoints of a folder.
func startWithFolder(t *testing.T, receivers map[string]endpoint.Config, files map[string]string) (*harness, *files) {
	f := newFiles(t)
	for name, content := range files {
		f.write(name, content)
	}
	h := newHarness(t, receivers, func(c *Config, env *environment) {
		c.ReceiversDir = f.path
		env.settle, env.poll = 20*time.Millisecond, 100*time.Millisecond
		c.Control = control.Config{Endpoint: "127.0.0.1:0", Token: reachToken}
	})
	require.NoError(t, h.Start(context.Background(), componenttest.NewNopHost()))
	return h, f
}

// replace replaces the file, and waits until it is in
// force: until has to hold.
func (h *harness) replace(f *files, name, content string, until func() bool) {
	h.t.Helper()
	f.write(".new", content)
	require.NoError(h.t, os.Rename(filepath.Join(f.path, ".new"), filepath.Join(f.path, name)))
	require.Eventually(h.t, until, patience, 5*time.Millisecond)
}

// targetOf returns where a receiver's deliveries go now, "" for no receiver.
func (h *harness) targetOf(name string) string {
	r := h.set.Find(name)
	if r == nil {
		return ""
	}
	return r.Endpoint().URL.String()
}

// ask asks the control endpoint and returns status and answer.
func (h *harness) ask(path, body string) (int, string) {
	h.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+h.control.Addr().String()+path, strings.NewReader(body))
	require.NoError(h.t, err)
	req.Header.Set("Authorization", "Bearer "+reachToken)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	require.NoError(h.t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(h.t, err)
	return resp.StatusCode, string(got)
}

func TestRotatedReceiverTakesEffect(t *testing.T) {
	one, two, fixed := newHook(t, nil), newHook(t, nil), newHook(t, nil)
	signed := func(url, key string) string {
		return fmt.Sprintf(`{"url": %q, "timeout": "5s", "signing": {"standard": [%q]}}`, url, key)
	}
	h, f := startWithFolder(t, map[string]endpoint.Config{"fixed": to(fixed.URL)}, map[string]string{"ops": signed(one.URL, fileKey)})
	both := func() map[string]*audit.Record {
		a, b := h.one(), h.record()
		return map[string]*audit.Record{a.Receiver: a, b.Receiver: b}
	}
	first := both()
	assert.Equal(t, audit.Succeeded, first["ops"].Outcome)
	assert.Equal(t, audit.Succeeded, first["fixed"].Outcome)

	h.replace(f, "ops", signed(two.URL, rotatedKey), func() bool { return h.targetOf("ops") == two.URL })
	second := both()
	assert.Equal(t, audit.Succeeded, second["ops"].Outcome)
	assert.NotEqual(t, first["ops"].SignatureKeyIDs, second["ops"].SignatureKeyIDs)
	assert.Len(t, one.received(), 1)
	assert.Len(t, two.received(), 1)

	// A broken file changes nothing: above all nothing goes out unsigned.
	h.replace(f, "ops", signed(one.URL, "whsec_broken"), func() bool { return h.logs.FilterMessageSnippet("stays as it was").Len() == 1 })
	third := both()
	assert.Equal(t, second["ops"].SignatureKeyIDs, third["ops"].SignatureKeyIDs)
	assert.Len(t, two.received(), 2)
	for _, r := range append(one.received(), two.received()...) {
		assert.NotEmpty(t, r.header.Get(signing.HeaderSignature))
	}

	// The name of a configured receiver is not the folder's to give.
	h.replace(f, "fixed", two.URL, func() bool { return h.logs.FilterMessageSnippet("is skipped").Len() == 1 })
	assert.Equal(t, fixed.URL, h.targetOf("fixed"))

	f.remove("ops")
	require.Eventually(t, func() bool { return h.targetOf("ops") == "" }, patience, 5*time.Millisecond)
	rec := h.one()
	assert.Equal(t, "fixed", rec.Receiver)
	require.NoError(t, h.Shutdown(t.Context()))
	assert.Empty(t, h.records)
	assert.Len(t, fixed.received(), 4)
}

func TestMissingFolderStopsTheStart(t *testing.T) {
	h := newHarness(t, nil, func(c *Config, _ *environment) { c.ReceiversDir = filepath.Join(t.TempDir(), "nowhere") })
	assert.ErrorContains(t, h.Start(context.Background(), componenttest.NewNopHost()), "receivers_dir: ")
}

func TestFolderAloneIsEnough(t *testing.T) {
	c := createDefaultConfig().(*Config)
	assert.ErrorContains(t, c.Validate(), "receivers_dir")
	c.ReceiversDir = t.TempDir()
	assert.NoError(t, c.Validate())
	h, _ := startWithFolder(t, nil, nil)
	h.send(partial("nobody", names.EventRaised))
	require.NoError(t, h.Shutdown(t.Context()))
	assert.Empty(t, h.records)
}

func TestTestEventThroughControl(t *testing.T) {
	server := newHook(t, nil)
	down := newHook(t, answerWith(http.StatusServiceUnavailable))
	gone := newHook(t, answerWith(http.StatusGone))
	quiet := to(server.URL + "/SECRET-path")
	quiet.MinSeverity, quiet.Events = "fatal", []string{"nothing.at.all"} // a test comes through any filter
	h, _ := startWithFolder(t, map[string]endpoint.Config{"ops": quiet, "down": to(down.URL), "gone": to(gone.URL)}, map[string]string{"file": server.URL + "/from-file"})

	type answer struct {
		Error   *struct{ Reason string } `json:"error"`
		Records []map[string]any         `json:"records"`
	}
	ask := func(receiver string) (int, answer) {
		status, body := h.ask("/v1/webhook/test", fmt.Sprintf(`{"receiver": %q}`, receiver))
		assert.NotContains(t, body, "SECRET")
		var a answer
		require.NoError(t, json.Unmarshal([]byte(body), &a))
		return status, a
	}
	status, a := ask("ops")
	assert.Equal(t, http.StatusOK, status)
	require.Len(t, a.Records, 1)
	rec := h.record()
	assert.Equal(t, rec.ID, a.Records[0]["id"], "the answer is the audit record")
	assert.Equal(t, audit.TriggerTest, rec.Trigger)
	assert.Equal(t, "test", a.Records[0]["trigger"])
	assert.Equal(t, "succeeded", a.Records[0]["outcome"])
	require.Len(t, server.received(), 1)

	status, _ = ask("file")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "/from-file", server.received()[1].path)

	status, a = ask("down")
	assert.Equal(t, http.StatusOK, status, "it was asked for, and the answer tells what came of it")
	assert.Equal(t, "failed", a.Records[0]["outcome"])
	assert.Equal(t, "http_5xx", a.Records[0]["error.type"])

	status, a = ask("gone")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "gone", a.Records[0]["error.type"])
	status, a = ask("gone")
	assert.Equal(t, http.StatusConflict, status)
	assert.Equal(t, "receiver_disabled", a.Error.Reason)

	status, a = ask("nobody")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Equal(t, "unknown_receiver", a.Error.Reason)
}

func TestReplayThroughControl(t *testing.T) {
	server := newHook(t, nil)
	xid := to(server.URL + "/xid")
	xid.Events = []string{"gpu.xid"}
	h, _ := startWithFolder(t, map[string]endpoint.Config{"all": to(server.URL + "/all"), "xid": xid}, nil)
	h.send(partial("0195-event", names.EventRaised))
	h.record()

	status, body := h.ask("/v1/webhook/replay", `{"event_id": "0195-event"}`)
	assert.Equal(t, http.StatusOK, status, body)
	rec := h.record()
	assert.Equal(t, "all", rec.Receiver, "it goes to those that want it")
	assert.Equal(t, audit.TriggerReplay, rec.Trigger)
	assert.Equal(t, "0195-event", rec.Events[0].ID)

	status, body = h.ask("/v1/webhook/replay", `{"event_id": "0195-event", "receiver": "xid"}`)
	assert.Equal(t, http.StatusOK, status, body)
	assert.Equal(t, "xid", h.record().Receiver, "and to one that is named")
	status, body = h.ask("/v1/webhook/replay", `{"event_id": "0195-other"}`)
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, body, "unknown_event")
	status, body = h.ask("/v1/webhook/replay", `{"event_id": "0195-event", "receiver": "nobody"}`)
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, body, "unknown_receiver")

	got := server.received()
	require.Len(t, got, 3)
	for _, r := range got {
		assert.Equal(t, "0195-event", r.header.Get(signing.HeaderID), "a replay differs from a second event by its id")
	}
}

// A request that waits at the control endpoint does not delay the shutdown.
func TestShutdownWhileATestWaits(t *testing.T) {
	entered := make(chan struct{}, 1)
	server := newHook(t, func(_ http.ResponseWriter, r *http.Request) { entered <- struct{}{}; <-r.Context().Done() })
	h, _ := startWithFolder(t, only(to(server.URL)), nil)
	answered := make(chan int)
	go func() {
		status, _ := h.ask("/v1/webhook/test", `{"receiver": "ops"}`)
		answered <- status
	}()
	<-entered
	shutdownNow(t, h)
	assert.Equal(t, http.StatusServiceUnavailable, <-answered)
	assert.Equal(t, audit.ErrorShutdown, h.record().ErrorType)
}

func TestReachFromYAML(t *testing.T) {
	conf := confmap.NewFromStringMap(map[string]any{
		"receivers_dir":      "/etc/otelcol-gpu/webhooks",
		"proxy_url":          "http://user:pw@proxy.example.com:3128",
		"allow_ports":        []any{443, 3128},
		"control_endpoint":   "localhost:8481",
		"control_token_file": "/run/secrets/token",
	})
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	assert.Equal(t, "/etc/otelcol-gpu/webhooks", cfg.ReceiversDir)
	assert.EqualValues(t, "http://user:pw@proxy.example.com:3128", cfg.ProxyURL)
	assert.Equal(t, control.Config{Endpoint: "localhost:8481", TokenFile: "/run/secrets/token"}, cfg.Control)

	// What the Collector prints of a configuration holds no secret.
	cfg.Control.Token = reachToken
	back := confmap.New()
	require.NoError(t, back.Marshal(cfg))
	text := fmt.Sprint(back.ToStringMap())
	assert.NotContains(t, text, "pw@")
	assert.NotContains(t, text, reachToken)
}
