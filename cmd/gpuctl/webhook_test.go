// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testToken = "token-SECRET-0123456789"

// asked is what a control endpoint was asked.
type asked struct {
	method, path, token, body string
}

// controlServer answers every request the same.
func controlServer(t *testing.T, status int, answer string) (*httptest.Server, *[]asked) {
	var all []asked
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		all = append(all, asked{r.Method, r.URL.Path, r.Header.Get("Authorization"), string(body)})
		if status/100 == 3 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server, &all
}

// ask runs a command as the shell would.
func ask(args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = newRoot().execute(context.Background(), streams{strings.NewReader(""), &o, &e}, args)
	return code, o.String(), e.String()
}

const (
	delivered = `{"records": [{"id": "0195-rec", "receiver": "ops", "attempt": 1, "max_attempts": 1, "outcome": "succeeded", "status": 200, "total_seconds": 0.1234}]}`
	refused   = `{"records": [{"id": "0195-rec", "receiver": "ops", "attempt": 1, "max_attempts": 5, "outcome": "failed", "status": 503, "error.type": "http_5xx", "next_attempt": "2026-03-04T05:06:07Z", "total_seconds": 2}]}`
	half      = `{"records": [{"receiver": "a", "outcome": "succeeded", "status": 204}, {"receiver": "b", "outcome": "blocked", "error.type": "ssrf_blocked"}]}`
)

func TestWebhookTest(t *testing.T) {
	t.Setenv(tokenVariable, testToken)
	server, all := controlServer(t, 200, delivered)
	code, out, errOut := ask("webhook", "test", "ops", "--endpoint", server.URL)
	assert.Equal(t, exitOK, code)
	assert.Equal(t, "ops: delivered (status 200, 123ms, audit record 0195-rec)\n", out)
	assert.Empty(t, errOut)
	assert.Equal(t, []asked{{"POST", "/v1/webhook/test", "Bearer " + testToken, `{"receiver":"ops"}`}}, *all)
}

func TestWebhookReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(testToken+"\n"), 0o600))
	t.Setenv(tokenVariable, "another-token-0123456789")
	server, all := controlServer(t, 200, delivered)
	code, _, _ := ask("webhook", "replay", "0195-event", "--endpoint", server.URL+"/", "--token-file", file)
	assert.Equal(t, exitOK, code)
	code, _, _ = ask("webhook", "replay", "--receiver", "ops", "--endpoint", server.URL, "--token-file", file, "0195-event")
	assert.Equal(t, exitOK, code)
	assert.Equal(t, []asked{
		{"POST", "/v1/webhook/replay", "Bearer " + testToken, `{"event_id":"0195-event","receiver":""}`},
		{"POST", "/v1/webhook/replay", "Bearer " + testToken, `{"event_id":"0195-event","receiver":"ops"}`},
	}, *all)
}

func TestWebhookExitCodes(t *testing.T) {
	problem := func(reason string) string {
		return `{"error": {"reason": "` + reason + `", "message": "it is so"}}`
	}
	tests := []struct {
		name, answer string
		status, code int
		out, errOut  string
	}{
		{"delivered", delivered, 200, exitOK, "ops: delivered", ""},
		{"not delivered", refused, 200, exitFailed, "ops: not delivered: failed, http_5xx (status 503, 2s, audit record 0195-rec); attempt 2 of 5 follows at 2026-03-04T05:06:07Z", ""},
		{"one of two", half, 200, exitFailed, "a: delivered (status 204, 0s, audit record )\nb: not delivered: blocked, ssrf_blocked (no answer", ""},
		{"a remedy", half, 200, exitFailed, "\n  its address is closed by default (private, loopback, link-local, metadata, or a port outside allow_ports): if it is yours, add its range to allow_cidrs\n", ""},
		{"a remedy with its name", `{"records": [{"receiver": "ops", "outcome": "dropped", "error.type": "gone"}]}`, 200, exitFailed, "if that was a mistake, gpuctl webhook enable ops;", ""},
		{"disabled", `{"error": {"reason": "receiver_disabled", "message": "it is so"}, "records": [{"receiver": "ops", "outcome": "dropped", "error.type": "gone"}]}`, 409, exitFailed, "ops: not delivered: dropped, gone", "it is so (receiver_disabled)"},
		{"nobody wants it", problem("not_wanted"), 409, exitFailed, "", "not_wanted"},
		{"still queued", problem("not_tried_yet"), 503, exitFailed, "", "not_tried_yet"},
		{"no token there", problem("token_unavailable"), 503, exitUsage, "", "token_unavailable"},
		{"wrong token", problem("unauthorized"), 401, exitUsage, "", "it is so (unauthorized)"},
		{"no such receiver", problem("unknown_receiver"), 404, exitUsage, "", "unknown_receiver"},
		{"no such event", problem("unknown_event"), 404, exitUsage, "", "unknown_event"},
		{"too often", problem("too_many_requests"), 429, exitUsage, "", "too_many_requests"},
		{"something else", "<html>404</html>", 404, exitUsage, "", "is no control endpoint"},
		{"empty object", "{}", 200, exitUsage, "", "is no control endpoint"},
		{"redirect", "", 307, exitUsage, "", "is no control endpoint"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(tokenVariable, testToken)
			server, all := controlServer(t, tt.status, tt.answer)
			code, out, errOut := ask("webhook", "test", "ops", "--endpoint", server.URL)
			assert.Equal(t, tt.code, code)
			assert.Contains(t, out, tt.out)
			assert.Contains(t, errOut, tt.errOut)
			assert.NotContains(t, out+errOut, "SECRET")
			assert.Len(t, *all, 1, "one request, and no redirect followed")
			if !json.Valid([]byte(tt.answer)) || tt.answer == "{}" {
				return
			}
			jsonCode, jsonOut, _ := ask("webhook", "test", "ops", "--endpoint", server.URL, "-o", "json")
			assert.Equal(t, tt.code, jsonCode)
			assert.JSONEq(t, tt.answer, jsonOut)
		})
	}
}

