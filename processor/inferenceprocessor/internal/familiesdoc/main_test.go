// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUpToDate fails when families.md is not what the table states.
func TestUpToDate(t *testing.T) {
	text, err := os.ReadFile("../../families.md")
	require.NoError(t, err)
	assert.True(t, markdown() == string(text), "families.md is old: run go generate in processor/inferenceprocessor")
}
