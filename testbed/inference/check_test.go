// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/pages"
)

// Whatever the requests: the series of every engine are what they were.
func TestSets(t *testing.T) {
	sets := uint64(12)
	if testing.Short() {
		sets = 4
	}
	for seed := uint64(1); seed <= sets; seed++ {
		all, err := Set(seed)
		require.NoError(t, err, "seed %d", seed)
		for _, d := range all {
			t.Error(d)
		}
		if len(all) > 20 {
			return
		}
	}
}

// Every page that there is has its expectations.
func TestEveryEngine(t *testing.T) {
	for _, name := range pages.Names() {
		_, server := servers[name]
		_, gateway := gateways[name]
		assert.NotEqual(t, server, gateway, name)
	}
}
