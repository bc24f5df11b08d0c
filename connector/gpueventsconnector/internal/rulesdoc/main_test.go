// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/board"
)

func TestEveryListHasTheRules(t *testing.T) {
	files, err := generate(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.Len(t, files, 6+len(board.Reasons))
	for path, want := range files {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, want, string(got), "%s: run make generate", path)
	}
}

// Every reason has a runbook that people can work with.
func TestEveryReasonHasARunbook(t *testing.T) {
	for _, r := range board.Reasons {
		text := runbook(r)
		assert.NotEmpty(t, r.Doc.Means, r.Name)
		for _, part := range []string{r.Doc.Raised, r.Doc.Cleared, r.Doc.Source, "## What to check\n\n1. ", "## What to do\n\n1. "} {
			assert.NotEmpty(t, part, r.Name)
			assert.Contains(t, text, part, r.Name)
		}
		assert.FileExists(t, filepath.Join("..", "..", "..", "..", "docs", "runbooks", runbookOf(r)))
	}
}
