// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prices

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMoney(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	sum, want := Money{}, new(big.Int)
	for range 10_000 {
		rate := reduce(r.Int64N(1+r.Int64N(1_000_000_000_000_000)), 1+r.Int64N(1024))
		ms := r.Int64N(1 + r.Int64N(300_000_000_000_000))
		exactly := new(big.Int).Mul(big.NewInt(ms), big.NewInt(rate.Nano))
		exactly.Div(exactly, big.NewInt(rate.Per*3_600_000))
		m := rate.Money(ms)
		assert.True(t, m.Valid())
		got := new(big.Int).Add(new(big.Int).Mul(big.NewInt(m.Whole), big.NewInt(nano)), big.NewInt(m.Nano))
		assert.Zero(t, exactly.Cmp(got), "%+v × %d ms", rate, ms)
		sum, want = sum.Add(m), want.Add(want, exactly)
	}
	float, _ := new(big.Float).Quo(new(big.Float).SetInt(want), big.NewFloat(nano)).Float64()
	assert.InEpsilon(t, float, sum.Float(), 1e-12)
	assert.Equal(t, int64(math.MaxInt64), Rate{math.MaxInt64, 1}.Money(math.MaxInt64).Whole)
}
