// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
)

// TestUpToDate fails when fields.md is not what the table states.
func TestUpToDate(t *testing.T) {
	text, err := os.ReadFile("../../fields.md")
	require.NoError(t, err)
	assert.Equal(t, markdown(), string(text), "run go generate in receiver/dcgmreceiver")
}

func TestComplete(t *testing.T) {
	text := markdown()
	for _, f := range dcgm.Table.Fields {
		names := append([]string{f.Name}, f.Aliases...)
		for _, v := range f.Variants {
			names = append(names, v.Name)
		}
		for _, name := range names {
			assert.Contains(t, text, "`"+strings.Replace(name, "%d", "0", 1)+"`")
		}
	}
	for _, s := range dcgm.Table.Series {
		assert.Contains(t, text, "`"+s.Metric.Name+"`")
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") {
			assert.True(t, strings.HasSuffix(line, " |\n"), line)
		}
	}
}
