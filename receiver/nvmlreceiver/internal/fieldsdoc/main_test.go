// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/nvmlreceiver/internal/nvml"
)

// TestUpToDate fails when fields.md is not what the table states.
func TestUpToDate(t *testing.T) {
	text, err := os.ReadFile("../../fields.md")
	require.NoError(t, err)
	assert.Equal(t, markdown(), string(text), "run go generate in receiver/nvmlreceiver")
}

func TestComplete(t *testing.T) {
	text := markdown()
	for _, r := range nvmlproto.Readings {
		assert.GreaterOrEqual(t, strings.Count(text, "`"+r.Name+"`"), 3, "%s: what it becomes, the field and the call", r.Name)
	}
	for _, s := range nvml.Table.Series {
		assert.Contains(t, text, "`"+s.Metric.Name+"`")
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") {
			assert.True(t, strings.HasSuffix(line, " |\n"), line)
		}
	}
}