func TestWebhookUsage(t *testing.T) {
	server, all := controlServer(t, 200, delivered)
	closed := httptest.NewServer(nil)
	closed.Close()
	empty := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	binary := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(binary, []byte("\x00\x01"), 0o600))
	tests := []struct {
		name, token string
		args        []string
		want        string
	}{
		{"no receiver", testToken, []string{"test"}, "name one receiver"},
		{"two receivers", testToken, []string{"test", "a", "b"}, "name one receiver"},
		{"no event", testToken, []string{"replay"}, "name one event"},
		{"no token", "", []string{"test", "ops"}, "there is no token"},
		{"token on the command line", testToken, []string{"test", "ops", "--token", testToken}, "unknown flag"},
		{"no token file", "", []string{"test", "ops", "--token-file", empty + ".none"}, "no such file"},
		{"empty token file", testToken, []string{"test", "ops", "--token-file", empty}, "is empty"},
		{"binary token file", testToken, []string{"test", "ops", "--token-file", binary}, "is no token"},
		{"output", testToken, []string{"test", "ops", "-o", "yaml"}, "is not text or json"},
		{"no address", testToken, []string{"test", "ops", "--endpoint", "localhost:8481"}, "--endpoint is no address"},
		{"address with a password", testToken, []string{"test", "ops", "--endpoint", "http://u:SECRET@localhost:8481"}, "--endpoint is no address"},
		{"closed port", testToken, []string{"test", "ops", "--endpoint", closed.URL}, "nothing answers at 127.0.0.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(tokenVariable, tt.token)
			args := append([]string{"webhook"}, tt.args...)
			if !strings.Contains(strings.Join(args, " "), "--endpoint") {
				args = append(args, "--endpoint", server.URL)
			}
			code, out, errOut := ask(args...)
			assert.Equal(t, exitUsage, code)
			assert.Empty(t, out)
			assert.Contains(t, errOut, tt.want)
			assert.NotContains(t, errOut, "SECRET")
		})
	}
	assert.Empty(t, *all)
}

// The endpoint's answer is shown on a terminal.
func TestWebhookStripsWhatItShows(t *testing.T) {
	t.Setenv(tokenVariable, testToken)
	for _, answer := range []string{
		`{"records": [{"receiver": "o\u001b[31mps\u202e\u200b\n", "outcome": "fai\u001bled", "error.type": "\u0007"}]}`,
		`{"error": {"reason": "a\u001b[2J", "message": "\u202eb\n\u0000"}}`,
	} {
		server, _ := controlServer(t, 409, answer)
		_, out, errOut := ask("webhook", "test", "ops", "--endpoint", server.URL)
		assert.NotContains(t, out+errOut, "\x1b")
		assert.NotContains(t, out+errOut, "\u202e")
		assert.NotContains(t, strings.TrimSuffix(out+errOut, "\n"), "\n")
	}
}
