// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

// A board of which little is looked at does not look like one that is well.
func TestHealthInWords(t *testing.T) {
	of := func(state consoleapi.HealthState, withData, applicable int) string {
		return wellbeing(&consoleapi.Health{State: state, Coverage: &consoleapi.HealthCoverage{WithData: withData, Applicable: applicable}})
	}
	assert.Equal(t, "ok, 9 of 9 checks", of(consoleapi.HealthOK, 9, 9))
	assert.Equal(t, "ok, 3 of 9 checks", of(consoleapi.HealthOK, 3, 9))
	assert.Equal(t, "ok so far, 2 of 9 checks", of(consoleapi.HealthOK, 2, 9))
	assert.Equal(t, "unknown, 0 of 9 checks", of(consoleapi.HealthUnknown, 0, 9))
}
