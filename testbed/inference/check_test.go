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
	// Behind the first: a torn page, a restart and an upgrade without a page that failed,
	// a sum of which no source goes on.
	seeds := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 19, 24, 38, 47, 139}
	if testing.Short() {
		seeds = seeds[:4]
	}
	found := 0
	for _, seed := range seeds {
		all, err := Set(seed)
		require.NoError(t, err, "seed %d", seed)
		for _, d := range all {
			t.Error(d)
		}
		if found += len(all); found > 20 {
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
