// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exact

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestProportion(t *testing.T) {
	parts := make([]int64, 3)
	Proportion(1_800_000_000, []int64{2_057_143, 514_286, 1_028_571}, parts)
	assert.Equal(t, []int64{1_028_571_500, 257_143_000, 514_285_500}, parts)
	Proportion(math.MaxInt64/4, []int64{math.MaxInt64 / 4, 1, math.MaxInt64 / 4}, parts)
	assert.Equal(t, int64(math.MaxInt64/4), parts[0]+parts[1]+parts[2])
	Proportion(7, []int64{0, 5, 0}, parts)
	assert.Equal(t, []int64{0, 7, 0}, parts)
}

func TestDecimal(t *testing.T) {
	for want, got := range map[string]string{
		"0": Decimal(0, 3), "1.5": Decimal(1500, 3), "-0.001": Decimal(-1, 3), "12": Decimal(12, 0), "70": Decimal(70_000, 3),
		"-9223372036854775.808": Decimal(math.MinInt64, 3),
	} {
		assert.Equal(t, want, got)
	}
	for _, n := range []int64{0, 1, -1, 1500, math.MaxInt64, math.MinInt64} {
		for digits := range 10 {
			got, err := ParseDecimal(Decimal(n, digits), digits)
			assert.NoError(t, err)
			assert.Equal(t, n, got)
		}
	}
	for _, text := range []string{"", "x", "1.2345", "1e3", "9223372036854775808"} {
		_, err := ParseDecimal(text, 3)
		assert.Error(t, err, text)
	}
}
