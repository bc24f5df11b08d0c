// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The worst state and the heaviest action are the largest ones: their order is that of
// the documentation.
func TestOrder(t *testing.T) {
	var states, actions []string
	for _, s := range States() {
		states = append(states, s.String())
		parsed, ok := ParseState(s.String())
		require.True(t, ok)
		assert.Equal(t, s, parsed)
	}
	for _, a := range Actions() {
		actions = append(actions, a.String())
		parsed, ok := ParseAction(a.String())
		require.True(t, ok)
		assert.Equal(t, a, parsed)
		assert.True(t, strings.HasSuffix(a.Sentence(), "."), a)
	}
	assert.Equal(t, "ok degraded predicted_failure failed", strings.Join(states, " "))
	assert.Equal(t, "none check_app restart_app read_log update_software restart_fabric_manager drain_p2p reset_gpu "+
		"drain_and_reset restart_vm reboot_node run_diagnostics check_mechanics contact_support rma", strings.Join(actions, " "))
}

func TestUnknownValues(t *testing.T) {
	_, ok := ParseState("unknown")
	assert.False(t, ok)
	_, ok = ParseAction("cordon")
	assert.False(t, ok)
	assert.Equal(t, "State(9)", State(9).String())
	assert.Equal(t, "Action(99)", Action(99).String())
	assert.Empty(t, Action(99).Sentence())
	assert.False(t, ReadLog.NeedsFreeBoard())
	assert.True(t, ResetGPU.NeedsFreeBoard())
}

func TestRecovery(t *testing.T) {
	for value, want := range []struct {
		state  State
		action Action
	}{
		{OK, None}, {Failed, ResetGPU}, {Failed, RebootNode}, {Degraded, DrainP2P},
		{Failed, DrainAndReset}, {Failed, RebootNode}, {Failed, RebootNode}, {Failed, RestartVM},
	} {
		s, a, known := Recovery(int64(value))
		assert.True(t, known)
		assert.Equal(t, want.state, s, value)
		assert.Equal(t, want.action, a, value)
	}
	for _, value := range []int64{-1, 8, 1 << 40} {
		s, a, known := Recovery(value)
		assert.False(t, known)
		assert.Equal(t, Degraded, s)
		assert.Equal(t, ReadLog, a)
	}
}
