// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every module of a binary has a row and at least one text in its folder. The
// binary is this test's own.
func TestEveryModuleHasItsTexts(t *testing.T) {
	binary, err := os.Executable()
	require.NoError(t, err)
	info, err := buildinfo.ReadFile(binary)
	require.NoError(t, err)
	require.NotEmpty(t, info.Deps)

	out := filepath.Join(t.TempDir(), "third-party")
	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("# preact"), 0o600))
	for range 2 { // the second time it replaces its own
		require.NoError(t, write(out, page, []string{binary, binary}))
	}
	table, err := os.ReadFile(filepath.Join(out, "README.md"))
	require.NoError(t, err)
	for _, m := range info.Deps {
		assert.Regexp(t, `(?m)^\| `+m.Path+` \| `+m.Version+` \| \S`, string(table))
		texts, err := os.ReadDir(filepath.Join(out, m.Path+"@"+m.Version))
		require.NoError(t, err)
		assert.NotEmpty(t, texts, m.Path)
	}
	assert.Contains(t, string(table), "| stdlib | ")
	assert.FileExists(t, filepath.Join(out, "console-page.md"))
}

func TestAFolderOfSomethingElseStays(t *testing.T) {
	out := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(out, "thesis.tex"), nil, 0o600))
	binary, err := os.Executable()
	require.NoError(t, err)
	require.ErrorContains(t, write(out, "", []string{binary}), "not a folder of licenses")
	assert.FileExists(t, filepath.Join(out, "thesis.tex"))
}
