// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/verify"
)

// gpuctl runs the command and returns its exit code and what it wrote.
func gpuctl(t *testing.T, in string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = newRoot().execute(t.Context(), streams{strings.NewReader(in), &stdout, &stderr}, args)
	return code, stdout.String(), stderr.String()
}

func TestKeygenThenVerify(t *testing.T) {
	dir := t.TempDir()
	key, path := filepath.Join(dir, "key"), filepath.Join(dir, "audit.jsonl")
	code, out, _ := gpuctl(t, "", "audit", "keygen", "--name", "prod/gateway", "--checkpoint", key, "--fingerprint", filepath.Join(dir, "fp"))
	require.Equal(t, exitOK, code)
	assert.NotContains(t, out, "PRIVATE")
	for _, name := range []string{"key", "fp"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode())
	}
	code, _, errOut := gpuctl(t, "", "audit", "keygen", "--fingerprint", key)
	assert.Equal(t, exitUsage, code, "an existing file is not replaced")
	assert.Contains(t, errOut, "exists")

	private, err := os.ReadFile(key)
	require.NoError(t, err)
	checkpoints, err := checkpoint.ParseKey(string(private))
	require.NoError(t, err)
	l, err := audit.Open(audit.Options{Path: path, CheckpointKey: checkpoints, MaxBytes: 3000})
	require.NoError(t, err)
	for range 20 {
		l.Write(&audit.Record{ID: "one", Receiver: "ops"})
	}
	require.NoError(t, l.Close())

	code, out, _ = gpuctl(t, "", "audit", "verify", path, "--public-key-file", key+".pub")
	assert.Equal(t, exitOK, code)
	assert.Contains(t, out, "clean: 20 records in lines 1 to ")
	assert.Contains(t, out, "by prod/gateway (")
	assert.Contains(t, out, "The log ends in good order")
	head := out[strings.Index(out, "Head: ")+len("Head: ") : len(out)-1]
	code, out, _ = gpuctl(t, "", "audit", "verify", path, "--anchor", head)
	assert.Equal(t, exitOK, code)
	assert.Contains(t, out, "Signatures were not checked")

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.Replace(text, []byte(`"receiver":"ops"`), []byte(`"receiver":"spo"`), 1), 0o600))
	code, out, _ = gpuctl(t, "", "audit", "verify", "-o", "json", path)
	assert.Equal(t, exitFailed, code)
	var report verify.Report
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.NotNil(t, report.Break)
	assert.Equal(t, verify.Edited, report.Break.Kind)
	assert.Equal(t, path, report.Break.File)
	code, out, _ = gpuctl(t, "", "audit", "verify", path)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, out, "BROKEN: "+path+":")
}

// A log can be checked at any moment of its life, also in the middle of a
// rotation, and is never called broken for that. One rotation changes the files three
// times (renamed, created, the oldest removed), which is less often than they are read.
func TestVerifyWhileTheLogIsRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	options := audit.Options{Path: path, MaxBytes: 3000, MaxFiles: 4}
	rotations := 0
	for range 60 {
		l, err := audit.Open(options)
		require.NoError(t, err)
		before, err := os.Stat(path)
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() {
			l.Write(&audit.Record{ID: strings.Repeat("one", 200), Receiver: "ops"})
			done <- l.Close()
		}()
		report, err := verifyFiles(verify.Options{}, []string{path})
		require.NoError(t, <-done)
		require.NoError(t, err)
		require.True(t, report.Clean(), "%+v", report.Break)
		after, err := os.Stat(path)
		require.NoError(t, err)
		if !os.SameFile(before, after) {
			rotations++
		}
	}
	files, err := expand([]string{path})
	require.NoError(t, err)
	assert.Greater(t, rotations, len(files), "old files were removed as well")
}

// What an attacker wrote into a log reaches no terminal as it is.
func TestVerifyPrintsNoControlCharactersOfALog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := audit.Open(audit.Options{Path: path})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	head, log, _ := bytes.Cut(whole, []byte(`"log":"`))
	forged := append(append(append([]byte{}, head...), `"log":"\u001b[2K\u001b[1Gclean: 401 records\u001b[8m`...), log[36:]...)
	require.NoError(t, os.WriteFile(path, append(forged, whole...), 0o600))
	for _, output := range []string{"text", "json"} {
		code, out, _ := gpuctl(t, "", "audit", "verify", path, "-o", output)
		assert.Equal(t, exitFailed, code)
		assert.NotContains(t, out, "\x1b")
		assert.NotContains(t, out, "401")
	}
}

func TestAnEmptyLogIsNoCleanOne(t *testing.T) {
	dir := t.TempDir()
	path, key := filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	code, _, _ := gpuctl(t, "", "audit", "keygen", "--name", "prod", "--checkpoint", key)
	require.Equal(t, exitOK, code)
	code, out, _ := gpuctl(t, "", "audit", "verify", path, "--anchor", "12:"+strings.Repeat("ab", 32))
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, out, "anchor_mismatch")
	code, out, _ = gpuctl(t, "", "audit", "verify", path, "--public-key-file", key+".pub")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, out, "unsigned")
	code, out, _ = gpuctl(t, "", "audit", "verify", path)
	assert.Equal(t, exitOK, code)
	assert.Contains(t, out, "there is no line")
}

func TestFingerprintIsThatOfTheTrimmedURL(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("ab", 32)+"\n"), 0o600))
	code, out, _ := gpuctl(t, "https://hooks.example.com/x\n", "audit", "fingerprint", "--key-file", key)
	require.Equal(t, exitOK, code)
	assert.Equal(t, audit.Fingerprint(bytes.Repeat([]byte{0xab}, 32), "https://hooks.example.com/x")+"\n", out)
}

func TestErrorsOfUsage(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk")
	require.NoError(t, os.WriteFile(junk, []byte("junk\n"), 0o600))
	for want, args := range map[string][]string{
		"Commands:":             {},
		`no command "x"`:        {"x"},
		`no command "y"`:        {"audit", "y"},
		"name the audit file":   {"audit", "verify"},
		"unknown flag":          {"audit", "verify", "--nothing"},
		"neither text nor json": {"audit", "verify", junk, "-o", "xml"},
		"no such file":          {"audit", "verify", filepath.Join(dir, "none", "x")},
		"file does not exist":   {"audit", "verify", filepath.Join(dir, "none")},
		"public checkpoint key": {"audit", "verify", junk, "--public-key-file", junk},
		"is not COUNT:HEAD":     {"audit", "verify", junk, "--anchor", "12:x"},
		"needs a --name":        {"audit", "keygen", "--checkpoint", filepath.Join(dir, "k")},
		"name a file with":      {"audit", "keygen"},
		"not a fingerprint key": {"audit", "fingerprint", "--key-file", junk},
		"name the key":          {"audit", "fingerprint"},
		"1 to 127 letters":      {"audit", "keygen", "--name", "a b", "--checkpoint", filepath.Join(dir, "k")},
	} {
		code, out, errOut := gpuctl(t, "", args...)
		assert.Equal(t, exitUsage, code, want)
		assert.Contains(t, errOut, want)
		assert.Empty(t, out)
	}
	code, out, _ := gpuctl(t, "", "audit", "verify", "--help")
	assert.Equal(t, exitOK, code)
	assert.Contains(t, out, "Usage: gpuctl audit verify FILE…")
	code, out, _ = gpuctl(t, "", "version")
	assert.Equal(t, exitOK, code)
	assert.True(t, strings.HasPrefix(out, "gpuctl "))
	code, out, _ = gpuctl(t, "", "audit", "verify", junk)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, out, "malformed")
}
