// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/time/rate"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadatatest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

const controlToken = "token-SECRET-0123456789"

// fakeSender answers what the test sets and remembers the requests.
type fakeSender struct {
	mu     sync.Mutex
	asked  []string
	answer func(ctx context.Context) ([]*audit.Record, error)
}

func (f *fakeSender) ask(ctx context.Context, what string) ([]*audit.Record, error) {
	f.mu.Lock()
	f.asked = append(f.asked, what)
	f.mu.Unlock()
	return f.answer(ctx)
}

func (f *fakeSender) Test(ctx context.Context, receiver string) (*audit.Record, error) {
	records, err := f.ask(ctx, "test "+receiver)
	if err != nil {
		return nil, err
	}
	return records[0], nil
}

func (f *fakeSender) Replay(ctx context.Context, id, receiver string) ([]*audit.Record, error) {
	return f.ask(ctx, "replay "+id+" "+receiver)
}

func (f *fakeSender) Enable(receiver string) (*audit.Record, error) {
	records, err := f.ask(context.Background(), "enable "+receiver)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	return records[0], nil
}

// controlTest is a control endpoint on a free port of loopback.
type controlTest struct {
	*Server
	fake *fakeSender
	t    *testing.T
	logs *observer.ObservedLogs
	tel  *componenttest.Telemetry
}

func newControlTest(t *testing.T, config Config) *controlTest {
	core, logs := observer.New(zapcore.DebugLevel)
	tel := componenttest.NewTelemetry()
	builder, err := metadata.NewTelemetryBuilder(tel.NewTelemetrySettings())
	require.NoError(t, err)
	fake := &fakeSender{answer: func(context.Context) ([]*audit.Record, error) { return []*audit.Record{sentRecord("ops")}, nil }}
	c := New(config, fake, builder, zap.New(core))
	c.limiter = rate.NewLimiter(rate.Inf, 0)
	t.Cleanup(func() {
		c.Shutdown()
		builder.Shutdown()
		require.NoError(t, tel.Shutdown(context.Background()))
	})
	return &controlTest{c, fake, t, logs, tel}
}

func startControl(t *testing.T) *controlTest {
	c := newControlTest(t, Config{Endpoint: "127.0.0.1:0", Token: controlToken})
	require.NoError(t, c.Start())
	return c
}

func sentRecord(receiver string) *audit.Record {
	return &audit.Record{
		ID: "0195-record", Time: time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC), WebhookID: "0195-event", Receiver: receiver, Trigger: audit.TriggerTest, Events: []audit.Event{{Name: "gpu.webhook.test", ID: "0195-event", Key: "k", Time: time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC)}},
		URLScheme: "https", URLHost: "hooks.example.com", URLPort: 443, PeerAddress: "203.0.113.9:443", Format: "standard", Attempt: 1, MaxAttempts: 3,
		BodySHA256: "abc", BodySize: 300, SignatureKeyIDs: []string{"v1:1234"}, Outcome: audit.Failed, Status: 503, ErrorType: audit.ErrorHTTP5xx,
		RetryAfter: 30 * time.Second, NextAttempt: time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC).Add(time.Minute), Durations: audit.Durations{Queued: time.Millisecond, Total: 250 * time.Millisecond},
	}
}

// do makes a request; an empty token sends none.
func (c *controlTest) do(method, path, token, body string) (*http.Response, string) {
	c.t.Helper()
	req, err := http.NewRequest(method, "http://"+c.address.String()+path, strings.NewReader(body))
	require.NoError(c.t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	resp, err := client.Do(req)
	require.NoError(c.t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return resp, string(got)
}

func TestControlAsks(t *testing.T) {
	c := startControl(t)
	resp, body := c.do(http.MethodPost, pathTest, controlToken, `{"receiver": "ops"}`)
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	assert.JSONEq(t, `{"records": [{
		"id": "0195-record", "time": "2026-03-04T05:06:07.89Z", "events": [{"name": "gpu.webhook.test", "id": "0195-event", "key": "k", "time": "2026-03-04T05:06:07.89Z"}],
		"webhook_id": "0195-event", "trigger": "test", "receiver": "ops", "url_scheme": "https", "url_host": "hooks.example.com", "url_port": 443, "peer_address": "203.0.113.9:443",
		"format": "standard", "attempt": 1, "max_attempts": 3, "body_sha256": "abc", "body_size": 300, "signature_key_ids": ["v1:1234"],
		"outcome": "failed", "status": 503, "error.type": "http_5xx", "retry_after_seconds": 30, "next_attempt": "2026-03-04T05:07:07.89Z",
		"queued_seconds": 0.001, "total_seconds": 0.25}]}`, body)

	c.do(http.MethodPost, pathReplay, controlToken, `{"event_id": "0195-event", "receiver": ""}`)
	c.do(http.MethodPost, pathReplay, controlToken, `{"event_id": "0195-event", "receiver": "ops"}`)
	c.do(http.MethodPost, pathReplay, controlToken, `{"event_id": "0195-event"}`)
	assert.Equal(t, []string{"test ops", "replay 0195-event ", "replay 0195-event ops", "replay 0195-event "}, c.fake.asked)
	point := func(operation string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("operation", operation), attribute.Int("http.response.status_code", 200))}
	}
	metadatatest.AssertEqualExporterWebhookControlRequests(t, c.tel, []metricdata.DataPoint[int64]{point("test", 1), point("replay", 3)}, metricdatatest.IgnoreTimestamp())
}

