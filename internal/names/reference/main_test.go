// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	sources = ".."
	docs    = "../../../docs/reference"
)

func TestReferenceIsCurrent(t *testing.T) {
	is, err := os.ReadFile(filepath.Join(docs, "telemetry.md"))
	require.NoError(t, err)
	want, err := rewrite(sources, is)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(is), "run make generate")
	assert.Greater(t, strings.Count(string(want), "| gauge "), 20)
}

// Every attribute of our own namespace is explained in one of the pages.
func TestAttributesAreDocumented(t *testing.T) {
	var pages string
	for _, page := range []string{"telemetry.md", "events.md", "summary.md"} {
		text, err := os.ReadFile(filepath.Join(docs, page))
		require.NoError(t, err)
		pages += string(text)
	}
	checked := 0
	for _, source := range []string{"attributes.go", "usage.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(sources, source), nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if name, err := strconv.Unquote(literal.Value); err == nil && strings.HasPrefix(name, "gpu.") {
					checked++
					assert.Contains(t, pages, "`"+name+"`")
				}
			}
			return true
		})
	}
	assert.Greater(t, checked, 40)
}

func TestRewriteNeedsItsLines(t *testing.T) {
	_, err := rewrite(sources, []byte("# Telemetry\n"))
	assert.ErrorContains(t, err, "want the lines")
}
