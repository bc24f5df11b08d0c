// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/gaudireceiver/internal/gaudi"
)

// TestUpToDate fails when fields.md is not what the table states.
func TestUpToDate(t *testing.T) {
	text, err := os.ReadFile("../../fields.md")
	require.NoError(t, err)
	assert.Equal(t, markdown(), string(text), "run go generate in receiver/gaudireceiver")
}

func TestComplete(t *testing.T) {
	text := markdown()
	for _, f := range gaudi.Table.Fields {
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			assert.Contains(t, text, "`"+name+"`")
		}
	}
	for _, s := range gaudi.Table.Series {
		assert.Contains(t, text, "`"+s.Metric.Name+"`")
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") {
			assert.True(t, strings.HasSuffix(line, " |\n"), line)
		}
	}
}
