// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInputs(t *testing.T) {
	flag, count, every := Input{Flag: true}, Input{Most: MostCount}, Input{}
	for _, tc := range []struct {
		v                  float64
		flag, count, every bool
	}{
		{0, true, true, true}, {1, true, true, true}, {2, false, true, true}, {0.5, false, true, true},
		{-1, false, false, true}, {MostCount + 2, false, false, true}, {math.NaN(), false, false, true},
	} {
		assert.Equal(t, tc.flag, flag.Valid(tc.v), tc.v)
		assert.Equal(t, tc.count, count.Valid(tc.v), tc.v)
		assert.Equal(t, tc.every, every.Valid(tc.v), tc.v)
	}

	heat := []string{"thermal", "power"}
	is, not := Where{Attribute: "watch", Is: heat}, Where{Attribute: "watch", Not: heat}
	assert.True(t, is.Has("power") && not.Has("pcie") && not.Has(""))
	assert.False(t, is.Has("pcie") || is.Has("") || not.Has("thermal"))

	// Only inputs with the same readings share them.
	all := []Input{flag, count, every, {Cumulative: true}, {Count: true}, {Attribute: "a"}, {Values: heat}, {Where: &is}, {Where: &not}, {ByCode: true}}
	for i := range all {
		for j := range all {
			assert.Equal(t, i == j, all[i].Same(&all[j]), "%d and %d", i, j)
		}
	}
	assert.True(t, (&Input{Where: &is}).Same(&Input{Where: &Where{Attribute: "watch", Is: heat}}))
}
