// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/checkpoint"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit/codec/codectest"
)

// Each byte behind a fault is hashed once, however many lines claim to close it
// off.
func TestVerifyHashesLinearly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	text, seq, head := codectest.Lines(2)
	end := len(text)
	text = append(text, "torn\n"...)
	for range 500 {
		body, err := json.Marshal(codec.TornBody{Bytes: int64(len(text) - end), SHA256: strings.Repeat("0", 64)})
		require.NoError(t, err)
		text = codec.Append(text, codec.Envelope{Seq: seq + 1, Prev: head, Kind: codec.KindTorn}, body)
	}
	require.NoError(t, os.WriteFile(path, text, 0o600))
	in, err := newReader(os.Open, []string{path})
	require.NoError(t, err)
	defer in.close()
	v := newVerifier(Options{}, in)
	require.NoError(t, v.run())
	require.NotNil(t, v.report.Break)
	assert.Positive(t, v.hashed)
	assert.LessOrEqual(t, v.hashed, int64(len(text)))
}

// No text of a log reaches a reader with control characters in it.
func TestTextsOfALogAreSafeToShow(t *testing.T) {
	escape := "\x1b[2K\x1b[1Gclean: 401 records\u202e"
	text, seq, head := codectest.Lines(2)
	c, _ := json.Marshal(codec.CheckpointBody{Origin: "prod", Count: seq, Head: head.String(), KeyID: escape})
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	require.NoError(t, os.WriteFile(path, codec.Append(text, codec.Envelope{Seq: seq + 1, Prev: head, Kind: codec.KindCheckpoint}, c), 0o600))
	report, err := Files(Options{}, path)
	require.NoError(t, err)
	require.NotNil(t, report.LastCheckpoint)
	v := newVerifier(Options{}, &reader{})
	found := v.finding(&item{file: &source{}}, Edited, "%s", escape)
	for _, shown := range []string{report.LastCheckpoint.KeyID, found.Detail} {
		assert.NotContains(t, shown, "\x1b")
		assert.NotContains(t, shown, "\u202e")
	}
}

// The verification of a large log shows its progress.
func TestVerifyReportsProgress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	text, _, _ := codectest.Lines(2*progressEvery + 1)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	var seen []uint64
	_, err := Files(Options{Progress: func(lines uint64) { seen = append(seen, lines) }}, path)
	require.NoError(t, err)
	assert.Equal(t, []uint64{progressEvery, 2 * progressEvery}, seen)
}

// FuzzVerify reads anything without a panic.
func FuzzVerify(f *testing.F) {
	text, _, _ := codectest.Lines(4)
	f.Add(text, []byte("x"))
	f.Add(text[:len(text)-9], text)
	f.Add([]byte(`{"v":1,"seq":1,"prev_hash":"`+strings.Repeat("0", 64)+`","kind":"checkpoint","time":"2026-03-04T05:06:07Z","origin":"a","count":0,"head":"`+strings.Repeat("0", 64)+`","key_id":"","note":"a\n0\n\n\n— a AAAA\n"}`+"\n"), []byte(nil))
	f.Add([]byte(`{"v":2,"seq":1}`+"\n"), []byte("\x00"))
	_, public, err := checkpoint.GenerateKey("prod/gateway")
	require.NoError(f, err)
	keys, err := checkpoint.ParsePublicKeys(public)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		dir := t.TempDir()
		one, two := filepath.Join(dir, "audit-000001.jsonl"), filepath.Join(dir, "audit.jsonl")
		require.NoError(t, os.WriteFile(one, a, 0o600))
		require.NoError(t, os.WriteFile(two, b, 0o600))
		for _, o := range []Options{{}, {PublicKeys: keys, Anchors: []Anchor{{Count: 2, Head: "x"}}}} {
			report, err := Files(o, two, one)
			require.NoError(t, err)
			if report.Break != nil {
				require.Positive(t, report.Break.Line)
			}
		}
	})
}
