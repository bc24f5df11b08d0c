// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"
)

const (
	verifyDoc      = "../../../../docs/webhooks.md"
	verifyExamples = "../../../../docs/examples/verify"
)

// What people copy from the document is what the other test runs.
func TestDocumentShowsTheExamples(t *testing.T) {
	doc, err := os.ReadFile(verifyDoc)
	require.NoError(t, err)
	for file, language := range map[string]string{"verify.go": "go", "verify.py": "python", "verify.mjs": "js"} {
		code, err := os.ReadFile(filepath.Join(verifyExamples, file))
		require.NoError(t, err)
		assert.Contains(t, string(doc), "```"+language+"\n"+string(code)+"```\n", "%s is not shown as it is", file)
	}
}

// verifier runs one example, and reports whether it accepted the request.
type verifier func(t *testing.T, secret, id, timestamp, signatures string, body []byte) bool

// newVerifier makes the example ready, or skips where its language is not at
// hand.
func newVerifier(t *testing.T, runtime string, args ...string) verifier {
	path, err := exec.LookPath(runtime)
	if err != nil {
		t.Skipf("no %s here: its example was not run", runtime)
	}
	command := append([]string{path}, args...)
	if runtime == "go" {
		program := filepath.Join(t.TempDir(), "verify")
		build := exec.CommandContext(t.Context(), path, "build", "-o", program, filepath.Join(verifyExamples, "verify.go"))
		out, err := build.CombinedOutput()
		require.NoError(t, err, string(out))
		command = []string{program}
	}
	return func(t *testing.T, secret, id, timestamp, signatures string, body []byte) bool {
		cmd := exec.CommandContext(t.Context(), command[0], append(command[1:len(command):len(command)], id, timestamp, signatures)...)
		cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+secret)
		cmd.Stdin = bytes.NewReader(body)
		out, err := cmd.CombinedOutput()
		text := strings.TrimSpace(string(out))
		if err == nil {
			assert.Equal(t, "accepted", text)
			return true
		}
		assert.True(t, strings.HasPrefix(text, "refused: "), "it must refuse, and not break: %s", text)
		return false
	}
}

// The documented examples accept what our signer signed, and nothing else.
func TestExamplesVerifyOurSignatures(t *testing.T) {
	body := []byte(`{"type":"gpu.xid","data":{"message":"größer als „alles“, <b>&"}}`)
	sign := func(at time.Time, keys ...configopaque.String) http.Header {
		s, err := New("receivers::x", Config{Standard: keys})
		require.NoError(t, err)
		h := http.Header{}
		s.Sign(h, "0195d4a2-7c1e-7abc-8def-0123456789ab", at, body)
		return h
	}
	old, next := hmacKey(1), hmacKey(2)
	with := func(h http.Header, name, value string) http.Header {
		h = h.Clone()
		h.Set(name, value)
		return h
	}
	type test struct {
		name   string
		header http.Header
		body   []byte
		secret configopaque.String
		want   bool
	}
	// Signed when it is verified: what the examples accept depends on the time.
	signed := func(now time.Time) []test {
		return []test{
			{"as sent", sign(now, old), body, old, true},
			{"while keys change, with the old one", sign(now, old, next), body, old, true},
			{"while keys change, with the new one", sign(now, old, next), body, next, true},
			{"beside an ed25519 signature", sign(now, ed25519Key(7), old), body, old, true},
			{"four minutes late", sign(now.Add(-4*time.Minute), old), body, old, true},
			{"too old", sign(now.Add(-6*time.Minute), old), body, old, false},
			{"from the future", sign(now.Add(6*time.Minute), old), body, old, false},
			{"wrong key", sign(now, old), body, next, false},
			{"wrong key while keys change", sign(now, old, next), body, hmacKey(3), false},
			{"other body", sign(now, old), bytes.Replace(body, []byte("xid"), []byte("xyz"), 1), old, false},
			{"longer body", sign(now, old), append(bytes.Clone(body), '\n'), old, false},
			{"no body", sign(now, old), nil, old, false},
			{"other id", with(sign(now, old), HeaderID, "0195d4a2"), body, old, false},
			{"old request with a new timestamp", with(sign(now.Add(-time.Hour), old), HeaderTimestamp, strconv.FormatInt(now.Unix(), 10)), body, old, false},
			{"timestamp is no number", with(sign(now, old), HeaderTimestamp, "now"), body, old, false},
			{"no timestamp", with(sign(now, old), HeaderTimestamp, ""), body, old, false},
			{"unsigned", sign(now), body, old, false},
			{"only ed25519", sign(now, ed25519Key(7)), body, old, false},
			{"signature without version", with(sign(now, old), HeaderSignature, strings.TrimPrefix(sign(now, old).Get(HeaderSignature), "v1,")), body, old, false},
			{"signature of no sense", with(sign(now, old), HeaderSignature, "v1, ,v1 größe v1,???"), body, old, false},
			{"no secret", sign(now, old), body, "", false},
			{"secret without a key", sign(now, old), body, "whsec_", false},
		}
	}
	for _, example := range []struct {
		runtime string
		args    []string
	}{
		{"go", nil},
		{"python3", []string{filepath.Join(verifyExamples, "verify.py")}},
		{"node", []string{filepath.Join(verifyExamples, "verify.mjs")}},
	} {
		t.Run(example.runtime, func(t *testing.T) {
			accepts := newVerifier(t, example.runtime, example.args...)
			for i := range signed(time.Now()) {
				tt := signed(time.Now())[i]
				got := accepts(t, string(tt.secret), tt.header.Get(HeaderID), tt.header.Get(HeaderTimestamp), tt.header.Get(HeaderSignature), tt.body)
				assert.Equal(t, tt.want, got, tt.name)
			}
		})
	}
}