func TestControlEnables(t *testing.T) {
	c := startControl(t)
	c.fake.answer = func(context.Context) ([]*audit.Record, error) { return nil, nil }
	resp, body := c.do(http.MethodPost, pathEnable, controlToken, `{"receiver": "ops"}`)
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	assert.JSONEq(t, `{"enabled": true}`, body)
	c.fake.answer = func(context.Context) ([]*audit.Record, error) { return nil, ErrNoReceiver }
	resp, body = c.do(http.MethodPost, pathEnable, controlToken, `{"receiver": "nobody"}`)
	assert.Equal(t, http.StatusNotFound, resp.StatusCode)
	assert.Contains(t, body, "unknown_receiver")
	resp, _ = c.do(http.MethodPost, pathEnable, controlToken, `{}`)
	assert.Equal(t, http.StatusBadRequest, resp.StatusCode)
	assert.Equal(t, []string{"enable ops", "enable nobody"}, c.fake.asked)
}

func TestControlNeedsTheToken(t *testing.T) {
	c := startControl(t)
	for _, token := range []string{"", "x", "token-SECRET-012345678", controlToken + "0", strings.ToUpper(controlToken), "Bearer " + controlToken, strings.Repeat("x", 4000)} {
		for _, path := range []string{pathTest, pathReplay, pathEnable, "/", "/v1/webhook/nothing"} {
			resp, body := c.do(http.MethodPost, path, token, `{"receiver": "ops"}`)
			assert.Equal(t, http.StatusUnauthorized, resp.StatusCode, token)
			assert.Equal(t, "Bearer", resp.Header.Get("WWW-Authenticate"))
			assert.Contains(t, body, `"reason":"unauthorized"`)
		}
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+c.address.String()+pathTest, strings.NewReader(`{"receiver": "ops"}`))
	require.NoError(t, err)
	req.SetBasicAuth("Bearer", controlToken)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	assert.Empty(t, c.fake.asked, "nobody without the token comes through")
	assert.Equal(t, 3, c.logs.FilterMessageSnippet("without a valid token").Len(), "guesses do not fill the log")
	for _, line := range c.logs.All() {
		assert.NotContains(t, line.Message+fmt.Sprint(line.ContextMap()), "SECRET")
	}
	resp, _ = c.do(http.MethodPost, pathTest, controlToken, `{"receiver": "ops"}`)
	assert.Equal(t, http.StatusOK, resp.StatusCode, "and guesses lock nobody out")
}

func TestControlRefuses(t *testing.T) {
	c := startControl(t)
	tests := []struct {
		name, method, path, body string
		status                   int
		reason                   string
	}{
		{"another path", http.MethodPost, "/v1/webhook", `{}`, 404, "unknown_path"},
		{"path with a slash", http.MethodPost, pathTest + "/", `{}`, 404, "unknown_path"},
		{"GET", http.MethodGet, pathTest, "", 405, "method_not_allowed"},
		{"PUT", http.MethodPut, pathReplay, "", 405, "method_not_allowed"},
		{"nothing", http.MethodPost, pathTest, "", 400, "bad_request"},
		{"no JSON", http.MethodPost, pathTest, "receiver=ops", 400, "bad_request"},
		{"a list", http.MethodPost, pathTest, `["ops"]`, 400, "bad_request"},
		{"half", http.MethodPost, pathTest, `{"receiver": "o`, 400, "bad_request"},
		{"two", http.MethodPost, pathTest, `{"receiver": "ops"} {}`, 400, "bad_request"},
		{"number", http.MethodPost, pathTest, `{"receiver": 5}`, 400, "bad_request"},
		{"unknown field", http.MethodPost, pathTest, `{"receiver": "ops", "url": "https://evil.example.com"}`, 400, "bad_request"},
		{"no receiver", http.MethodPost, pathTest, `{}`, 400, "bad_request"},
		{"no event", http.MethodPost, pathReplay, `{"receiver": "ops"}`, 400, "bad_request"},
		{"huge", http.MethodPost, pathTest, `{"receiver": "` + strings.Repeat("x", maxControlBody) + `"}`, 413, "too_large"},
		{"huge after it", http.MethodPost, pathTest, `{"receiver": "ops"}` + strings.Repeat(" ", maxControlBody), 413, "too_large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := c.do(tt.method, tt.path, controlToken, tt.body)
			assert.Equal(t, tt.status, resp.StatusCode)
			assert.Contains(t, body, fmt.Sprintf(`"reason":%q`, tt.reason))
		})
	}
	assert.Empty(t, c.fake.asked)
}

