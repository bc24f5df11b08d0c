// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package boards

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/inventory"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

// Of two states that are reported of one board the worse one is shown, in any order; one
// that is not known here hides none.
func TestTheWorseStateCounts(t *testing.T) {
	for _, tt := range []struct{ first, second, want consoleapi.HealthState }{
		{consoleapi.HealthOK, consoleapi.HealthFailed, consoleapi.HealthFailed},
		{consoleapi.HealthFailed, consoleapi.HealthOK, consoleapi.HealthFailed},
		{consoleapi.HealthFailed, consoleapi.HealthUnknown, consoleapi.HealthFailed},
		{consoleapi.HealthUnknown, consoleapi.HealthUnknown, consoleapi.HealthUnknown},
	} {
		id, of := inventory.Place{Cluster: "c1", Name: "GPU-a"}, map[inventory.Place]consoleapi.HealthState{}
		worse(of, id, tt.first)
		worse(of, id, tt.second)
		assert.Equal(t, tt.want, of[id])
	}
}
