// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package costreport

import (
	"cmp"
	"fmt"
	"math/big"
	"strings"
)

const nano = 1_000_000_000

// Money is an amount of a currency. It does not overflow where billionths in 64 bits do: a
// fleet that is priced in won costs more than these can count within weeks.
type Money struct {
	Units int64
	Nano  int64 // 0 to 999,999,999, also of an amount below 0
}

// Billionths returns an amount of billionths of the currency.
func Billionths(n int64) Money { return Money{}.Plus(Money{Nano: n}) }

// Plus returns the sum.
func (m Money) Plus(o Money) Money {
	m.Units += o.Units
	m.Nano += o.Nano
	m.Units += m.Nano / nano
	if m.Nano %= nano; m.Nano < 0 {
		m.Nano += nano
		m.Units--
	}
	return m
}

// Minus returns the difference.
func (m Money) Minus(o Money) Money { return m.Plus(Money{-o.Units, -o.Nano}) }

// Compare orders amounts.
func (m Money) Compare(o Money) int {
	return cmp.Or(cmp.Compare(m.Units, o.Units), cmp.Compare(m.Nano, o.Nano))
}

// String is the exact decimal, with the digits that it needs.
func (m Money) String() string {
	if m.Units < 0 {
		return "-" + Money{}.Minus(m).String()
	}
	return trimZeros(fmt.Sprintf("%d.%09d", m.Units, m.Nano))
}

// Round is the decimal with some digits after the point, at most 9: rounded, half up.
func (m Money) Round(digits int) string {
	if m.Units < 0 {
		return "-" + Money{}.Minus(m).Round(digits)
	}
	unit := int64(nano)
	for range digits {
		unit /= 10
	}
	m = m.Plus(Money{Nano: unit / 2})
	if digits == 0 {
		return fmt.Sprint(m.Units)
	}
	return fmt.Sprintf("%d.%0*d", m.Units, digits, m.Nano/unit)
}

func (m Money) billionths() *big.Int {
	n := big.NewInt(m.Units)
	return n.Mul(n, big.NewInt(nano)).Add(n, big.NewInt(m.Nano))
}

func fromBillionths(n *big.Int) Money {
	units, rest := new(big.Int), new(big.Int)
	units.DivMod(n, big.NewInt(nano), rest)
	return Money{units.Int64(), rest.Int64()}
}

// spread divides money in proportion to weights into parts that add up to it. One weight
// at least is above 0.
func spread(amount Money, weights []int64) []Money {
	whole := new(big.Int)
	for _, w := range weights {
		whole.Add(whole, big.NewInt(w))
	}
	parts := make([]Money, len(weights))
	total, up, given := amount.billionths(), new(big.Int), Money{}
	for i, w := range weights {
		up.Add(up, big.NewInt(w))
		until := new(big.Int).Mul(total, up)
		upTo := fromBillionths(until.Div(until, whole))
		parts[i], given = upTo.Minus(given), upTo
	}
	return parts
}

// decimal writes a number of units that are 10^digits times smaller than one.
func decimal(n int64, digits int) string {
	sign := ""
	u := uint64(n)
	if n < 0 {
		sign, u = "-", -u
	}
	unit := uint64(1)
	for range digits {
		unit *= 10
	}
	return sign + trimZeros(fmt.Sprintf("%d.%0*d", u/unit, digits, u%unit))
}

func trimZeros(text string) string {
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
