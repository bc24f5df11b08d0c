// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// The outcome of an attack decides the last line and the error: one that could not
// be played is no success of the defence.
func TestRunCounts(t *testing.T) {
	result := func(achieved []string, err error) func(context.Context, *lab) ([]string, error) {
		return func(context.Context, *lab) ([]string, error) { return achieved, err }
	}
	all := attacks
	t.Cleanup(func() { attacks = all })
	for _, c := range []struct {
		name    string
		attacks []attack
		last    string
		wrong   bool
	}{
		{"held", []attack{{"a", result(nil, nil)}, {"b", result(nil, nil)}}, "attacks 2, succeeded 0", false},
		{"succeeded", []attack{{"a", result(nil, nil)}, {"b", result([]string{"x"}, nil)}}, "attacks 2, succeeded 1", true},
		{"not played", []attack{{"a", result(nil, errors.New("no port"))}}, "attacks 1, succeeded 0", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			attacks = c.attacks
			var out bytes.Buffer
			err := Run(t.Context(), Options{Dir: t.TempDir(), Out: &out})
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			assert.Equal(t, c.last, lines[len(lines)-1])
			if c.wrong {
				require.ErrorIs(t, err, ErrSucceeded)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	r := pmetricotlp.NewExportRequest()
	require.NoError(t, r.UnmarshalProto(request(identity, forgeries()...)))
	assert.Equal(t, len(ours)*len(disguises)*3, r.Metrics().MetricCount())
	r = pmetricotlp.NewExportRequest()
	require.NoError(t, r.UnmarshalProto(flood("a", 100)))
	assert.Equal(t, 100, r.Metrics().DataPointCount())

	packed := large(1 << 20)
	assert.Less(t, len(packed), 1<<14)
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	text, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	assert.InDelta(t, 1<<20, len(text), 1<<10)
	require.NoError(t, r.UnmarshalJSON(text))
}

// A log that was changed is a chain again, over all of its files.
func TestRechain(t *testing.T) {
	dir := t.TempDir()
	line := func(kind string) string {
		return `{"v":1,"seq":9,"prev_hash":"` + strings.Repeat("a", 64) + `","kind":"` + kind + `"}`
	}
	for name, lines := range map[string][]string{"audit-000001.jsonl": {line("file"), line("record"), line("record")}, "audit.jsonl": {line("file"), line("record")}} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	n := 0
	names, err := rechain(dir, func(line string) (string, bool) { n++; return line, n != 2 })
	require.NoError(t, err)
	assert.Equal(t, []string{"audit-000001.jsonl", "audit.jsonl"}, names)
	first, err := linesOf(filepath.Join(dir, names[0]))
	require.NoError(t, err)
	second, err := linesOf(filepath.Join(dir, names[1]))
	require.NoError(t, err)
	require.Len(t, first, 2)
	assert.Contains(t, first[0], `"seq":1,"prev_hash":"`+strings.Repeat("0", 64))
	assert.Contains(t, first[1], `"seq":2,"prev_hash":"`+digest(first[0]))
	assert.Contains(t, second[0], `"seq":3,"prev_hash":"`+digest(first[1]))

	require.NoError(t, forgeRemoval(dir, names, 1))
	second, err = linesOf(filepath.Join(dir, names[1]))
	require.NoError(t, err)
	assert.Contains(t, second[len(second)-1], `"kind":"removed"`)
	assert.Contains(t, second[len(second)-1], `"last_seq":2,"head":"`+digest(first[1]))
}

func TestReserved(t *testing.T) {
	for name, want := range map[string]bool{"hw_gpu_utilization_ratio": true, "up": true, "device:gpu_xid_errors:max": true, "upload_bytes": false, "http_server_requests": false} {
		assert.Equal(t, want, reserved(name), name)
	}
}
