// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package exact divides whole numbers so that nothing is lost and nothing overflows.
package exact // import "github.com/otelcol-gpu/otelcol-gpu/internal/exact"

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// MulDiv returns a·b/c, rounded down, and does not overflow between: a and b are not below
// 0, c is above it, and the quotient fits.
func MulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi == 0 {
		return int64(lo / uint64(c))
	}
	quotient, _ := bits.Div64(hi, lo, uint64(c))
	return int64(quotient)
}

// Proportion divides amount in proportion to weights into whole numbers that add up to
// it, each within 1 of its part. Nothing is carried, the weights may have any size, and
// one of them at least is above 0.
func Proportion(amount int64, weights, parts []int64) {
	whole := int64(0)
	for _, w := range weights {
		whole += w
	}
	up, given := int64(0), int64(0)
	for i, w := range weights {
		up += w
		until := MulDiv(amount, up, whole)
		parts[i], given = until-given, until
	}
}

// Decimal writes a number of units of which 10^digits are one, with the digits that it
// needs: 1500 thousandths are 1.5.
func Decimal(n int64, digits int) string {
	sign, u, unit := "", uint64(n), uint64(1)
	if n < 0 {
		sign, u = "-", -u
	}
	for range digits {
		unit *= 10
	}
	if u%unit == 0 {
		return fmt.Sprint(sign, u/unit)
	}
	return strings.TrimRight(fmt.Sprintf("%s%d.%0*d", sign, u/unit, digits, u%unit), "0")
}

// ParseDecimal reads what Decimal writes.
func ParseDecimal(text string, digits int) (int64, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if whole == "" || len(fraction) > digits {
		return 0, fmt.Errorf("%q is no decimal with up to %d digits after the point", text, digits)
	}
	return strconv.ParseInt(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10, 64)
}
