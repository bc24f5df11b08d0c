// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/delivery"
)

// Short form of `make test-delivery`: nothing that was acknowledged is lost and
// no attempt is without its record, with receivers that misbehave in every way
// and three kills in between. The seed is always the same; the moments at which
// the kills meet the collector are not.
func TestDelivery(t *testing.T) {
	require.NoError(t, delivery.Run(t.Context(), delivery.Options{
		Bin: filepath.Dir(binary(t, "otelcol-gpu")), Dir: t.TempDir(),
		Events: 700, Receivers: 7, Kills: 3, Seed: 1, Out: t.Output(),
	}))
}
