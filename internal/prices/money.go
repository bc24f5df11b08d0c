// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prices

import (
	"cmp"
	"fmt"
	"math/big"

	"github.com/otelcol-gpu/otelcol-gpu/internal/exact"
)

// Money is an amount of the currency, in whole units and billionths. An amount below 0 has
// billionths of 0 or more too: -0.25 is -1 and 0.75.
type Money struct{ Whole, Nano int64 }

// Billionths returns an amount of billionths of the currency.
func Billionths(n int64) Money { return Money{}.Add(Money{Nano: n}) }

// Add returns the sum of two amounts.
func (m Money) Add(other Money) Money {
	m.Whole, m.Nano = m.Whole+other.Whole, m.Nano+other.Nano
	m.Whole += m.Nano / nano
	if m.Nano %= nano; m.Nano < 0 {
		m.Whole, m.Nano = m.Whole-1, m.Nano+nano
	}
	return m
}

// Sub returns the difference of two amounts.
func (m Money) Sub(other Money) Money { return m.Add(Money{-other.Whole, -other.Nano}) }

// Compare orders amounts as cmp.Compare does.
func (m Money) Compare(other Money) int {
	return cmp.Or(cmp.Compare(m.Whole, other.Whole), cmp.Compare(m.Nano, other.Nano))
}

// Float returns the amount in the currency.
func (m Money) Float() float64 { return float64(m.Whole) + float64(m.Nano)/nano }

// Valid reports whether m is an amount of 0 or more.
func (m Money) Valid() bool { return m.Whole >= 0 && m.Nano >= 0 && m.Nano < nano }

// String is the exact decimal, with the digits that it needs.
func (m Money) String() string {
	if m.Whole < 0 {
		return "-" + Money{}.Sub(m).String()
	}
	if m.Nano == 0 {
		return fmt.Sprint(m.Whole)
	}
	return fmt.Sprintf("%d.%s", m.Whole, exact.Decimal(m.Nano, 9)[2:])
}

// Round is the decimal with some digits after the point, at most 9: half is rounded away
// from 0.
func (m Money) Round(digits int) string {
	if m.Whole < 0 {
		return "-" + Money{}.Sub(m).Round(digits)
	}
	unit := int64(nano)
	for range digits {
		unit /= 10
	}
	m = m.Add(Money{Nano: unit / 2})
	if digits == 0 {
		return fmt.Sprint(m.Whole)
	}
	return fmt.Sprintf("%d.%0*d", m.Whole, digits, m.Nano/unit)
}

// Divide divides the amount in proportion to weights of 0 or more into parts that add up to
// it. One weight at least is above 0.
func (m Money) Divide(weights []int64) []Money {
	all := new(big.Int)
	for _, w := range weights {
		all.Add(all, big.NewInt(w))
	}
	amount := big.NewInt(m.Whole)
	amount.Mul(amount, big.NewInt(nano)).Add(amount, big.NewInt(m.Nano))
	parts := make([]Money, len(weights))
	up, given := new(big.Int), Money{}
	for i, w := range weights {
		up.Add(up, big.NewInt(w))
		n, rest := new(big.Int).Mul(amount, up), new(big.Int)
		n.Div(n, all).DivMod(n, big.NewInt(nano), rest)
		upTo := Money{n.Int64(), rest.Int64()}
		parts[i], given = upTo.Sub(given), upTo
	}
	return parts
}