func TestControlExplains(t *testing.T) {
	dropped := func(why audit.ErrorType) func(context.Context) ([]*audit.Record, error) {
		return func(context.Context) ([]*audit.Record, error) {
			return []*audit.Record{{Receiver: "ops", Outcome: audit.Dropped, ErrorType: why}}, nil
		}
	}
	fails := func(err error) func(context.Context) ([]*audit.Record, error) {
		return func(context.Context) ([]*audit.Record, error) { return nil, err }
	}
	tests := []struct {
		name   string
		answer func(context.Context) ([]*audit.Record, error)
		status int
		reason string
	}{
		{"no such receiver", fails(ErrNoReceiver), 404, "unknown_receiver"},
		{"no such event", fails(ErrNoEvent), 404, "unknown_event"},
		{"no endpoint wants it", fails(ErrNotWanted), 409, "not_wanted"},
		{"disabled", dropped(audit.ErrorGone), 409, "receiver_disabled"},
		{"full", dropped(audit.ErrorQueueFull), 503, "queue_full"},
		{"shutting down", dropped(audit.ErrorShutdown), 503, "shutdown"},
		{"waits for ever", fails(fmt.Errorf("ops: %w", context.DeadlineExceeded)), 503, "not_tried_yet"},
		{"anything", fails(errors.New("https://hooks.example.com/SECRET")), 503, "unavailable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := startControl(t)
			c.fake.answer = tt.answer
			for path, body := range map[string]string{pathTest: `{"receiver": "ops"}`, pathReplay: `{"event_id": "x"}`} {
				resp, got := c.do(http.MethodPost, path, controlToken, body)
				assert.Equal(t, tt.status, resp.StatusCode)
				assert.Contains(t, got, fmt.Sprintf(`"reason":%q`, tt.reason))
				assert.NotContains(t, got, "SECRET")
			}
		})
	}
}

func TestControlIsBounded(t *testing.T) {
	c := startControl(t)
	c.limiter = rate.NewLimiter(0, 3)
	for i := range 5 {
		resp, body := c.do(http.MethodPost, pathTest, controlToken, `{"receiver": "ops"}`)
		if i < 3 {
			assert.Equal(t, http.StatusOK, resp.StatusCode)
			continue
		}
		assert.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
		assert.Equal(t, "1", resp.Header.Get("Retry-After"))
		assert.Contains(t, body, "too_many_requests")
	}
	assert.Len(t, c.fake.asked, 3)
	resp, _ := c.do(http.MethodPost, pathTest, "wrong", "")
	assert.Equal(t, http.StatusUnauthorized, resp.StatusCode)

	conn, err := net.Dial("tcp", c.address.String())
	require.NoError(t, err)
	defer conn.Close()
	_, _ = conn.Write([]byte("POST / HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"))
	answer := make([]byte, 512)
	n, _ := io.ReadFull(conn, answer)
	assert.True(t, n == 0 || bytes.Contains(answer[:n], []byte(" 431 ")), "headers are bounded: %s", answer[:n])
}

func TestControlShutdownDoesNotWait(t *testing.T) {
	c := startControl(t)
	entered := make(chan struct{})
	c.fake.answer = func(ctx context.Context) ([]*audit.Record, error) {
		close(entered)
		<-ctx.Done()
		return nil, fmt.Errorf("ops has not been tried yet: %w", ctx.Err())
	}
	answered := make(chan string)
	go func() {
		resp, body := c.do(http.MethodPost, pathTest, controlToken, `{"receiver": "ops"}`)
		answered <- fmt.Sprint(resp.StatusCode, body)
	}()
	<-entered
	c.Shutdown()
	assert.Contains(t, <-answered, "shutting_down")
	_, err := net.Dial("tcp", c.address.String())
	assert.Error(t, err, "nobody listens any more")
}

func TestControlTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	c := newControlTest(t, Config{Endpoint: "127.0.0.1:0", TokenFile: file})
	assert.ErrorContains(t, c.Start(), "control_token_file: cannot be read")
	for _, short := range []string{"", "\n", "short", strings.Repeat("x", 10_000), "white space inside it"} {
		require.NoError(t, os.WriteFile(file, []byte(short), 0o600))
		assert.ErrorContains(t, c.Start(), "control_token_file: h")
	}
	require.NoError(t, os.WriteFile(file, []byte(controlToken+"\n"), 0o600))
	require.NoError(t, c.Start())
	ask := func(token string) int {
		resp, _ := c.do(http.MethodPost, pathTest, token, `{"receiver": "ops"}`)
		return resp.StatusCode
	}
	assert.Equal(t, http.StatusOK, ask(controlToken))
	require.NoError(t, os.WriteFile(file, []byte("another-token-0123456789"), 0o600))
	assert.Equal(t, http.StatusUnauthorized, ask(controlToken), "the token was rotated")
	assert.Equal(t, http.StatusOK, ask("another-token-0123456789"))
	require.NoError(t, os.Remove(file))
	assert.Equal(t, http.StatusServiceUnavailable, ask("another-token-0123456789"), "without a token nobody comes in")
	assert.Equal(t, http.StatusServiceUnavailable, ask(""))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	assert.Equal(t, http.StatusServiceUnavailable, ask(""), "an empty file is no empty token")
}

func TestValidateControl(t *testing.T) {
	for _, c := range []Config{
		{},
		{Endpoint: "localhost:8481", Token: controlToken},
		{Endpoint: "127.0.0.1:8481", TokenFile: "/run/token"},
		{Endpoint: "[::1]:8481", Token: "0123456789abcdef"},
		{Endpoint: "0.0.0.0:8481", Token: controlToken},
	} {
		assert.NoError(t, c.Validate(), c.Endpoint)
	}
	for want, c := range map[string]Config{
		"control_endpoint: is not host:port":          {Endpoint: "localhost", Token: controlToken},
		"control_endpoint: names no host":             {Endpoint: ":8481", Token: controlToken},
		`control_endpoint: port "x"`:                  {Endpoint: "localhost:x", Token: controlToken},
		`control_endpoint: port "0"`:                  {Endpoint: "localhost:0", Token: controlToken},
		"control_token: is missing":                   {Endpoint: "localhost:8481"},
		"control_token: has 15 characters":            {Endpoint: "localhost:8481", Token: "SECRET789abcdef"},
		"control_token: holds other characters":       {Endpoint: "localhost:8481", Token: "SECRET 0123456789"},
		"control_token: is set beside":                {Endpoint: "localhost:8481", Token: controlToken, TokenFile: "/run/token"},
		"control_token: means nothing without":        {Token: controlToken},
		"control_token: means nothing without contro": {TokenFile: "/run/token"},
	} {
		t.Run(want, func(t *testing.T) {
			err := c.Validate()
			require.ErrorContains(t, err, want)
			assert.NotContains(t, err.Error(), "SECRET")
		})
	}
	text, err := json.Marshal(Config{Token: controlToken})
	require.NoError(t, err)
	assert.NotContains(t, string(text), "SECRET")
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", Config{Token: controlToken}, Config{Token: configopaque.String(controlToken)}, Config{Token: controlToken}), "SECRET")
}

func TestControlEndpointThatIsTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	c := newControlTest(t, Config{Endpoint: listener.Addr().String(), Token: controlToken})
	assert.ErrorContains(t, c.Start(), "control_endpoint: ")
}

func TestControlIsOffByDefault(t *testing.T) {
	c := newControlTest(t, Config{})
	require.NoError(t, c.Start())
	assert.Nil(t, c.address)
}

// The default limits stand: a test event may be sent at once, not without end.
func TestControlRate(t *testing.T) {
	c := New(Config{}, nil, nil, zap.NewNop())
	now := time.Now()
	assert.True(t, c.limiter.AllowN(now, controlBurst))
	assert.False(t, c.limiter.AllowN(now, 1))
	assert.True(t, c.limiter.AllowN(now.Add(time.Second), controlRate))
}
