// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRecordsAreLinesInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(Options{Path: path})
	require.NoError(t, err)
	seq, written := l.Append(&Record{ID: "a"})
	assert.True(t, written)
	assert.EqualValues(t, 3, seq, "after the lines that begin the file and the writing")
	l.Write(&Record{ID: "b"})
	assert.Equal(t, map[string]bool{"a": true, "b": true}, l.Contains([]string{"a", "b", "c"}))
	require.NoError(t, l.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	t.Log(string(text))
	assert.Equal(t, 5, strings.Count(string(text), "\n"))
}
