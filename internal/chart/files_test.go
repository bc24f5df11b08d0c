// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	root  = "../.."
	chart = root + "/charts/otelcol-gpu"
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(text)
}

// What a cluster runs is what config/ and mixin/ are tested with: the chart has
// copies, and no others. One is of values.yaml, which templates cannot read.
func TestFilesAreCopies(t *testing.T) {
	origin := map[string]string{".": "config", "dashboards": "mixin/dashboards", "rules": "mixin/rules"}
	found := map[string]int{}
	err := filepath.WalkDir(filepath.Join(chart, "files"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		below, err := filepath.Rel(filepath.Join(chart, "files"), path)
		require.NoError(t, err)
		folder := filepath.ToSlash(filepath.Dir(below))
		require.Contains(t, origin, folder, below)
		found[folder]++
		if below == "values.yaml" {
			assert.Equal(t, read(t, chart, below), read(t, path), "%s: run make generate", below)
			return nil
		}
		assert.Equal(t, read(t, root, origin[folder], filepath.Base(path)), read(t, path), "%s: run make generate", below)
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, 16, found["."], "those that the Makefile names")
	for _, folder := range []string{"dashboards", "rules"} {
		originals, err := os.ReadDir(filepath.Join(root, origin[folder]))
		require.NoError(t, err)
		assert.Len(t, originals, found[folder], "files/%s: run make generate", folder)
	}
}

// Helm promises no order of templates: each fills in the values that are absent.
func TestTemplatesBeginWithTheDefaults(t *testing.T) {
	rendered := 0
	err := filepath.WalkDir(filepath.Join(chart, "templates"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) == ".tpl" {
			return err
		}
		rendered++
		_, text, comment := strings.Cut(read(t, path), "*/ -}}\n")
		if !comment {
			text = read(t, path)
		}
		assert.True(t, strings.HasPrefix(text, `{{- include "otelcol-gpu.defaults" . -}}`), "%s", path)
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, rendered, 30)
}
