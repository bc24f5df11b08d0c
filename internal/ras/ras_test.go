// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
)

// The list has every code from 1 to 34, and severity and action of each fit each other.
func TestCatalogue(t *testing.T) {
	codes := Codes()
	assert.True(t, slices.IsSorted(codes))
	assert.Len(t, codes, 34)
	for i, e := range catalogue {
		assert.Equal(t, i+1, e.Code)
		for _, text := range []string{e.Meaning, e.Do} {
			assert.True(t, text != "" && len(text) <= MaxText && strings.HasSuffix(text, "."), "%d: %s", e.Code, text)
		}
		switch e.Severity {
		case Fatal:
			assert.GreaterOrEqual(t, e.Action, health.ResetGPU, e.Code)
		case Uncorrected:
			assert.Equal(t, health.RestartApp, e.Action, e.Code)
		case Corrected:
			assert.Equal(t, health.None, e.Action, e.Code)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, tt := range []struct {
		code     int
		severity Severity
		known    bool
		category Category
		want     Severity
		action   health.Action
	}{
		{30, Fatal, true, Chip, Fatal, health.ResetGPU},
		{19, Fatal, true, Memory, Fatal, health.RMA},
		{24, Corrected, true, Memory, Corrected, health.None},
		{33, Fatal, true, Record, Fatal, health.ResetGPU}, // the record names no error, and is a fatal one
		{33, Corrected, true, Record, Corrected, health.None},
		{35, Fatal, false, Unknown, Fatal, health.ResetGPU},
		{0, Uncorrected, false, Unknown, Uncorrected, health.RestartApp},
		{-7, Corrected, false, Unknown, Corrected, health.None},
	} {
		e, known := Lookup(tt.code, tt.severity)
		assert.Equal(t, tt.known, known, tt.code)
		assert.Equal(t, Entry{tt.code, tt.category, tt.want, e.Meaning, e.Do, tt.action}, e)
		assert.NotEmpty(t, e.Meaning)
		assert.NotEmpty(t, e.Do)
	}
	assert.True(t, Fatal.Known() && Uncorrected.Known() && Corrected.Known())
	assert.False(t, Any.Known() || Severity("informational").Known())
}
