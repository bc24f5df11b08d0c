// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package share computes which part of its board a device is. A share is a fraction of
// two integers, so that shares add up exactly: no float enters a sum.
package share

import "math"

// Fraction is P parts of Q. The zero value is no share at all; a valid one has
// 0 < P <= Q <= MaxDenominator.
type Fraction struct{ P, Q int64 }

// MaxDenominator bounds the denominator of a share. The memory of a board in MiB is below
// it, so the share of a partition by memory is exact.
const MaxDenominator = 1 << 20

// Whole is the share of a device that is its board.
var Whole = Fraction{1, 1}

// Of returns p parts of q in lowest terms; ok is false where that is no share.
func Of(p, q int64) (f Fraction, ok bool) {
	if p <= 0 || q < p {
		return Fraction{}, false
	}
	d := gcd(p, q)
	p, q = p/d, q/d
	if q > MaxDenominator {
		// The nearest one that fits; never 0, which is no share.
		p, q = max(1, p/(q/MaxDenominator+1)), MaxDenominator
		return Fraction{p, q}, true
	}
	return Fraction{p, q}, true
}

// FromFloat returns the fraction that a float was computed from: the one with the smallest
// denominator that divides to the same float, else the nearest of MaxDenominator. ok is
// false for NaN and what is not above 0 and at most 1.
//
// Two fractions with denominators up to 2^20 are at least 2^-40 apart, and a float
// between 0 and 1 has 53 bits: 1/3 comes back as 1/3.
func FromFloat(v float64) (f Fraction, ok bool) {
	if !(v > 0 && v <= 1) {
		return Fraction{}, false
	}
	// Convergents of the continued fraction of v.
	p0, q0, p1, q1 := int64(0), int64(1), int64(1), int64(0)
	for rest := v; ; {
		whole := math.Floor(rest)
		if whole > MaxDenominator {
			break
		}
		a := int64(whole)
		p0, q0, p1, q1 = p1, q1, a*p1+p0, a*q1+q0
		if q1 > MaxDenominator {
			break
		}
		if float64(p1)/float64(q1) == v {
			return Fraction{p1, q1}, true
		}
		if rest == whole {
			break
		}
		rest = 1 / (rest - whole)
	}
	return Of(max(1, int64(math.Round(v*MaxDenominator))), MaxDenominator)
}

// Times returns a share of a share, such as a replica of a MIG instance.
func (f Fraction) Times(g Fraction) Fraction {
	a, b := gcd(f.P, g.Q), gcd(g.P, f.Q)
	if a == 0 || b == 0 {
		return Fraction{}
	}
	product, _ := Of(f.P/a*(g.P/b), f.Q/b*(g.Q/a))
	return product
}

// Replica is the share of one of n equal parts of a device.
func Replica(device Fraction, n int) Fraction {
	return device.Times(Fraction{1, int64(max(n, 1))})
}

// Valid reports whether f is a share.
func (f Fraction) Valid() bool { return f.P > 0 && f.P <= f.Q && f.Q <= MaxDenominator }

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
