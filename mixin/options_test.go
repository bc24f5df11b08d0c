// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/health"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

// One fault pages once: by the state of the board, or by its causes.
func TestEitherTheStatePagesOrItsCauses(t *testing.T) {
	causes := []string{
		"GPUXIDFatal", "GPUECCUncorrected", "GPURowRemapFailure", "GPURowRemapPending", "GPUPagesRetiredPending", "GPUPCIeReplays", "GPUHealthWatchFailed",
		"GPURASError", "GPUMemoryRepairFailed", "GPUMemoryRepairPending", "GPULinkDown",
	}
	var marked []string
	for _, g := range alerts(shipped(t)) {
		for _, a := range g.alerts {
			if a.cause {
				marked = append(marked, a.name)
				assert.Equal(t, info, options{HealthState: true}.severityOf(a), a.name)
				assert.Equal(t, a.severity, options{HealthState: false}.severityOf(a), a.name)
			}
			if a.state {
				assert.Equal(t, a.severity, options{HealthState: true}.severityOf(a), a.name)
				assert.Equal(t, info, options{HealthState: false}.severityOf(a), a.name)
			}
			if !a.cause && !a.state {
				assert.Equal(t, a.severity, options{HealthState: true}.severityOf(a), a.name)
				assert.Equal(t, a.severity, options{HealthState: false}.severityOf(a), a.name)
			}
		}
	}
	assert.ElementsMatch(t, causes, marked)
	assert.True(t, shipped(t).HealthState, "the default")
	for _, text := range []string{"healthStates: true\nidleSpendPerDay: 1", "healthState: true", "idleSpendPerDay: 0", "idleSpendPerDay: .nan"} {
		_, err := readOptions([]byte(text))
		assert.Error(t, err, text)
	}
}

// shipped are the options as they are in the repository.
func shipped(t *testing.T) options {
	t.Helper()
	o, err := readOptions(optionsYAML)
	require.NoError(t, err)
	return o
}

// No code that paged is without a state that does: what GPUXIDFatal fires for is a reason
// against the board.
func TestEveryFatalXIDIsAReason(t *testing.T) {
	for code := range strings.SplitSeq(codes(xid.Fatal), "|") {
		n, err := strconv.Atoi(code)
		require.NoError(t, err)
		e, known := xid.Lookup(n)
		require.True(t, known)
		assert.True(t, slices.Contains([]health.State{health.Failed, health.Degraded}, e.Health().State), "XID %s: %v", code, e.Health())
	}
}
