// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
)

// The line sets what gpu_allocation reads, and no name can add to it.
func TestHealthClear(t *testing.T) {
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.FixedZone("CET", 3600))
	run := func(args ...string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		code := newHealthClear(func() time.Time { return now }).execute(t.Context(), streams{nil, &stdout, &stderr}, args)
		return code, stdout.String(), stderr.String()
	}
	for want, args := range map[string][]string{
		"2026-11-23T09:00:00Z":                                  {"gpu-1"},
		"2026-11-20T00:00:00Z":                                  {"gpu-1", "--before", "2026-11-20T01:00:00+01:00"},
		"GPU-1=2026-11-23T09:00:00Z":                            {"gpu-1", "--device", "GPU-1"},
		"GPU-1=2026-11-23T09:00:00Z,GPU-2=2026-11-23T09:00:00Z": {"gpu-1", "--device", "GPU-1", "--device", "GPU-2"},
	} {
		code, out, stderr := run(args...)
		require.Equal(t, exitOK, code, stderr)
		assert.Equal(t, "kubectl annotate node gpu-1 --overwrite 'gpu.otelcol-gpu/cleared="+want+"'\n", out)
		all, err := health.ParseCleared(want, now)
		require.NoError(t, err)
		assert.Len(t, all, max(1, len(args)/2))
	}
	for _, args := range [][]string{
		{}, {"a", "b"}, {"gpu-1; rm -rf /"}, {"-x"}, {"GPU_1"}, {"gpu-1", "--device", "GPU-1' ; true"}, {"gpu-1", "--device", "a,b"}, {"gpu-1", "--device", "a=b"},
		{"gpu-1", "--before", "yesterday"}, {"gpu-1", "--device", strings.Repeat("x", 200), "--device", strings.Repeat("y", 200)},
	} {
		code, out, stderr := run(args...)
		assert.Equal(t, exitUsage, code, args)
		assert.Empty(t, out)
		assert.NotEmpty(t, stderr)
	}
}
