// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadRecords(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("audit-000002.jsonl", `{"v":1,"seq":3,"kind":"record","id":"r2","time":"2026-03-04T12:00:02Z","events":[{"id":"e1"},{"id":"e2"}],"receiver":"ops","attempt":1,"outcome":"failed","status":503,"error.type":"http_5xx","next_attempt":"2026-03-04T12:00:05Z"}
{"v":1,"se
{"v":1,"seq":4,"kind":"torn"}
`)
	write("audit-000001.jsonl", `{"v":1,"seq":1,"kind":"file"}
{"v":1,"seq":2,"kind":"record","id":"r1","time":"2026-03-04T12:00:01Z","events":[{"id":"e1"}],"receiver":"ops","attempt":0,"outcome":"dropped","status":0,"error.type":"queue_full"}
`)
	write("audit.jsonl", `{"v":1,"seq":5,"kind":"checkpoint"}
{"v":1,"seq":6,"kind":"record","id":"r3","time":"2026-03-04T12:00:05.5Z","events":[{"id":"e1"}],"receiver":"ops","body_sha256":"abc","attempt":2,"outcome":"succeeded","status":200}
`)
	write("other.jsonl", "not of this log")

	files, err := auditFiles(filepath.Join(dir, "audit.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 3)
	records, kinds, err := readRecords(files)
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"file": 1, "torn": 1, "checkpoint": 1, "unreadable": 1}, kinds)
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	assert.Equal(t, []Record{
		{ID: "r1", Time: noon.Add(time.Second), EventIDs: []string{"e1"}, Receiver: "ops", Outcome: "dropped", ErrorType: "queue_full"},
		{ID: "r2", Time: noon.Add(2 * time.Second), EventIDs: []string{"e1", "e2"}, Receiver: "ops", Attempt: 1, Outcome: "failed", Status: 503, ErrorType: "http_5xx", NextAttempt: noon.Add(5 * time.Second)},
		{ID: "r3", Time: noon.Add(5500 * time.Millisecond), EventIDs: []string{"e1"}, Receiver: "ops", Body: "abc", Attempt: 2, Outcome: "succeeded", Status: 200},
	}, records)
}

func TestSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	aside := filepath.Join(filepath.Dir(path), "audit.set-aside-20260304T050607Z-000001.jsonl")
	for _, file := range []string{path, filepath.Join(filepath.Dir(path), "audit-000001.jsonl"), aside} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	found, err := SetAside(path)
	require.NoError(t, err)
	assert.Equal(t, []string{aside}, found)
	files, err := auditFiles(path)
	require.NoError(t, err)
	assert.NotContains(t, files, aside)
}

// A record without its subject must not pass for one with
// nothing bad.
func TestReadRecordsWithoutEvents(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"kind":"record","id":"r1","outcome":"succeeded"}`+"\n"), 0o600))
	_, _, err := readRecords([]string{file})
	assert.ErrorContains(t, err, "line 1: a record without id, events or outcome")
}
