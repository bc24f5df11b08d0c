// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryListHasTheRules(t *testing.T) {
	files, err := generate(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.Len(t, files, 6+len(documented()))
	for path, want := range files {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, want, string(got), "%s: run make generate", path)
	}
}

// Every reason has a runbook that people can work with.
func TestEveryReasonHasARunbook(t *testing.T) {
	for _, r := range documented() {
		text := runbook(r)
		assert.NotEmpty(t, r.Doc.Means, r.Name)
		for _, part := range []string{r.Doc.Raised, r.Doc.Cleared, r.Doc.Source, "## What to check\n\n1. ", "## What to do\n\n1. "} {
			assert.NotEmpty(t, part, r.Name)
			assert.Contains(t, text, part, r.Name)
		}
	}
	// And no other reason has one.
	there, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "docs", "runbooks", "health-*.md"))
	require.NoError(t, err)
	assert.Len(t, there, len(documented()))
}
