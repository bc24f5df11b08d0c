// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/logfile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keyPair is a checkpoint key with its public key.
func keyPair(t testing.TB) (*checkpoint.Key, *checkpoint.PublicKeys) {
	t.Helper()
	private, public, err := checkpoint.GenerateKey("prod/gateway")
	require.NoError(t, err)
	key, err := checkpoint.ParseKey(private)
	require.NoError(t, err)
	keys, err := checkpoint.ParsePublicKeys(public)
	require.NoError(t, err)
	return key, keys
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// sample is a record as the webhook exporter makes them.
func sample() *Record {
	now := time.Now()
	return &Record{
		ID:              newID(),
		Time:            now,
		Events:          []Event{{Name: "gpu.service.partial", ID: newID(), Key: "prod/vllm/partial", Time: now}},
		WebhookID:       "grp_0195",
		TraceID:         "4bf92f3577b34da6a3ce929d0e0e4736",
		Receiver:        "ops-slack",
		URLScheme:       "https",
		URLHost:         "hooks.slack.com",
		URLPort:         443,
		URLFingerprint:  Fingerprint([]byte("key"), "https://hooks.slack.com/services/T/B/x"),
		PeerAddress:     "203.0.113.7:443",
		Format:          "slack",
		Attempt:         1,
		MaxAttempts:     5,
		BodySHA256:      "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		BodySize:        812,
		SignatureKeyIDs: []string{"a1b2c3d4"},
		Outcome:         Failed,
		Status:          503,
		ErrorType:       ErrorHTTP5xx,
		RetryAfter:      3 * time.Second,
		NextAttempt:     now.Add(3 * time.Second),
		Durations: Durations{Queued: 123 * time.Microsecond, DNS: time.Millisecond, Connect: 2 * time.Millisecond,
			TLS: 3 * time.Millisecond, FirstByte: 40 * time.Millisecond, Total: 41 * time.Millisecond},
	}
}

func logPath(t testing.TB) string { return filepath.Join(t.TempDir(), "audit.jsonl") }

func open(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	require.NoError(t, err)
	return l
}

// write appends n records, which must reach the file, and returns their ids.
func write(t testing.TB, l *Log, n int) []string {
	t.Helper()
	var ids []string
	for range n {
		r := sample()
		_, written := l.Append(r)
		require.True(t, written)
		ids = append(ids, r.ID)
	}
	return ids
}

func files(t testing.TB, path string) []string {
	t.Helper()
	list, err := logfile.Files(path)
	require.NoError(t, err)
	return list
}

// setAsideFiles are the files that were set aside, sorted.
func setAsideFiles(t testing.TB, path string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(filepath.Dir(path), "audit.set-aside-*"))
	require.NoError(t, err)
	return list
}

func verified(t testing.TB, path string, o verify.Options) *verify.Report {
	t.Helper()
	report, err := verify.Files(o, files(t, path)...)
	require.NoError(t, err)
	return report
}

// requireClean checks the whole log at path.
func requireClean(t testing.TB, path string, keys *checkpoint.PublicKeys) *verify.Report {
	t.Helper()
	report := verified(t, path, verify.Options{PublicKeys: keys})
	require.Nil(t, report.Break, "%+v", report.Break)
	return report
}

func kinds(report *verify.Report) []verify.FindingKind {
	var list []verify.FindingKind
	for _, f := range report.Facts {
		list = append(list, f.Kind)
	}
	return list
}

// linesOf reads a file's lines, without their line feeds.
func linesOf(t testing.TB, path string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return bytes.Split(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\n'})
}

func writeLines(t testing.TB, path string, lines [][]byte) {
	t.Helper()
	text := append(bytes.Join(lines, []byte{'\n'}), '\n')
	if len(lines) == 0 {
		text = nil
	}
	require.NoError(t, os.WriteFile(path, text, 0o600))
}

// tags are the struct tags of a body.
func tags(body any) string {
	var all string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(body)) {
		all += string(f.Tag) + " "
	}
	return all
}
