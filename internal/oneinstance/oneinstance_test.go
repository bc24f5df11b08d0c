// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package oneinstance

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
)

func TestClaim(t *testing.T) {
	type config struct{ _ int }
	id := component.MustNewID("a")
	first := Instance{&config{}, id}
	require.NoError(t, first.Claim("a run"))
	require.EqualError(t, first.Claim("a run"), "a is named in more than one pipeline: one instance has to see all points of a run; "+
		"name it in one metrics pipeline only, and join pipelines with the forward connector before it")
	other := Instance{&config{}, id} // of another Collector
	require.NoError(t, other.Claim("a run"))
	first.Release()
	require.NoError(t, first.Claim("a run"))
	first.Release()
	other.Release()
	claims := 0
	running.Range(func(any, any) bool { claims++; return true })
	require.Zero(t, claims)
}
