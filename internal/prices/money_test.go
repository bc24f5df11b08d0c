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

func TestMoneyText(t *testing.T) {
	for text, m := range map[string]Money{
		"0": {}, "1.5": {1, nano / 2}, "-0.000000001": Billionths(-1), "-1.25": Billionths(-1_250_000_000), "-3": Billionths(-3 * nano),
		"27670116110.564327421": Billionths(math.MaxInt64).Add(Billionths(math.MaxInt64)).Add(Billionths(math.MaxInt64)),
	} {
		assert.Equal(t, text, m.String())
		assert.Zero(t, m.Sub(m))
		assert.Zero(t, m.Compare(m))
		assert.Positive(t, m.Compare(m.Sub(Billionths(1))))
	}
	assert.Equal(t, "2.00", Money{1, 995_000_000}.Round(2))
	assert.Equal(t, "-2", Billionths(-1_500_000_000).Round(0))
}

func TestMoneyIsDivided(t *testing.T) {
	for _, amount := range []Money{{10, 1}, {}, {27_670_116_110, 1}} {
		sum := Money{}
		for _, part := range amount.Divide([]int64{0, 1, 0, 2, math.MaxInt64}) {
			assert.True(t, part.Valid())
			sum = sum.Add(part)
		}
		assert.Equal(t, amount, sum)
	}
	assert.Equal(t, []Money{{1, 500_000_000}, {}, {3, 0}}, Money{4, 500_000_000}.Divide([]int64{1, 0, 2}))
}
